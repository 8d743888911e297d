package opmanager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ErrSavedState is wrapped by the error of a backward op whose saved state cannot be read, because
// the impl that wrote it failed or is no longer a candidate. The forward op has to run again.
var ErrSavedState = errors.New("the saved state cannot be used")

// CallError is the error of a call that no impl served.
type CallError struct {
	Op string
	// Tried are the errors of the impls that ran, in order, each an *opregistry.ImplError.
	Tried []error
	// Skipped are the candidates that were not tried.
	Skipped []oppolicy.Rejection
	// Rejected are the impls that are not candidates.
	Rejected []oppolicy.Rejection
	// Problem is the reason why no other impl was tried.
	Problem string
	// PutBack is set if the saved state cannot be read by another impl, and an earlier policy is in
	// force again under which another one writes it.
	PutBack bool

	savedState bool
}

// Error returns the name of the op and the reason why each of its impls did not serve the call.
func (e *CallError) Error() string {
	parts := []string{fmt.Sprintf("op %q: %s", e.Op, e.Problem)}
	for _, err := range e.Tried {
		parts = append(parts, strings.TrimPrefix(err.Error(), fmt.Sprintf("op %q: ", e.Op)))
	}
	for _, r := range slices.Concat(e.Skipped, e.Rejected) {
		parts = append(parts, fmt.Sprintf("impl %q: %s", r.ID, r.Reason))
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the errors of the impls that ran, and ErrSavedState if the saved state cannot be
// read.
func (e *CallError) Unwrap() []error {
	if e.savedState {
		return append(slices.Clone(e.Tried), ErrSavedState)
	}
	return e.Tried
}

// serveRest serves a call whose first candidate failed with the error first, or is special: seen by
// taps, protected in place, verified, without a candidate for the place of its operands, or with an
// impl whose quarantine is half open.
func (b *binding) serveRest(t *table, r *row, first error, a opregistry.Call) error {
	if len(t.taps) > 0 {
		return b.callTapped(t, r, a)
	}
	_, err := b.serveUntapped(t, r, first, a)
	return err
}

// serveUntapped is serveRest without taps. It returns the impl that served the call.
func (b *binding) serveUntapped(t *table, r *row, first error, a opregistry.Call) (*candidate, error) {
	used, err := b.serveUnder(t, r, first, a)
	if err != nil {
		return b.serveEarlier(t, r, a, err)
	}
	return used, nil
}

// serveUnder serves a call by a row of one table.
func (b *binding) serveUnder(t *table, r *row, first error, a opregistry.Call) (*candidate, error) {
	if r.head == nil && !r.onHost() {
		return b.serveAcross(t, r, nil, nil, a)
	}
	if r.head == nil {
		return nil, &CallError{Op: b.name, Rejected: r.rejected, Problem: "no impl can be selected"}
	}
	saved := a.Saved()
	owner := ""
	if saved != nil && !b.handle.Forward() {
		owner = saved.Owner()
	}
	var copies []savedOperand
	if first == nil && t.policy.ProtectInPlace && owner == "" {
		var err error
		if copies, err = protect(a.Updated()); err != nil {
			return nil, fmt.Errorf("op %q: %w", b.name, err)
		}
	}
	used, err := (*candidate)(nil), error(nil)
	if owner != "" {
		used, err = b.callOwner(t, r, owner, first, a)
	} else {
		if first == nil {
			r = cmp.Or(b.forCanary(r), r)
		}
		used, err = b.serve(t, r, copies, first, a)
	}
	if err != nil {
		return nil, err
	}
	if saved != nil && b.handle.Forward() {
		saved.SetOwner(used.info.ID)
	}
	return used, nil
}

// callOwner runs a backward op on the impl that its forward op ran on, unless that has failed
// already. There is no fallback, since no other impl can read the saved state.
func (b *binding) callOwner(t *table, r *row, owner string, first error, a opregistry.Call) (*candidate, error) {
	i := position(r.order, owner)
	if i < 0 && !r.onHost() && position(t.rows[b.index].order, owner) >= 0 {
		return b.serveAcross(t, r, nil, nil, a)
	}
	if i < 0 {
		reason := "it is no longer registered"
		for _, rej := range r.rejected {
			if rej.ID == owner {
				reason = rej.Reason
			}
		}
		return nil, &CallError{Op: b.name, Rejected: r.rejected, savedState: true,
			Problem: fmt.Sprintf("the saved state was written by impl %q, which is no longer a candidate: %s; run the forward op again", owner, reason)}
	}
	var k *check
	err := first
	if err == nil {
		k = b.check(t, r.order[i], a)
		err = b.timed(r, r.order[i], a)
	}
	if err != nil {
		b.m.core.failed(t.policy, b.name, r.order[i], err)
		return nil, &CallError{Op: b.name, Tried: []error{err}, Rejected: r.rejected, savedState: true,
			Problem: "only the impl that failed can read the saved state; run the forward op again"}
	}
	if err := b.verified(t, r.order[i], k); err != nil {
		return nil, &CallError{Op: b.name, Tried: []error{err}, Rejected: r.rejected, savedState: true,
			Problem: "only the impl that was wrong can read the saved state; run the forward op again"}
	}
	return r.order[i], nil
}

// serve tries the candidates in order by the rules in the package comment and returns the one that
// served the call. first is the error of the first candidate if that has run already.
func (b *binding) serve(t *table, r *row, copies []savedOperand, first error, a opregistry.Call) (*candidate, error) {
	core, op := b.m.core, b.name
	var (
		tried   []error
		skipped []oppolicy.Rejection
		from    *candidate // the first candidate that was tried
	)
	for i, c := range r.order {
		stop := func(problem string) error {
			for _, c := range r.order[i+1:] {
				skipped = append(skipped, oppolicy.Rejection{ID: c.info.ID, Reason: "not tried"})
			}
			return &CallError{Op: op, Tried: tried, Skipped: skipped, Rejected: r.rejected, Problem: problem}
		}
		if c.trial != nil && !c.trial.acquire() {
			skipped = append(skipped, oppolicy.Rejection{ID: c.info.ID, Reason: "its quarantine is half open and another call is trying it"})
			continue
		}
		var k *check
		err := first
		if first = nil; err == nil {
			k = b.check(t, c, a)
			err = b.timed(r, c, a)
		}
		wrong := false
		if err == nil {
			err = b.verified(t, c, k)
			wrong = err != nil
		}
		if err == nil {
			if c.trial != nil {
				core.passed(op, c)
			}
			if from != nil {
				c.counters.fallbacks.Add(1)
				core.emit(FellBack{Op: op, From: from.info, To: c.info, Cause: tried[0]})
			}
			return c, nil
		}
		if from == nil {
			from = c
		}
		tried = append(tried, err)
		declined := !wrong && core.failed(t.policy, op, c, err)
		if declined {
			if err := b.checkDeclined(t, c, k); err != nil {
				return nil, stop(err.Error())
			}
		}
		if t.policy.Strict {
			return nil, stop(fmt.Sprintf("the policy is strict (%s), so no other impl was tried", t.policy.Source(oppolicy.FieldStrict)))
		}
		if wrong || c.canary != nil && k != nil && k.problem == "" && !declined {
			if err := k.restore(); err != nil {
				return nil, stop(err.Error())
			}
			continue
		}
		if declined {
			continue
		}
		if updated := a.Updated(); len(updated) > 0 && copies == nil && !errors.Is(err, opregistry.ErrUntouched) {
			return nil, stop(fmt.Sprintf("operand %q is updated in place and may be half written, so no other impl was tried; set protect_in_place in the policy to allow fallback", updated[0].Name))
		}
		if err := restore(copies); err != nil {
			return nil, stop(err.Error())
		}
	}
	if !r.onHost() {
		return b.serveAcross(t, r, tried, skipped, a)
	}
	return nil, &CallError{Op: op, Tried: tried, Skipped: skipped, Rejected: r.rejected, Problem: "every candidate declined or failed"}
}

// failed records that an impl declined or failed a call, and reports whether it declined.
func (c *core) failed(p *oppolicy.Policy, op string, cand *candidate, err error) (declined bool) {
	declined = errors.Is(err, opregistry.ErrUnsupported)
	cand.counters.fault.Store(&fault{declined, err})
	if declined {
		cand.counters.declines.Add(1)
	} else {
		cand.counters.errors.Add(1)
	}
	c.emit(Failed{Op: op, Impl: cand.info, Err: err, Declined: declined})
	switch {
	case !declined:
		c.countFailure(p.Quarantine, op, cand, err)
	case cand.trial != nil:
		cand.trial.release()
	}
	c.judge(op, cand, err)
	return declined
}

// countFailure counts a failure of an impl, which may start a quarantine.
func (c *core) countFailure(set oppolicy.Quarantine, op string, cand *candidate, cause error) {
	if q, open := c.quarantine.fail(op, cand.info, cause, set, c.rebuild); open {
		c.emit(q)
		c.rebuild()
	}
}

// passed ends the quarantine of an impl whose trial succeeded.
func (c *core) passed(op string, cand *candidate) {
	if c.quarantine.passed(op, cand.info.ID, cand.trial) {
		c.rebuild()
		c.emit(Released{Op: op, Impl: cand.info})
	}
}

// savedOperand is a copy of an operand made before a call.
type savedOperand struct {
	name         string
	tensor, copy *tensor.Tensor
}

// protect copies the operands that an op updates in place.
func protect(updated []opregistry.Operand) ([]savedOperand, error) {
	copies := make([]savedOperand, 0, len(updated))
	for _, o := range updated {
		c, err := argcopy.Tensor(o.Tensor)
		if err != nil {
			return nil, fmt.Errorf("protect operand %q: %w", o.Name, err)
		}
		copies = append(copies, savedOperand{name: o.Name, tensor: o.Tensor, copy: c})
	}
	return copies, nil
}

// restore undoes a failed call.
func restore(copies []savedOperand) error {
	for _, c := range copies {
		if err := c.tensor.CopyFrom(c.copy); err != nil {
			return fmt.Errorf("restore operand %q: %w", c.name, err)
		}
	}
	return nil
}
