package loader

import (
	"errors"
	"strings"
)

// ErrPlatform is returned by Open where shared libraries cannot be opened.
var ErrPlatform = errors.New("loader: shared libraries cannot be opened on this platform or in this build")

// ErrNoSymbol is wrapped when a library has no symbol with the requested name.
var ErrNoSymbol = errors.New("no such symbol")

// ErrClosed is returned by Executor.Do after Close.
var ErrClosed = errors.New("loader: executor is closed")

// OpenError says why none of the names could be opened.
type OpenError struct {
	Attempts []Attempt
}

// Attempt is one name that could not be opened.
type Attempt struct {
	Name   string
	Reason string // the system's text, beginning with the file at fault
}

// Error lists the reasons in the order in which the names were tried.
func (e *OpenError) Error() string {
	if len(e.Attempts) == 0 {
		return "loader: open: given no names, want at least one soname or path"
	}
	reasons := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		reasons[i] = a.Reason
	}
	return "loader: open: " + strings.Join(reasons, "; ")
}

// reason shortens the text of dlerror and adds the name of the requested library, which the text
// about a missing dependency lacks.
func reason(name, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		text = "the system gave no reason"
	}
	if short, ok := strings.CutSuffix(text, ": No such file or directory"); ok && strings.HasSuffix(short, "cannot open shared object file") {
		text = short
	}
	if !strings.HasPrefix(text, name) {
		text = name + ": " + text
	}
	return text
}
