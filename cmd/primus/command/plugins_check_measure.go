package command

import (
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/opstest"
)

const (
	leakWindows  = 3
	callsOfLeak  = 10_000 // in a window, or as many as fit into leakLimit
	leakLimit    = 10 * time.Second
	mostLost     = 16 // bytes a call
	measureCalls = 200
	measureLimit = time.Second
)

// leakCheck says what calls leave behind.
type leakCheck struct {
	Calls        int `json:"calls"`
	BytesPerCall int `json:"bytes_per_call"` // of the process
	Files        int `json:"files"`          // that are open and were not before
}

// leak makes many calls and watches the memory of the process. What grows in every window of calls is lost.
func (c *opChecker) leak() error {
	for _, d := range c.found.servedDTypes() {
		c.step("%d calls in %v", leakWindows*callsOfLeak, d)
		work, err := opstest.Smallest(d, c.subject)
		if err != nil {
			return err
		}
		if work == nil {
			continue
		}
		exec := opregistry.NewExec(nil, device.DefaultStream)
		end := time.Now().Add(leakLimit)
		run := func(n int) (done int, err error) {
			for done < n && err == nil && time.Now().Before(end) {
				_, err = work[0].Run(exec)
				done++
			}
			return done, err
		}
		if _, err := run(callsOfLeak / 10); err != nil {
			return err
		}
		files, before := openFiles(), resident()
		if before == 0 {
			return nil // a system that does not tell
		}
		found := &leakCheck{}
		for window := range leakWindows {
			n, err := run(callsOfLeak)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			now := resident()
			lost := max(now-before, 0) / n
			if window == 0 || lost < found.BytesPerCall {
				found.BytesPerCall = lost
			}
			found.Calls, before = found.Calls+n, now
		}
		found.Files = max(openFiles()-files, 0)
		c.found.Leaks = found
		switch {
		case found.BytesPerCall > mostLost:
			return fmt.Errorf("%d calls of case %s lost memory, %d bytes a call", found.Calls, work[0].Case, found.BytesPerCall)
		case found.Files > found.Calls/100:
			return fmt.Errorf("%d calls of case %s left %d files open", found.Calls, work[0].Case, found.Files)
		}
		return nil
	}
	return nil
}

// resident returns the memory of this process in bytes without what Go could give back, 0 where the system does not tell.
func resident() int {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// openFiles returns how many files this process has open, 0 where the system does not tell.
func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}

// speedCheck says how long a call takes, in microseconds.
type speedCheck struct {
	Case   string  `json:"case"`
	Bytes  int     `json:"bytes"` // of all operands
	Impl   float64 `json:"impl_us"`
	Flagos float64 `json:"flagos_us,omitempty"`
}

// measure calls the op in turns with flagos, and keeps the shortest time of each.
func (c *opChecker) measure() error {
	subjects := []opstest.Subject{c.subject}
	if rival, ok := implOf(flagos.Source(), implName{c.name.Op, flagos.ID}); ok {
		subjects = append(subjects, subjectOf(flagos.Source(), rival))
	}
	pool := parallel.New(goruntime.GOMAXPROCS(0))
	defer pool.Close()
	exec := opregistry.NewExec(pool, device.DefaultStream)
	for _, d := range c.found.servedDTypes() {
		c.step("time in %v", d)
		work, err := opstest.Largest(d, subjects...)
		if work == nil && err == nil {
			work, err = opstest.Largest(d, c.subject) // flagos declines this dtype
		}
		if err != nil {
			return err
		}
		if work == nil {
			continue
		}
		best := make([]time.Duration, len(work))
		end := time.Now().Add(measureLimit)
		for n := 0; n < measureCalls && time.Now().Before(end); n++ {
			for k, w := range work {
				took, err := w.Run(exec)
				if err != nil {
					return err
				}
				if n == 0 || took < best[k] {
					best[k] = took
				}
			}
		}
		found := speedCheck{Case: work[0].Case, Bytes: work[0].Bytes, Impl: best[0].Seconds() * 1e6}
		if len(best) > 1 {
			found.Flagos = best[1].Seconds() * 1e6
		}
		c.found.Speed = append(c.found.Speed, found)
	}
	return nil
}
