//go:build (linux || darwin) && (amd64 || arm64) && !android && !nopurego

package loader

import (
	"runtime"
	"unsafe"
)

// Guard calls C functions and restores the floating-point environment after each call. The zero
// value is ready to use; a Guard serves one call at a time.
type Guard struct {
	frame guardFrame
	args  [1]uintptr
}

// guardFrame is what the assembly of guardEntry reads and writes.
type guardFrame struct {
	fn            uintptr
	args          [4]uintptr
	result        uintptr
	before, after Control
}

// guardEntry is the address of a C function that takes a *guardFrame. It calls fn with args and
// then restores its thread's floating-point environment; on amd64 it also clears the direction
// flag. This must happen before control returns to Go, which may continue on another thread and
// leave this one to other goroutines.
var guardEntry uintptr

// readControl stores the floating-point environment of this thread.
//
//go:noescape
func readControl(c *Control)

// writeControl sets the floating-point environment of this thread.
//
//go:noescape
func writeControl(c *Control)

// Call is Call4 for a function with two arguments.
//
//go:uintptrescapes
func (g *Guard) Call(fn, a0, a1 uintptr) (result uintptr, change Change) {
	return g.Call4(fn, a0, a1, 0, 0)
}

// Call4 calls the C function at an address that Symbol returned with four arguments that are
// integers or pointers. It returns the function's integer result and what the function did to the
// floating-point environment, which is restored. The rules for memory are those of the package
// function Call.
//
//go:uintptrescapes
func (g *Guard) Call4(fn, a0, a1, a2, a3 uintptr) (result uintptr, change Change) {
	f := &g.frame
	f.fn, f.args = fn, [4]uintptr{a0, a1, a2, a3}
	g.args[0] = uintptr(unsafe.Pointer(f)) // its address does not change: the slice keeps g on the heap
	call(guardEntry, g.args[:])
	return f.result, changeOf(f.before, f.after)
}

// guarded runs f, which may call C only on this thread, and restores the floating-point
// environment.
func guarded(f func()) Change {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after Control
	readControl(&before)
	f()
	readControl(&after)
	change := changeOf(before, after)
	if !change.IsZero() {
		writeControl(&before)
	}
	return change
}

// changeOf compares two readings without the bits that do not belong to Control.
func changeOf(before, after Control) Change {
	mask := func(c Control) Control { return Control{c.SIMD & simdMask, c.X87 & x87Mask} }
	return Change{mask(before), mask(after)}
}
