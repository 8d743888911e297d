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
	maxLost     = 16 // bytes per call

	// Calls on a device copy operands, and its driver keeps some memory for later.
	callsOfDevice   = 1000
	maxLostOnDevice = 512
)

// Leaks says what calls do not release.
type Leaks struct {
	Calls        int  `json:"calls"`
	BytesPerCall int  `json:"bytes_per_call"`    // of the process
	Files        int  `json:"files"`             // that were opened and not closed
	TooFew       bool `json:"too_few,omitempty"` // calls to tell a leak from what a driver keeps
}

// leak makes many calls and watches the memory of the process. If it grows in every window of
// calls, calls lose memory.
func (c *checker) leak() error {
	calls, allowed := callsOfLeak, maxLost
	if c.backend != nil {
		calls, allowed = callsOfDevice, maxLostOnDevice
	}
	for _, d := range c.found.servedDTypes() {
		c.step("%d calls in %v", leakWindows*calls, d)
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
		if _, err := run(calls / 10); err != nil {
			return err
		}
		files, before := openFiles(), resident()
		if before == 0 {
			return nil // the system does not report it
		}
		found := &Leaks{}
		for window := range leakWindows {
			n, err := run(calls)
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
		case c.backend != nil && found.Calls < leakWindows*calls:
			found.TooFew = true
		case found.BytesPerCall > allowed:
			return fmt.Errorf("%d calls of case %s lost memory, %d bytes per call", found.Calls, work[0].Case, found.BytesPerCall)
		case found.Files > found.Calls/100:
			return fmt.Errorf("%d calls of case %s left %d files open", found.Calls, work[0].Case, found.Files)
		}
		return nil
	}
	return nil
}

// resident returns the memory of this process in bytes without what Go could release, 0 if the
// system does not report it.
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

// openFiles returns the number of open files of this process, 0 if the system does not report it.
func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
