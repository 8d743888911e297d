package opmanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// serveAcross serves a call whose operands lie where no impl serves them, or where those that do
// have declined or failed it, as tried and skipped say. The operands are copied to the host, an
// impl runs there, and what it wrote is copied back. Nothing is written on a device unless the impl
// has succeeded.
func (b *binding) serveAcross(t *table, r *row, tried []error, skipped []oppolicy.Rejection, a opregistry.Call) (*candidate, error) {
	host := t.rows[b.index].variant(a.Signature())
	refuse := func(format string, args ...any) error {
		problem := fmt.Sprintf("%s on %s, and ", b.whyAcross(r), placesOf(a)) + fmt.Sprintf(format, args...)
		return &CallError{Op: b.name, Tried: tried, Skipped: skipped, Rejected: r.rejected, Problem: problem}
	}
	switch {
	case t.policy.CrossDevice == oppolicy.CrossDeviceError:
		return nil, refuse("the policy does not copy them to the host (cross_device=error, %s)", t.policy.Source(oppolicy.FieldCrossDevice))
	case host.head == nil:
		return nil, refuse("none can be selected on the host")
	}
	var copies []savedOperand
	if t.policy.ProtectInPlace {
		var err error
		if copies, err = protect(a.Updated()); err != nil {
			return nil, fmt.Errorf("op %q: %w", b.name, err)
		}
	}
	on, err := argcopy.ToHost(a, &b.m.core.crossing)
	if err != nil {
		return nil, fmt.Errorf("op %q: %w", b.name, err)
	}
	defer on.Release()
	if err := on.Call.Validate(); err != nil { // now with the values of operands
		return nil, err
	}
	used, err := b.serveUnder(t, host, nil, on.Call)
	if err != nil {
		return nil, withTried(err, tried)
	}
	if err := on.Back(); err != nil {
		return nil, fmt.Errorf("op %q: %w", b.name, errors.Join(err, restore(copies)))
	}
	used.counters.crossed.Add(1)
	used.counters.crossedBytes.Add(uint64(on.In + on.Out))
	b.m.core.emit(CrossedDevice{Op: b.name, Impl: used.info, Places: placesOf(a), Why: b.whyAcross(r), BytesIn: on.In, BytesOut: on.Out})
	return used, nil
}

// whyAcross returns why a call is not served where its operands lie, as the beginning of a sentence
// that goes on with the place.
func (b *binding) whyAcross(r *row) string {
	if r.head == nil {
		return "no impl serves operands"
	}
	return "no impl serves this call"
}

// placesOf returns where the operands of a call lie.
func placesOf(a opregistry.Call) string {
	var names []string
	for _, o := range a.Operands() {
		if o.Tensor == nil {
			continue
		}
		if name := o.Tensor.Place().String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// withTried adds the errors of impls that ran before to the error of a call.
func withTried(err error, tried []error) error {
	call, ok := errors.AsType[*CallError](err)
	if !ok || len(tried) == 0 {
		return err
	}
	all := *call
	all.Tried = slices.Concat(tried, call.Tried)
	return &all
}

// onHost reports whether the operands of the calls of a row lie in host memory.
func (r *row) onHost() bool { return r.on == device.TypeCPU }
