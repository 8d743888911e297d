package opmanager

import (
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ImplInfo identifies an impl in events, explanations and statistics.
type ImplInfo struct {
	ID     string          `json:"impl_id"`
	Kind   opregistry.Kind `json:"kind"`
	Vendor string          `json:"vendor,omitempty"`
	Source string          `json:"source,omitempty"`
}

// Event is a decision or an observation of a Manager: one of Registered, Selected, Switched,
// FellBack, Failed, Quarantined, Released, PolicyChanged, PolicyPutBack, VerificationFailed,
// CanaryChanged and CrossedDevice.
type Event interface{ event() }

// Registered lists the impls that are registered when a Manager is made.
type Registered struct {
	Ops   int
	Impls int
	IDs   []string // sorted, without duplicates
}

// Selected is the first call of an op that an impl served.
type Selected struct {
	Op    string
	Impl  ImplInfo
	Rules string // the rules for layers and phases that applied, "" for none
}

// Switched is a call of an op that another impl served than the one before, under the same rules.
type Switched struct {
	Op       string
	From, To ImplInfo
	Rules    string // the rules for layers and phases that applied, "" for none
}

// FellBack is a call that an impl served after those before it in the order declined or failed.
type FellBack struct {
	Op       string
	From, To ImplInfo
	Cause    error
}

// Failed is a call in which an impl returned an error or panicked. Declined is set if the error
// wraps opregistry.ErrUnsupported.
type Failed struct {
	Op       string
	Impl     ImplInfo
	Err      error
	Declined bool
}

// Quarantined is the start of a quarantine: the impl is not used for the op until a given time, or
// until the quarantine is cleared if Until is zero.
type Quarantined struct {
	Op       string
	Impl     ImplInfo
	Failures int
	Until    time.Time
	Cause    error
}

// Released is the end of a quarantine, because a call tried the impl again and it succeeded, or
// because the quarantine was cleared.
type Released struct {
	Op   string
	Impl ImplInfo
}

// PolicyChanged is a change of the policy. Generation is that of the new dispatch table.
type PolicyChanged struct{ Generation uint64 }

// VerificationFailed is a call in which an impl computed another result than the reference, or
// wrote to an operand that it may not write. The impl is then quarantined, and its result is not
// used unless Used is set.
type VerificationFailed struct {
	Op      string
	Impl    ImplInfo
	Operand string
	// UnexpectedWrite describes a write to an operand that the impl may not write, "" if the impl
	// computed a wrong result.
	UnexpectedWrite string
	tensor.Difference
	Tolerance tensor.Tolerance
	Than      string // the impl that it was compared with, "" for the reference
	Number    uint64 // of the call among those of its kind (oppolicy.VerifyMode), from 1; 0 if unknown
	LastRight uint64 // the number of the last call that was verified and right; 0 for none
	Used      bool   // the policy only reports wrong results
	File      string // that has the call, as Manager.KeepWrong said; "" for none
	// Call is the call as it was before the impl ran, or the part of it that was compared, and
	// Result the same after that. Both are valid until OnEvent returns.
	Call   TappedCall
	Result opregistry.Call
}

// CrossedDevice is a call that an impl served on the host with copies of operands that lie on a
// device.
type CrossedDevice struct {
	Op                string
	Impl              ImplInfo
	Places            string // where the operands lie, such as "opencl:0"
	Why               string // the call was not served there
	BytesIn, BytesOut int    // copied to the host and back
}

func (CrossedDevice) event() {}
func (Registered) event()    {}
func (Selected) event()      {}
func (Switched) event()      {}
func (FellBack) event()      {}
func (Failed) event()        {}
func (Quarantined) event()   {}
func (Released) event()      {}
func (PolicyChanged) event() {}

func (VerificationFailed) event() {}

// Listener receives events. OnEvent is called on the goroutine in which the event happens, while no
// lock of the Manager is held, and should return quickly.
type Listener interface {
	OnEvent(Event)
}

// DurationListener is a Listener that also receives durations of calls: of one in seven calls that
// an impl serves through a handle, and of one in 28 once 64 calls in a row took less than 10 µs,
// until one takes longer. That is enough for a distribution, and seven rarely divides the number of
// layers of a model.
type DurationListener interface {
	Listener

	// Durations returns the function that receives the durations of calls of an op that an impl
	// served. It is called once for each op and impl, while no lock is held. The function is
	// called on any goroutine and should return quickly.
	Durations(op string, impl ImplInfo) func(time.Duration)
}
