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
	Code   int            // exit code of the process, or 128 plus the number of the signal that ended it
	Signal syscall.Signal // signal that ended the process, 0 for none
	Hung   string         // why the job was ended for its silence, "" otherwise
	Tail   []string       // its last lines
	File   string         // file with all of its lines
}

// tailLines is how many lines of a rank that failed are shown, and traceLines how many are searched
// for a traceback.
const (
	tailLines  = 30
	traceLines = 400
)

// traceback begins what Python writes about an exception.
const traceback = "Traceback (most recent call last):"

// Traceback returns the last Python traceback in the lines, nil if there is none. It may contain
// lines of other ranks or threads.
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

// crashes are the beginnings of what the runtimes of Go, C++ and Python write when they end a
// process. What follows is a long list of stacks.
var crashes = []string{"fatal error: ", "panic: ", "terminate called ", "Fatal Python error: "}

// crash returns the lines from the one on with which a runtime ended the rank, nil if there is
// none.
func (f *Failure) crash() []string {
	if f.Signal == 0 {
		return nil
	}
	i := slices.IndexFunc(f.Tail, func(line string) bool {
		return slices.ContainsFunc(crashes, func(c string) bool { return strings.HasPrefix(line, c) })
	})
	if i < 0 {
		return nil
	}
	return f.Tail[i:]
}

// Cause returns the exception or the crash that ended the rank, "" if its lines show none.
func (f *Failure) Cause() string {
	if crash := f.crash(); crash != nil {
		cause := crash[0]
		if len(crash) > 1 {
			if text, ok := strings.CutPrefix(strings.TrimSpace(crash[1]), "what():"); ok {
				cause += ":" + text
			}
		}
		return cause
	}
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
	what := "its last lines"
	if crash := f.crash(); len(crash) > tailLines {
		last, what = crash[:tailLines], "the first lines of the crash"
	}
	if len(last) > 0 {
		fmt.Fprintf(&b, "\n%s (all are in %s):\n", what, f.File)
		for _, line := range last {
			b.WriteString("  | " + line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// ExitCode returns the exit code for a program that ends because of this failure.
func (f *Failure) ExitCode() int { return f.Code }
