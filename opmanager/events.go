package opmanager

import (
	"time"

	"github.com/primus-fl/primus/opregistry"
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
// Released and PolicyChanged.
type Event interface{ event() }

// Registered says which impls a Manager knows when it starts.
type Registered struct {
	Ops   int
	Impls int
	IDs   []string // sorted, without repetition
}

// Selected is the first successful call of an op.
type Selected struct {
	Op   string
	Impl ImplInfo
}

// Switched is the first successful call of an op by another impl than the last.
type Switched struct {
	Op       string
	From, To ImplInfo
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

// Released says that the quarantine of an impl has ended.
type Released struct {
	Op   string
	Impl ImplInfo
}

// PolicyChanged says that a new policy is in force.
type PolicyChanged struct{ Generation uint64 }

func (Registered) event()    {}
func (Selected) event()      {}
func (Switched) event()      {}
func (FellBack) event()      {}
func (Failed) event()        {}
func (Quarantined) event()   {}
func (Released) event()      {}
func (PolicyChanged) event() {}

// Listener receives events. It is called from the goroutine in which they
// happen, without any lock of the Manager held, and should return soon.
type Listener interface {
	OnEvent(Event)
}
