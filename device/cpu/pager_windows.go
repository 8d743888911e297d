package cpu

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// systemPager takes memory from the operating system by VirtualAlloc.
type systemPager struct{}

func (systemPager) acquire(length uint64) (unsafe.Pointer, error) {
	address, err := windows.VirtualAlloc(0, uintptr(length), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is no Go pointer, so nothing moves it between the two types.
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)), nil
}

func (systemPager) release(p unsafe.Pointer, _ uint64) error {
	return windows.VirtualFree(uintptr(p), 0, windows.MEM_RELEASE)
}

func (systemPager) bind(unsafe.Pointer, uint64, int) error { return errNoBinding }

func (systemPager) close() error { return nil }
