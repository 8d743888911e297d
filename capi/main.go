//go:build cgo

// Command capi is libprimus, a shared library for programs that are not written in Go. make lib
// builds it; primus.h says what it offers. This package only translates between C and package
// library.
package main

// #cgo CFLAGS: -O2 -Wall -Wextra -I${SRCDIR}/../vendors/abi
// #include <stdlib.h>
// #include "shell.h"
import "C"

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/primus-fl/primus/capi/internal/library"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/rankops"
	"github.com/primus-fl/primus/vendors/abi"
)

// lib is the library of this process. Functions that C calls have no receiver.
var lib = library.New(library.Settings{Lookup: getenv, Log: rankLog()})

// rankLog returns where a rank of primus logs: its output is in a file of the run. Another program
// has its output to itself.
func rankLog() slog.Handler {
	if socket, _ := getenv(rankops.Variable); socket == "" {
		return nil
	}
	return slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})
}

func main() {}

// getenv reads the environment of the host, of which Go has a copy from when it was loaded.
func getenv(name string) (string, bool) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	value := C.primus_shell_getenv(c)
	return C.GoString(value), value != nil
}

// result returns the number of an error and keeps its text for the thread.
func result(err error) C.int32_t {
	if err == nil {
		return abi.OK
	}
	text := err.Error()
	C.primus_shell_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	return C.int32_t(library.Code(err))
}

// guard turns a panic into a result: the host goes on.
func guard(code *C.int32_t) {
	if cause := recover(); cause != nil {
		result(fmt.Errorf("libprimus has a fault: %v\n%s", cause, debug.Stack()))
		*code = library.CodeBug
	}
}

// text gives a text to C, which frees it.
func text(to **C.char, s string, err error) C.int32_t {
	if err == nil {
		*to = C.CString(s)
	}
	return result(err)
}

//export primus_go_version
func primus_go_version() *C.char { return C.CString(buildinfo.Version()) }

//export primus_go_open
func primus_go_open(threads C.uint32_t, policy, file *C.char, flags C.uint32_t, manager *C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	n, err := lib.Open(library.Options{Threads: uint32(threads), Policy: C.GoString(policy), PolicyFile: C.GoString(file), Flags: uint32(flags)})
	if err == nil {
		*manager = C.uint64_t(n)
	}
	return result(err)
}

//export primus_go_close
func primus_go_close(manager C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	return result(lib.Close(uint64(manager)))
}

//export primus_go_exit
func primus_go_exit() (code C.int32_t) {
	defer guard(&code)
	lib.Exit()
	return abi.OK
}

//export primus_go_bind
func primus_go_bind(manager C.uint64_t, op *C.char, layout C.uint64_t, bound *C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	n, err := lib.Bind(uint64(manager), C.GoString(op), uint64(layout))
	if err == nil {
		*bound = C.uint64_t(n)
	}
	return result(err)
}

//export primus_go_unbind
func primus_go_unbind(bound C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	return result(lib.Unbind(uint64(bound)))
}

//export primus_go_run
func primus_go_run(bound C.uint64_t, args unsafe.Pointer, n C.uint32_t, saved *C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	return result(lib.Run(uint64(bound), args, uint32(n), (*uint64)(saved)))
}

//export primus_go_explain
func primus_go_explain(manager C.uint64_t, op *C.char, asJSON C.int32_t, to **C.char) (code C.int32_t) {
	defer guard(&code)
	s, err := lib.Explain(uint64(manager), C.GoString(op), asJSON != 0)
	return text(to, s, err)
}

//export primus_go_policy
func primus_go_policy(manager C.uint64_t, to **C.char) (code C.int32_t) {
	defer guard(&code)
	s, err := lib.Policy(uint64(manager))
	return text(to, s, err)
}

//export primus_go_set_policy
func primus_go_set_policy(manager C.uint64_t, policy *C.char) (code C.int32_t) {
	defer guard(&code)
	return result(lib.SetPolicy(uint64(manager), C.GoString(policy)))
}

//export primus_go_reload_policy
func primus_go_reload_policy(manager C.uint64_t) (code C.int32_t) {
	defer guard(&code)
	return result(lib.ReloadPolicy(uint64(manager)))
}

//export primus_go_metrics
func primus_go_metrics(manager C.uint64_t, to **C.char) (code C.int32_t) {
	defer guard(&code)
	s, err := lib.Metrics(uint64(manager))
	return text(to, s, err)
}

//export primus_go_register
func primus_go_register(manager C.uint64_t, table unsafe.Pointer) (code C.int32_t) {
	defer guard(&code)
	return result(lib.Register(uint64(manager), table))
}
