package check

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
)

const (
	leakWindows = 3
	callsOfLeak = 10_000 // in a window, or as many as fit into leakLimit
	leakLimit   = 10 * time.Second
	maxLost     = 16 // bytes a call
)

// Leaks says what calls leave behind.
type Leaks struct {
	Calls        int `json:"calls"`
	BytesPerCall int `json:"bytes_per_call"` // of the process
	Files        int `json:"files"`          // that are open and were not before
}

// leak makes many calls and watches the memory of the process. What grows in every window of calls
// is lost.
func (c *checker) leak() error {
	for _, d := range c.found.servedDTypes() {
		c.step("%d calls in %v", leakWindows*callsOfLeak, d)
		work, err := opscases.All().Smallest(d, c.subject)
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
		found := &Leaks{}
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
		case found.BytesPerCall > maxLost:
			return fmt.Errorf("%d calls of case %s lost memory, %d bytes a call", found.Calls, work[0].Case, found.BytesPerCall)
		case found.Files > found.Calls/100:
			return fmt.Errorf("%d calls of case %s left %d files open", found.Calls, work[0].Case, found.Files)
		}
		return nil
	}
	return nil
}

// resident returns the memory of this process in bytes without what Go could give back, 0 where the
// system does not tell.
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
