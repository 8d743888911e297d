package primustest

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

const (
	quiet = 3 * time.Minute       // a wait gives up when nothing happens for so long
	limit = 15 * time.Minute      // and after so long in any case
	pause = 20 * time.Millisecond // between two looks, once it takes long
)

// Wait is a wait for something that a program does. It has no time of its own, because a machine
// may be slow: it ends when the program has ended, when the program does nothing for three minutes,
// or after a quarter of an hour.
type Wait struct {
	// What says what is waited for.
	What string
	// Until reports whether it has come.
	Until func() bool
	// Ended is closed when the program has ended. It may be nil.
	Ended <-chan struct{}
	// Progress returns a number that changes while the program does something. Without it the wait
	// ends after three minutes.
	Progress func() int64
	// Report says what the program has done, for the error of the test. It may be nil.
	Report func() string
}

// Do waits. If it gives up, the test fails and says what the program has done.
func (w Wait) Do(t testing.TB) {
	t.Helper()
	if why := w.wait(quiet, limit, time.Second); why != "" {
		report := ""
		if w.Report != nil {
			report = "\n" + w.Report()
		}
		t.Fatalf("%s: %s%s", w.What, why, report)
	}
}

// wait returns why it gives up, "" when it does not. It looks for progress now and then.
func (w Wait) wait(quiet, limit, look time.Duration) string {
	begun := time.Now()
	last, changed, asked := int64(0), begun, begun
	for n := time.Duration(1); !w.Until(); n++ {
		select {
		case <-w.Ended:
			if w.Until() {
				return ""
			}
			return fmt.Sprintf("given the end of the process after %v, want this before", time.Since(begun).Round(time.Second))
		case <-time.After(min(n*time.Millisecond, pause)):
		}
		now := time.Now()
		if w.Progress != nil && now.Sub(asked) > look {
			asked = now
			if n := w.Progress(); n != last {
				last, changed = n, now
			}
		}
		switch {
		case now.Sub(changed) > quiet:
			return fmt.Sprintf("given nothing new for %v, want it by then", quiet)
		case now.Sub(begun) > limit:
			return fmt.Sprintf("given %v, want it by then", limit)
		}
	}
	return ""
}

// Stacks returns where the goroutines of this process are.
func Stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
