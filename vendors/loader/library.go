package loader

import (
	"fmt"
	"runtime"
)

// Library is a shared library that stays open for the rest of the process.
type Library struct {
	name   string
	path   string
	handle uintptr
	change Change
}

// Open opens the first of these sonames or paths that can be opened. All symbols are resolved at
// once, and they are not visible to other libraries.
func Open(names ...string) (*Library, error) {
	if !supported {
		return nil, ErrPlatform
	}
	failure := &OpenError{}
	for _, name := range names {
		if name == "" {
			failure.Attempts = append(failure.Attempts, Attempt{Reason: `given the empty name, want a soname or path`})
			continue
		}
		lib, err := openOne(name)
		if err == nil {
			return lib, nil
		}
		failure.Attempts = append(failure.Attempts, Attempt{Name: name, Reason: reason(name, err.Error())})
	}
	return nil, failure
}

// openOne stays on one OS thread: the C library keeps the text of an error for the thread that
// caused it, and reading the text is a second call.
func openOne(name string) (*Library, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var (
		handle uintptr
		err    error
	)
	change := guarded(func() { handle, err = dlopen(name) })
	if err != nil {
		return nil, err
	}
	return &Library{name: name, path: dlpath(handle, name), handle: handle, change: change}, nil
}

// Name returns the name under which the library was opened.
func (l *Library) Name() string { return l.name }

// Path returns the file that was mapped, or the name where the system does not report the file.
func (l *Library) Path() string { return l.path }

// Change returns what the library's constructors did to the floating-point environment of the
// thread that loaded it. Open has restored it.
func (l *Library) Change() Change { return l.change }

// Symbol returns the address of a symbol of the library or of a library that it depends on.
func (l *Library) Symbol(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	addr, err := dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("loader: %s: %w %q", l.name, ErrNoSymbol, name)
	}
	return addr, nil
}

// Global returns the address of a symbol of the C library, or of another library
// that is open for all others to use.
func Global(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	addr, err := dlglobal(name)
	if err != nil {
		return 0, fmt.Errorf("loader: %w %q in the C library", ErrNoSymbol, name)
	}
	return addr, nil
}

// Bind sets *fn, a variable of function type, to call the symbol. The type must fit the C
// signature; nothing can check that. Arguments and results may be integers, floats, pointers, bool
// and string; a string result is copied. Bind panics when fn is not a pointer to a variable of such
// a type. On an error *fn is unchanged, so that an optional function stays nil.
//
// A call of *fn costs several hundred nanoseconds and allocates.
func (l *Library) Bind(fn any, name string) error {
	addr, err := l.Symbol(name)
	if err != nil {
		return err
	}
	register(fn, addr)
	return nil
}

// Call calls the C function at an address that Symbol returned, with up to 32 arguments that are
// integers or pointers, and returns its integer result. The caller must keep memory that an
// argument points to alive and in place until Call returns; Go memory on the heap does not move.
// Call(fn, kept...) with a slice that is kept between calls allocates nothing.
//
//go:uintptrescapes
func Call(fn uintptr, args ...uintptr) uintptr { return call(fn, args) }

// Callback returns the address of a C function that calls fn, whose arguments and result are
// integers or pointers. The C function exists for the rest of the process; there can be about two
// thousand of them.
func Callback(fn any) uintptr { return callback(fn) }

// OnExit arranges that f is called when C code ends this process with exit or quick_exit, after the
// handlers that C code registers later. The process ends when f returns; f may also end it itself.
// A Go program that ends normally calls neither function, so f does not run then.
func OnExit(f func()) error {
	register, err := Global("__cxa_atexit")
	if err != nil {
		return err
	}
	handler := Callback(func(uintptr) uintptr {
		f()
		return 0
	})
	if status := Call(register, handler, 0, 0); status != 0 {
		return fmt.Errorf("loader: __cxa_atexit returned %d", int32(status))
	}
	if register, err = Global("__cxa_at_quick_exit"); err == nil { // not every system has it
		Call(register, handler, 0)
	}
	return nil
}
