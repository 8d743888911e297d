package opmanager

import (
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ImplInfo names an impl in events, explanations and statistics.
type ImplInfo struct {
	ID     string          `json:"impl_id"`
	Kind   opregistry.Kind `json:"kind"`
	Vendor string          `json:"vendor,omitempty"`
	Source string          `json:"source,omitempty"`
}

// Event is something that a Manager has decided or seen. The set of events is
// sealed: Registered, Selected, Switched, FellBack, Failed, Quarantined,
// Released, PolicyChanged and VerificationFailed.
type Event interface{ event() }

// Registered says which impls a Manager knows when it starts.
type Registered struct {
	Ops   int
	Impls int
	IDs   []string // sorted, without repetition
}

// Selected is the first successful call of an op.
type Selected struct {
	Op    string
	Impl  ImplInfo
	Rules string // the rules for layers and phases that applied, "" for none
}

// Switched is the first successful call of an op by another impl than the last
// under the same rules.
type Switched struct {
	Op       string
	From, To ImplInfo
	Rules    string // as in Selected
}

// FellBack is a call that another impl served after the ones before it in the
// order declined or failed.
type FellBack struct {
	Op       string
	From, To ImplInfo
	Cause    error
}

// Failed is a call in which an impl returned an error or panicked. Declined is
// set when it wrapped opregistry.ErrUnsupported.
type Failed struct {
	Op       string
	Impl     ImplInfo
	Err      error
	Declined bool
}

// Quarantined says that an impl will not be used until the given time.
type Quarantined struct {
	Op       string
	Impl     ImplInfo
	Failures int
	Until    time.Time
	Cause    error
}

// Released says that an impl is used again: a call has tried it with success after
// its quarantine, or the quarantine was cleared.
type Released struct {
	Op   string
	Impl ImplInfo
}

// PolicyChanged says that a new policy is in force.
type PolicyChanged struct{ Generation uint64 }

// VerificationFailed says that a result of an impl is not what the reference
// computes, or that it wrote to an operand that was not for it.
type VerificationFailed struct {
	Op      string
	Impl    ImplInfo
	Operand string
	// Trespass says how the operand was written to against the rules, "" when its
	// content is what is wrong.
	Trespass string
	tensor.Difference
	Tolerance tensor.Tolerance
}

func (Registered) event()    {}
func (Selected) event()      {}
func (Switched) event()      {}
func (FellBack) event()      {}
func (Failed) event()        {}
func (Quarantined) event()   {}
func (Released) event()      {}
func (PolicyChanged) event() {}

func (VerificationFailed) event() {}

// Listener receives events. It is called from the goroutine in which they
// happen, without any lock of the Manager held, and should return soon.
type Listener interface {
	OnEvent(Event)
}

// DurationListener is a Listener that also hears how long calls take. It does so
// under Settings.Timing, and of every seventh call that an impl serves through a
// handle: enough for a distribution, and no divisor of how often layers repeat.
type DurationListener interface {
	Listener

	// Durations returns what is told the durations of calls of an op that an impl
	// served. It is asked once for each, after a call and without any lock held; the
	// function is called from any goroutine and returns at once.
	Durations(op string, impl ImplInfo) func(time.Duration)
}
