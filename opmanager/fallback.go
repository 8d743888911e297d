package opmanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ErrSavedState is wrapped by the error of a backward op whose saved state can no
// longer be read: the impl that wrote it failed, or the policy, a quarantine or the
// registry has taken it away since. The forward op has to run again.
var ErrSavedState = errors.New("the saved state cannot be used")

// CallError is a call that no impl served.
type CallError struct {
	Op string
	// Tried are the impls that ran, in order, each an *opregistry.ImplError.
	Tried []error
	// Skipped are the candidates that were not tried, with the reason.
	Skipped []Rejection
	// Rejected are the impls that are no candidates, with the reason.
	Rejected []Rejection
	// Problem says why nothing more was tried.
	Problem string

	savedState bool
}

// Error names the op and for every impl of it why it did not serve the call.
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

// Unwrap returns the errors of the impls that ran, and ErrSavedState when that is
// the reason.
func (e *CallError) Unwrap() []error {
	if e.savedState {
		return append(slices.Clone(e.Tried), ErrSavedState)
	}
	return e.Tried
}

// callCold serves calls that need more than the first candidate: those of an op
// without any, of a family, under in-place protection, that may be verified, or
// with an impl whose quarantine is half open.
func (b *Bound[A]) callCold(t *table, r *row, a A) error {
	if r.head == nil {
		return &CallError{Op: b.op.Name(), Rejected: r.rejected, Problem: "no impl can be selected"}
	}
	saved := b.op.Saved(a)
	owner := ""
	if saved != nil && !b.op.Forward() {
		owner = saved.Owner()
	}
	var copies []savedOperand
	if t.policy.ProtectInPlace && owner == "" {
		var err error
		if copies, err = protect(b.op.Updated(a)); err != nil {
			return fmt.Errorf("op %q: %w", b.op.Name(), err)
		}
	}
	shadow := b.shadow(t, a)
	used, err := (*candidate)(nil), error(nil)
	if owner != "" {
		used, err = b.callOwner(t, r, owner, a)
	} else {
		used, err = b.serve(t, r, copies, nil, shadow, a)
	}
	if err != nil {
		return err
	}
	if saved != nil && b.op.Forward() {
		saved.SetOwner(used.info.ID)
	}
	if shadow != nil {
		b.verify(t, used, shadow, a)
	}
	return nil
}

// callOwner runs a backward op on the impl that its forward op ran on. No other
// impl can read the saved state, so nothing falls back.
func (b *Bound[A]) callOwner(t *table, r *row, owner string, a A) (*candidate, error) {
	i := position(r.order, owner)
	if i < 0 {
		reason := "it is not registered any more"
		for _, rej := range r.rejected {
			if rej.ID == owner {
				reason = rej.Reason
			}
		}
		return nil, &CallError{Op: b.op.Name(), Rejected: r.rejected, savedState: true,
			Problem: fmt.Sprintf("the saved state was written by impl %q, which can no longer be selected: %s; run the forward op again", owner, reason)}
	}
	if err := b.attempt(r.order[i], a); err != nil {
		b.m.core.failed(t.policy, b.op.Name(), r.order[i], err)
		return nil, &CallError{Op: b.op.Name(), Tried: []error{err}, Rejected: r.rejected, savedState: true,
			Problem: "the saved state belongs to the impl that failed, so no other may take over; run the forward op again"}
	}
	return r.order[i], nil
}

// serve tries the candidates in order by the rules of the package comment and
// returns the one that served the call. first is the error of the first candidate
// where that was tried already; s is the call as it was, nil when it is not verified.
func (b *Bound[A]) serve(t *table, r *row, copies []savedOperand, first error, s *shadow[A], a A) (*candidate, error) {
	core, op := b.m.core, b.op.Name()
	var (
		tried   []error
		skipped []Rejection
		from    *candidate // the first that was tried
	)
	for i, c := range r.order {
		stop := func(problem string) error {
			for _, c := range r.order[i+1:] {
				skipped = append(skipped, Rejection{ID: c.info.ID, Reason: "not tried"})
			}
			return &CallError{Op: op, Tried: tried, Skipped: skipped, Rejected: r.rejected, Problem: problem}
		}
		if c.trial != nil && !c.trial.take() {
			skipped = append(skipped, Rejection{ID: c.info.ID, Reason: "its quarantine is half open and another call tries it"})
			continue
		}
		err := first
		if first = nil; err == nil {
			err = b.attempt(c, a)
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
		declined := core.failed(t.policy, op, c, err)
		if declined && s != nil && s.err == nil {
			if err := b.accuse(t, c, s, a); err != nil {
				return nil, stop(err.Error())
			}
		}
		if t.policy.Strict {
			return nil, stop(fmt.Sprintf("the policy is strict (%s), so nothing falls back", t.policy.source(FieldStrict)))
		}
		if declined {
			continue
		}
		if updated := b.op.Updated(a); len(updated) > 0 && copies == nil && !errors.Is(err, opregistry.ErrUntouched) {
			return nil, stop(fmt.Sprintf("operand %q is updated in place and may be half written, so no other impl may run; set protect_in_place to allow it", updated[0].Name))
		}
		if err := restore(copies); err != nil {
			return nil, stop(err.Error())
		}
	}
	return nil, &CallError{Op: op, Tried: tried, Skipped: skipped, Rejected: r.rejected, Problem: "every candidate declined or failed"}
}

// failed records that an impl declined or failed and reports which.
func (c *core) failed(p *Policy, op string, cand *candidate, err error) (declined bool) {
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
		c.setAside(p.Quarantine, op, cand, err)
	case cand.trial != nil:
		cand.trial.give()
	}
	return declined
}

// setAside counts a failure towards a quarantine and opens it when it is time.
func (c *core) setAside(set QuarantineSettings, op string, cand *candidate, cause error) {
	if q, open := c.quarantine.fail(op, cand.info, cause, set, c.rebuild); open {
		c.emit(q)
		c.rebuild()
	}
}

// passed releases an impl whose trial succeeded.
func (c *core) passed(op string, cand *candidate) {
	if c.quarantine.passed(op, cand.info.ID, cand.trial) {
		c.rebuild()
		c.emit(Released{Op: op, Impl: cand.info})
	}
}

// savedOperand is a copy of an operand from before a call.
type savedOperand struct {
	name         string
	tensor, copy *tensor.Tensor
}

func protect(updated []opregistry.Operand) ([]savedOperand, error) {
	copies := make([]savedOperand, 0, len(updated))
	for _, o := range updated {
		c, err := copyTensor(o.Tensor)
		if err != nil {
			return nil, fmt.Errorf("protect operand %q: %w", o.Name, err)
		}
		copies = append(copies, savedOperand{name: o.Name, tensor: o.Tensor, copy: c})
	}
	return copies, nil
}

func restore(copies []savedOperand) error {
	for _, c := range copies {
		if err := c.tensor.CopyFrom(c.copy); err != nil {
			return fmt.Errorf("restore operand %q: %w", c.name, err)
		}
	}
	return nil
}
