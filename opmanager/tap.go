package opmanager

import (
	"slices"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Tap sees calls, to record, check or measure them. Its methods may be called from several
// goroutines at once.
type Tap interface {
	// Begin is called with each call before an impl runs, on the goroutine of the call. If it
	// returns a function, that is called after the call with the impl that served it, or with the
	// error of the call, in which case the impl is the zero ImplInfo. Its own error becomes that of
	// the call if the call had none; it does not cause a fallback.
	Begin(TappedCall) (end func(served ImplInfo, err error) error)
}

// TappedCall is a call that a Tap sees.
type TappedCall struct {
	Op    opregistry.Handle
	Layer int             // of the model, counted from 0; -1 outside of layers
	Phase oppolicy.Phase  // zero outside of phases
	Args  opregistry.Call // valid until the call ends; argcopy.Args copies it
	Pool  opregistry.Pool // the workers of the manager, which a Tap may use before and after the call
}

// Bytes returns the size of all operands.
func (c TappedCall) Bytes() int64 {
	n := 0
	for _, o := range c.Args.Operands() {
		if o.Tensor != nil {
			n += o.Tensor.NumElements() * o.Tensor.DType().Size()
		}
	}
	return int64(n)
}

// Tap makes t see the calls that begin from now on, of m and of all Managers that share its
// registry, until remove is called. Without a tap calls cost what they cost before. Remove is
// idempotent and does not wait for calls.
func (m *Manager) Tap(t Tap) (remove func()) {
	c, added := m.core, &tapped{t}
	c.update(func() { c.taps = append(slices.Clip(c.taps), added) })
	return func() {
		c.update(func() { c.taps = slices.DeleteFunc(slices.Clone(c.taps), func(t Tap) bool { return t == Tap(added) }) })
	}
}

// tapped gives each Tap an identity of its own, so that one may be added twice.
type tapped struct{ Tap }

// callTapped serves a call that taps see. Taps that begin first end last.
func (b *binding) callTapped(t *table, r *row, a opregistry.Call) error {
	call := TappedCall{Op: b.handle, Layer: b.m.scope.layer - 1, Phase: b.m.scope.phase, Args: a, Pool: b.exec.Pool()}
	ends := make([]func(ImplInfo, error) error, 0, len(t.taps))
	for _, tap := range t.taps {
		if end := tap.Begin(call); end != nil {
			ends = append(ends, end)
		}
	}
	used, err := b.serveUntapped(t, r, nil, a)
	var served ImplInfo
	if err == nil {
		served = used.info
	}
	result := err
	for _, end := range slices.Backward(ends) {
		if fault := end(served, err); result == nil {
			result = fault
		}
	}
	return result
}
