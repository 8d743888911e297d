package launch

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Failure says which rank ended a job, and what it wrote last.
type Failure struct {
	Rank   int
	Code   int            // with which the process exited; 128 and the signal for one that a signal ended
	Signal syscall.Signal // that ended the process, 0 for none
	Hung   string         // why the job was ended for saying nothing, "" for none
	Tail   []string       // its last lines
	File   string         // that has all of them
}

// tailLines is how many lines of a rank that failed are shown, and traceLines how many are searched
// for a traceback.
const (
	tailLines  = 30
	traceLines = 400
)

// traceback begins what Python writes about an exception.
const traceback = "Traceback (most recent call last):"

// Traceback returns the last Python traceback of the lines, nil for none. Lines of other ranks or
// threads in it stay.
func (f *Failure) Traceback() []string {
	for i, line := range slices.Backward(f.Tail) {
		if !strings.Contains(line, traceback) {
			continue
		}
		column := strings.Index(line, traceback)
		for j := i + 1; j < len(f.Tail); j++ {
			text := f.Tail[j]
			if len(text) > column && text[column] != ' ' {
				return f.Tail[i : j+1]
			}
		}
		return f.Tail[i:]
	}
	return nil
}

// Cause is the exception that ended the rank, "" when its lines show none.
func (f *Failure) Cause() string {
	trace := f.Traceback()
	if len(trace) < 2 {
		return ""
	}
	return strings.TrimSpace(trace[len(trace)-1])
}

// Error says which rank failed, why, and what it wrote last.
func (f *Failure) Error() string {
	var b strings.Builder
	switch {
	case f.Hung != "":
		b.WriteString(f.Hung)
	case f.Signal != 0:
		fmt.Fprintf(&b, "rank %d was ended by signal %d (%v)", f.Rank, int(f.Signal), f.Signal)
	default:
		fmt.Fprintf(&b, "rank %d exited with %d", f.Rank, f.Code)
	}
	if cause := f.Cause(); cause != "" {
		b.WriteString(": " + cause)
	}
	last := f.Tail[max(0, len(f.Tail)-tailLines):]
	if trace := f.Traceback(); len(trace) > len(last) {
		last = trace
	}
	if len(last) > 0 {
		fmt.Fprintf(&b, "\nits last lines (all are in %s):\n", f.File)
		for _, line := range last {
			b.WriteString("  | " + line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// ExitCode is what a program exits with that ends because of this failure.
func (f *Failure) ExitCode() int { return f.Code }
