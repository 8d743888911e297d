package recording

import (
	"fmt"
	"sync"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// Suspect is an opmanager.Tap that runs each call also on another impl and keeps the first call
// whose result is beyond the tolerance of the op from that of the other impl. If there is none, it
// keeps the first call whose result differs.
type Suspect struct {
	// Other returns the impl that a call is compared with, nil for a call that is not suspected.
	Other func(opmanager.TappedCall) *opregistry.Entry
	Exec  *opregistry.Exec

	mu             sync.Mutex
	step           int
	calls          map[string]int // of the step, by op
	beyond, differ *Evidence
}

// Evidence is a call of which two impls have different results.
type Evidence struct {
	Call  *Call
	Other string // the impl that the call is compared with
	Match *Match // of the result of the call with that of Other
}

// SetStep says which step the calls that follow belong to.
func (s *Suspect) SetStep(step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.calls = step, map[string]int{}
}

// Found returns the call that is kept, nil if no result differed.
func (s *Suspect) Found() *Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beyond != nil {
		return s.beyond
	}
	return s.differ
}

// Begin implements opmanager.Tap.
func (s *Suspect) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	other := s.Other(call)
	if other == nil {
		return nil
	}
	s.mu.Lock()
	done := s.beyond != nil
	s.calls[call.Op.Name()]++
	site := Site{Step: s.step, Number: s.calls[call.Op.Name()], Layer: call.Layer, Phase: call.Phase}
	s.mu.Unlock()
	if done {
		return nil
	}
	c, err := Take(call, site)
	if err != nil {
		return func(opmanager.ImplInfo, error) error { return err }
	}
	return func(served opmanager.ImplInfo, fault error) error {
		if fault != nil {
			return nil
		}
		if err := c.end(call.Args, served, nil); err != nil {
			return err
		}
		return s.compare(c, other)
	}
}

// compare runs a call on the other impl and keeps it if the results differ.
func (s *Suspect) compare(c *Call, other *opregistry.Entry) error {
	args, err := c.Arguments()
	if err != nil {
		return err
	}
	if run(args, other, s.Exec) != nil {
		return nil // it declines this call
	}
	match, err := c.recordedMatch(args, nil)
	if err != nil || match.Equal {
		return err
	}
	found := &Evidence{Call: c, Other: other.ID, Match: match}
	c.Primus, c.Machine = buildinfo.Version(), cpufeat.Class(true)
	c.Why = fmt.Sprintf("its result differs from that of %s", other.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case match.Beyond > 0 && s.beyond == nil:
		s.beyond = found
	case s.differ == nil:
		s.differ = found
	}
	return nil
}
