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
	last  []func(code int)
	next  func() // what the next interrupt does instead of ending the process
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

// OnInterrupt lets the next interrupt from the keyboard call f instead of ending the process, until
// the function that it returns is called.
func (e *Ending) OnInterrupt(f func()) (restore func()) {
	if e == nil {
		return func() {}
	}
	e.setNext(f)
	return func() { e.setNext(nil) }
}

func (e *Ending) setNext(f func()) (previous func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	previous, e.next = e.next, f
	return previous
}

// Interrupted reports whether an interrupt has been served by the function of OnInterrupt, which it
// calls.
func (e *Ending) Interrupted() bool {
	f := e.setNext(nil)
	if f != nil {
		f()
	}
	return f != nil
}

// Last adds a function that Exit calls with the code. It must return within two seconds.
func (e *Ending) Last(f func(code int)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = append(e.last, f)
}

// Exit ends the process with a code, and with it all processes that it has started and those that
// they have started. Apart from the functions of Last it
// waits for nothing: files that are replaced as a whole are whole.
func (e *Ending) Exit(code int) {
	if e == nil {
		return
	}
	e.mu.Lock()
	last := e.last
	e.mu.Unlock()
	for _, f := range last {
		f(code)
	}
	procgroup.KillDescendants()
	e.exit(code)
}
