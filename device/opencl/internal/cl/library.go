// Package cl calls the functions of an OpenCL library.
package cl

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/vendors/loader"
)

// names are the files of the OpenCL loader, in the order in which Open tries them when it is given
// none.
var names = []string{"libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL"}

// Library is an open OpenCL library. It is safe for concurrent use.
type Library struct {
	path  string
	addrs [functions]uintptr
	fault atomic.Pointer[Fault]

	results sync.Pool
}

// Fault decides whether a call fails in place of the library: it returns a code other than Success
// for a call that is not to be made. Tests set it.
type Fault func(fn Function) Code

// Open opens the first of these files and finds all functions in it.
func Open(files ...string) (*Library, error) {
	if len(files) == 0 {
		files = names
	}
	lib, err := loader.Open(files...)
	if err != nil {
		return nil, err
	}
	l := &Library{path: lib.Path(), results: sync.Pool{New: func() any { return new(results) }}}
	for f := range functions {
		if l.addrs[f], err = lib.Symbol(f.String()); err != nil {
			return nil, fmt.Errorf("%s is no library of OpenCL 1.2 or later: %w", lib.Path(), err)
		}
	}
	return l, nil
}

// Path returns the file of the library.
func (l *Library) Path() string { return l.path }

// Inject sets what decides whether calls fail; nil lets all calls through.
func (l *Library) Inject(f Fault) {
	if f == nil {
		l.fault.Store(nil)
		return
	}
	l.fault.Store(&f)
}

// Call calls a function that returns a code. Memory that an argument points to must be kept alive
// by the caller when it is reached through other memory.
//
//go:uintptrescapes
func (l *Library) Call(fn Function, args ...uintptr) error {
	if f := l.fault.Load(); f != nil {
		if code := (*f)(fn); code != Success {
			return &Error{Call: fn.String(), Code: code}
		}
	}
	if code := Code(loader.Call(l.addrs[fn], args...)); code != Success {
		return &Error{Call: fn.String(), Code: code}
	}
	return nil
}

// Create calls a function that returns an object and stores a code at the address of its last
// argument, which Create adds. At most seven arguments come before it.
//
//go:uintptrescapes
func (l *Library) Create(fn Function, args ...uintptr) (uintptr, error) {
	if f := l.fault.Load(); f != nil {
		if code := (*f)(fn); code != Success {
			return 0, &Error{Call: fn.String(), Code: code}
		}
	}
	c := l.results.Get().(*results)
	defer l.results.Put(c)
	c.code = Success
	n := copy(c.args[:], args)
	c.args[n] = uintptr(unsafe.Pointer(&c.code))
	object := loader.Call(l.addrs[fn], c.args[:n+1]...)
	if c.code != Success {
		return 0, &Error{Call: fn.String(), Code: c.code}
	}
	return object, nil
}

// results is memory for what a call returns. It comes from a pool and so never lies on a stack,
// which could move during the call.
type results struct {
	code Code
	size uintptr
	args [8]uintptr
}

// Info returns what a function with the arguments (object, what, size, value, size returned) says
// of an object.
func (l *Library) Info(fn Function, object, what uintptr) ([]byte, error) {
	return l.info(func(size, value, returned uintptr) error { return l.Call(fn, object, what, size, value, returned) })
}

// InfoOf is Info for functions with a second object before what.
func (l *Library) InfoOf(fn Function, object, second, what uintptr) ([]byte, error) {
	return l.info(func(size, value, returned uintptr) error {
		return l.Call(fn, object, second, what, size, value, returned)
	})
}

// info asks twice, for the size and for the value.
func (l *Library) info(ask func(size, value, returned uintptr) error) ([]byte, error) {
	c := l.results.Get().(*results)
	defer l.results.Put(c)
	c.size = 0
	if err := ask(0, 0, uintptr(unsafe.Pointer(&c.size))); err != nil || c.size == 0 {
		return nil, err
	}
	value := make([]byte, c.size)
	err := ask(c.size, uintptr(unsafe.Pointer(&value[0])), 0)
	return value, err // value escapes, so that it did not move
}
