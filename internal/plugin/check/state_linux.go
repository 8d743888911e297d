package check

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/primus-fl/primus/vendors/loader"
)

// state is what the code of a plugin may not change in its process, by name.
type state map[string]string

const (
	environment = "the environment"
	handlers    = "the handlers of signals"
)

// forgive takes the variables and the handlers of signals of a later state for those of this one.
func (s state) forgive(now state) {
	s[environment], s[handlers] = now[environment], now[handlers]
}

// processState reads the state of this process; what the system does not tell is left out.
func processState() state {
	s := state{}
	if dir, err := os.Readlink("/proc/self/cwd"); err == nil {
		s["the working directory"] = dir
	}
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		names := map[string]string{"Umask": "the file mode mask", "SigIgn": "the signals that are ignored", "SigCgt": "the signals that have a handler"}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			if name := names[key]; name != "" {
				s[name] = strings.TrimSpace(value)
			}
		}
	}
	if setlocale, err := loader.Global("setlocale"); err == nil {
		const all = 6 // LC_ALL
		if at := loader.Call(setlocale, all, 0); at != 0 {
			s["the locale"] = text(at)
		}
	}
	if environ, err := loader.Global("environ"); err == nil {
		s[environment] = strings.Join(variables(environ), "\n")
	}
	if sigaction, err := loader.Global("sigaction"); err == nil {
		s[handlers] = strings.Join(handlersOf(sigaction), "\n")
	}
	return s
}

// handlersOf returns the handlers of the signals that can have one. Go has handlers of its own for
// nearly all of them, so that another one does not change which signals have one.
func handlersOf(sigaction uintptr) []string {
	var list []string
	for s := unix.SIGHUP; s <= unix.SIGSYS; s++ {
		var action [64]uintptr // its first word is the handler
		if int32(loader.Call(sigaction, uintptr(s), 0, uintptr(unsafe.Pointer(&action)))) == 0 {
			list = append(list, fmt.Sprintf("%s=%#x", unix.SignalName(s), action[0]))
		}
	}
	return list
}

// flush makes the C library print what it has kept.
func flush() {
	if fflush, err := loader.Global("fflush"); err == nil {
		loader.Call(fflush, 0) // all files
	}
}

// variables returns the environment of code that is not Go, in order. environ is the address of the
// variable of that name.
func variables(environ uintptr) []string {
	var list []string
	at := **(***[1 << 20]*byte)(unsafe.Pointer(&environ))
	for i := 0; at != nil && at[i] != nil; i++ {
		list = append(list, text(uintptr(unsafe.Pointer(at[i]))))
	}
	slices.Sort(list)
	return list
}

// hide takes variables out of the environment that code other than Go sees.
func hide(names []string) {
	unsetenv, err := loader.Global("unsetenv")
	if err != nil {
		return
	}
	for _, name := range names {
		loader.Call(unsetenv, uintptr(unsafe.Pointer(unsafe.StringData(name+"\x00"))))
	}
}

// mapped returns the shared libraries that this process has loaded.
func mapped() []string {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		if _, path, ok := strings.Cut(line, "/"); ok {
			if path = "/" + strings.TrimSpace(path); strings.Contains(path, ".so") && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
	}
	return files
}

// text copies a string of C.
func text(at uintptr) string {
	first := *(**byte)(unsafe.Pointer(&at))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(first), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(first, n))
}

// changes says what differs between two states of a process. It does not print the environment,
// which may have secrets, but the names of the variables, and of the signals.
func (s state) changes(now state) []string {
	var found []string
	for name, was := range s {
		is := now[name]
		switch {
		case is == was:
		case name == environment || name == handlers:
			found = append(found, fmt.Sprintf("it changed %s: %s", name, strings.Join(differing(was, is), ", ")))
		default:
			found = append(found, fmt.Sprintf("it changed %s from %s to %s", name, was, is))
		}
	}
	slices.Sort(found)
	return found
}

// differing returns the names of the lines NAME=VALUE that only one of two texts has.
func differing(was, is string) []string {
	one, other := strings.Split(was, "\n"), strings.Split(is, "\n")
	var names []string
	for _, pair := range [][2][]string{{one, other}, {other, one}} {
		for _, v := range pair[0] {
			if name, _, _ := strings.Cut(v, "="); !slices.Contains(pair[1], v) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
