package rankops

import (
	"errors"
	"fmt"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
)

// Variable names the socket of the Collector in the environment of the processes.
const Variable = "PRIMUS_OPS_SOCKET"

// Messages are lines of JSON, of at most maxLine bytes, in the form of protocol, which changes with
// them.
const (
	maxLine  = 4 << 20
	protocol = 1
)

// hello is the first line of a process.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the library
	Rank     string `json:"rank"`    // as its environment has it
}

// report is a line of a process: what has happened since its last one.
type report struct {
	Events []event             `json:"events,omitempty"`
	Calls  []backend.RankCalls `json:"calls,omitempty"`
	// Refused says why the last policy could not be put in force.
	Refused string `json:"refused,omitempty"`
}

// order is a line for a process.
type order struct {
	Policy string `json:"policy"` // as a policy file
}

// event is an event of an op manager that happened a number of times.
type event struct {
	Event    string             `json:"event"`
	Op       string             `json:"op"`
	Impl     opmanager.ImplInfo `json:"impl,omitzero"` // to which one
	From     opmanager.ImplInfo `json:"from,omitzero"`
	Cause    string             `json:"cause,omitempty"`
	Declined bool               `json:"declined,omitempty"` // the cause
	Times    uint64             `json:"times,omitempty"`
	Until    time.Time          `json:"until,omitzero"`
	Failures int                `json:"failures,omitempty"`
}

// encode returns an event as it is sent, and false for one that is not.
func encode(e opmanager.Event) (event, bool) {
	switch e := e.(type) {
	case opmanager.Selected:
		return event{Event: "selected", Op: e.Op, Impl: e.Impl}, true
	case opmanager.Switched:
		return event{Event: "switched", Op: e.Op, From: e.From, Impl: e.To}, true
	case opmanager.FellBack:
		return event{Event: "fell_back", Op: e.Op, From: e.From, Impl: e.To, Cause: text(e.Cause), Declined: declined(e.Cause)}, true
	case opmanager.Failed:
		return event{Event: "failed", Op: e.Op, Impl: e.Impl, Cause: text(e.Err), Declined: e.Declined}, true
	case opmanager.Quarantined:
		return event{Event: "quarantined", Op: e.Op, Impl: e.Impl, Cause: text(e.Cause), Until: e.Until, Failures: e.Failures}, true
	case opmanager.Released:
		return event{Event: "released", Op: e.Op, Impl: e.Impl}, true
	}
	return event{}, false
}

// decode is the inverse of encode.
func (e event) decode() (opmanager.Event, error) {
	switch e.Event {
	case "selected":
		return opmanager.Selected{Op: e.Op, Impl: e.Impl}, nil
	case "switched":
		return opmanager.Switched{Op: e.Op, From: e.From, To: e.Impl}, nil
	case "fell_back":
		return opmanager.FellBack{Op: e.Op, From: e.From, To: e.Impl, Cause: e.cause()}, nil
	case "failed":
		return opmanager.Failed{Op: e.Op, Impl: e.Impl, Err: e.cause(), Declined: e.Declined}, nil
	case "quarantined":
		return opmanager.Quarantined{Op: e.Op, Impl: e.Impl, Failures: e.Failures, Until: e.Until, Cause: e.cause()}, nil
	case "released":
		return opmanager.Released{Op: e.Op, Impl: e.Impl}, nil
	}
	return nil, fmt.Errorf("given an event %q, want selected, switched, fell_back, failed, quarantined or released", e.Event)
}

func (e event) cause() error {
	if e.Declined {
		return &decline{e.Cause}
	}
	return errors.New(e.Cause)
}

// decline is the error of an impl in another process that has declined a call.
type decline struct{ text string }

func (d *decline) Error() string { return d.text }
func (d *decline) Unwrap() error { return opregistry.ErrUnsupported }

func declined(err error) bool { return errors.Is(err, opregistry.ErrUnsupported) }

// text returns the text of an error, cut where no reader would go on.
func text(err error) string {
	const most = 2000
	if err == nil {
		return ""
	}
	if s := err.Error(); len(s) > most {
		return s[:most] + "…"
	} else {
		return s
	}
}
