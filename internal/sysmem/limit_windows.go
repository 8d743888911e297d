package sysmem

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX of the Windows API.
type memoryStatus struct {
	length               uint32
	load                 uint32
	totalPhys, availPhys uint64
	totalPageFile        uint64 // physical memory and page files: what can be committed
	availPageFile        uint64
	totalVirtual         uint64
	availVirtual         uint64
	availExtended        uint64
}

// Read returns the limit of this process.
func Read() (Limit, error) {
	status := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	call := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if ok, _, err := call.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return Limit{}, fmt.Errorf("read the size of memory: GlobalMemoryStatusEx: %w", err)
	}
	return Limit{status.totalPageFile, "GlobalMemoryStatusEx"}, nil
}
