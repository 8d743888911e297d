//go:build !((linux || darwin) && (amd64 || arm64) && !android && !nopurego)

package loader

const supported = false

// None of these functions is ever called: without dlopen there is no Library.

func dlopen(string) (uintptr, error) { return 0, ErrPlatform }

func dlsym(uintptr, string) (uintptr, error) { return 0, ErrPlatform }

func dlglobal(string) (uintptr, error) { return 0, ErrPlatform }

func dlpath(_ uintptr, name string) string { return name }

func register(any, uintptr) { panic("BUG: loader: Bind without a library") }

func call(uintptr, []uintptr) uintptr { panic("BUG: loader: Call without a library") }

func callback(any) uintptr { panic("BUG: loader: Callback without a library") }
