package cli

import (
	"os"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/procgroup"
)

// DefaultGrace is how long a program may take to end after the first signal, unless a command has a
// flag for it.
const DefaultGrace = 30 * time.Second

// Ending ends the process even if something in it hangs. A nil Ending belongs to a command line
// that is only looked at: it does nothing.
type Ending struct {
	exit func(code int) // os.Exit

	mu    sync.Mutex
	grace time.Duration
	last  []func()
}

// NewEnding returns the Ending of a process, with DefaultGrace.
func NewEnding() *Ending { return &Ending{exit: os.Exit, grace: DefaultGrace} }

// SetGrace sets how long the process may take to end after the first signal.
func (e *Ending) SetGrace(grace time.Duration) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.grace = grace
}

// Grace returns how long the process may take to end after the first signal.
func (e *Ending) Grace() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.grace
}

// Last adds a function that Exit calls. It must return at once.
func (e *Ending) Last(f func()) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = append(e.last, f)
}

// Exit ends the process with a code, and with it all processes that it has started and those that
// they have started. It waits for nothing: files that are replaced as a whole are whole.
func (e *Ending) Exit(code int) {
	if e == nil {
		return
	}
	e.mu.Lock()
	last := e.last
	e.mu.Unlock()
	for _, f := range last {
		f()
	}
	procgroup.KillDescendants()
	e.exit(code)
}
