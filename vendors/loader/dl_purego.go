//go:build (linux || darwin) && (amd64 || arm64) && !android && !nopurego

package loader

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

const supported = true

func dlopen(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func dlsym(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func dlglobal(name string) (uintptr, error) { return purego.Dlsym(purego.RTLD_DEFAULT, name) }

func register(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

func callback(fn any) uintptr { return purego.NewCallback(fn) }

func call(fn uintptr, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// linkMap is the documented beginning of the C library's struct link_map.
type linkMap struct {
	_    uintptr
	name *byte
}

// dlpath asks the C library for the file of a handle.
func dlpath(handle uintptr, name string) string {
	const requestLinkMap = 2 // RTLD_DI_LINKMAP
	if runtime.GOOS != "linux" {
		return name
	}
	dlinfo, err := dlglobal("dlinfo")
	if err != nil {
		return name
	}
	found := new(*linkMap)
	if call(dlinfo, []uintptr{handle, requestLinkMap, uintptr(unsafe.Pointer(found))}) != 0 || *found == nil {
		return name
	}
	if path := goString((*found).name); path != "" {
		return path
	}
	return name
}

func goString(c *byte) string {
	if c == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(c), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(c, n))
}
