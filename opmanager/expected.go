package opmanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// Expect makes known which calls a program is going to make. From then on PolicyStack.Set refuses a
// policy that leaves one of them without an impl, and DryRun says so. If the policy in force does,
// the last one before it that serves all of them is put in force again, of those that the stack has
// had by Set; without such a policy the error is an *UnservedError.
//
// A call that the program has not announced, and that the policy in force does not serve, also puts
// the last policy in force again that serves it, and is then expected. The first policy has none
// before it, and calls that it does not serve fail.
//
// Which calls an impl serves is known from its declared Support. Where a policy leaves no reference
// to fall back to, or allows no fallback because it is strict, the impls that would serve are also
// tried, until one of three attempts at a call succeeds, on operands of their own that are filled
// with ones. The same goes for ops whose forward and backward call one impl has to serve. Larger
// calls than 256 MiB, those in which other processes take part, and impls for devices are not
// tried.
//
// A call on a device is also served by impls for the host, on copies of its operands, unless the
// policy allows none.
func (m *Manager) Expect(calls []ExpectedCall) error {
	root := m.root
	e := &expectation{core: m.core}
	for _, call := range calls {
		x := expectedCall{ExpectedCall: call, verdicts: map[uint64]string{}}
		for _, at := range call.Places {
			x.views = append(x.views, root.at(scope{layer: max(0, at.Layer+1), phase: at.Phase}))
		}
		e.calls = append(e.calls, x)
	}
	m.core.mu.Lock()
	root.expected.Store(e)
	now := currentTables(root.views())
	m.core.mu.Unlock()
	err := e.settled(now)
	refused, ok := errors.AsType[*UnservedError](err)
	if !ok {
		return err
	}
	p := root.stack.present()
	for k := len(p.earlier) - 1; k >= 0; k-- {
		if e.settled(root.stack.tables(p, k)) == nil {
			at := refused.Ops[0]
			root.stack.goBack(p, k, PolicyPutBack{Op: at.Op, Call: at.Call, Where: at.Where, Cause: err})
			return nil
		}
	}
	return err
}

// expectation is what a program has said about the calls that it is going to make.
type expectation struct {
	core *core

	mu    sync.Mutex // of the verdicts
	calls []expectedCall
}

// expectedCall is a call with what is known about it.
type expectedCall struct {
	ExpectedCall
	views    []*Manager        // of the places
	verdicts map[uint64]string // why an impl does not serve the call, "" if it does, by its number
}

// trialCall is a call on which an impl has to be tried.
type trialCall struct {
	call *expectedCall
	impl *candidate
}

// settled returns an *UnservedError if tables leave a call without an impl. It first tries what has
// to be tried, which may take long.
func (e *expectation) settled(tables map[*Manager]*table) error {
	for {
		trials, err := e.check(tables)
		if len(trials) == 0 {
			return err
		}
		e.try(trials)
	}
}

// try runs impls on copies of calls and keeps the verdicts.
func (e *expectation) try(trials []trialCall) {
	for _, t := range trials {
		reason := e.core.try(t.impl, t.call)
		e.mu.Lock()
		t.call.verdicts[t.impl.number] = reason
		e.mu.Unlock()
	}
}

// check returns an *UnservedError if tables leave a call without an impl, or else the impls that
// have to be tried before that is known.
func (e *expectation) check(tables map[*Manager]*table) (trials []trialCall, err error) {
	if e == nil {
		return nil, nil
	}
	unserved := map[string]*unservedCalls{}
	e.mu.Lock()
	defer e.mu.Unlock()
	forward := map[familyCall][]*candidate{}
	for _, backward := range []bool{false, true} {
		for i := range e.calls {
			call := &e.calls[i]
			family := call.Op.Family()
			if (family != "" && !call.Op.Forward()) != backward {
				continue
			}
			type place struct {
				table *table
				layer int
			}
			done := map[place]bool{}
			for _, view := range call.views {
				t := tables[view]
				op, known := t.registry.Index(call.Op.Name())
				if !known || done[place{t, view.scope.layer}] {
					continue
				}
				r, key := t.rowOn(op, call.on), familyCall{view.scope.layer, family, leadOf(call.args)}
				done[place{t, key.layer}] = true
				var v verdict
				if owners := forward[key]; backward && len(owners) > 0 {
					v = call.servedByAll(t, op, owners)
				} else {
					v = call.servedBy(t, op)
				}
				switch {
				case v.unknown != nil:
					trials = append(trials, trialCall{call, v.unknown})
				case v.by == nil:
					o := UnservedOp{Op: call.Op.Name(), Call: call.args.Describe(), Rejected: v.reasons}
					if !r.onHost() {
						o.Call += " on " + call.on.String()
					}
					same := o.String()
					if unserved[same] == nil {
						unserved[same] = &unservedCalls{op: o}
					}
					unserved[same].scopes = append(unserved[same].scopes, view.scope)
				case family != "" && !slices.Contains(forward[key], v.by):
					forward[key] = append(forward[key], v.by)
				}
			}
		}
	}
	if len(unserved) > 0 {
		refused := &UnservedError{}
		for _, same := range slices.Sorted(maps.Keys(unserved)) {
			u := unserved[same]
			u.op.Where = describeScopes(u.scopes)
			refused.Ops = append(refused.Ops, u.op)
		}
		return nil, refused
	}
	return trials, nil
}

// unservedCalls are calls of several layers and phases that differ in nothing else.
type unservedCalls struct {
	op     UnservedOp
	scopes []scope
}

// familyCall is what a forward call and its backward call have in common.
type familyCall struct {
	layer        int
	family, lead string
}

// leadOf describes the dtype of the lead operand of a call.
func leadOf(call opregistry.Call) string {
	if lead := call.Lead(); lead != nil {
		return lead.DType().String()
	}
	return ""
}

// verdict says which candidate serves a call, or why none does, or which one has to be tried first.
type verdict struct {
	by, unknown *candidate
	reasons     []oppolicy.Rejection
}

// servedBy returns the verdict about the candidates for the device of the call or, where a policy
// lets its operands be copied, about those for the host.
func (x *expectedCall) servedBy(t *table, op int) verdict {
	r := t.rowOn(op, x.on)
	v := x.servedIn(t, r)
	if v.by != nil || v.unknown != nil || r.onHost() || t.policy.Strict && r.head != nil {
		return v
	}
	if t.policy.CrossDevice == oppolicy.CrossDeviceError {
		v.reasons = append(v.reasons, oppolicy.Rejection{ID: "any on the host", Reason: fmt.Sprintf("the policy copies no operands (cross_device=error, %s)", t.policy.Source(oppolicy.FieldCrossDevice))})
		return v
	}
	host := x.servedIn(t, &t.rows[op])
	host.reasons = slices.Concat(v.reasons, host.reasons)
	return host
}

// servedIn returns the verdict about the candidates of a row, in their order.
func (x *expectedCall) servedIn(t *table, r *row) verdict {
	if len(r.order) == 0 {
		return verdict{reasons: r.rejected}
	}
	fallback := x.fallback(t, r)
	if fallback != nil && x.Op.Family() == "" {
		return verdict{by: fallback}
	}
	var v verdict
	for _, c := range r.order {
		if c == fallback {
			return verdict{by: c}
		}
		reason, known := x.reason(r, c)
		if !known {
			return verdict{unknown: c}
		}
		if reason == "" {
			return verdict{by: c}
		}
		v.reasons = append(v.reasons, oppolicy.Rejection{ID: c.info.ID, Reason: reason})
		if t.policy.Strict {
			v.reasons = append(v.reasons, oppolicy.Rejection{ID: "any other", Reason: fmt.Sprintf("the policy is strict (%s) and allows no fallback", t.policy.Source(oppolicy.FieldStrict))})
			break
		}
	}
	v.reasons = append(v.reasons, r.rejected...)
	return v
}

// fallback returns the reference if a call that other impls decline falls back to it.
func (x *expectedCall) fallback(t *table, r *row) *candidate {
	if t.policy.Strict {
		return nil
	}
	i := slices.IndexFunc(r.order, func(c *candidate) bool {
		return c.info.Kind == opregistry.KindReference && x.declared(c) == ""
	})
	if i < 0 {
		return nil
	}
	return r.order[i]
}

// servedByAll returns the verdict about a backward call, which the impl of its forward call has to
// serve: any of owners.
func (x *expectedCall) servedByAll(t *table, op int, owners []*candidate) verdict {
	v := verdict{by: owners[0]}
	for _, owner := range owners {
		r, reason := t.rowOn(op, x.on), "it is no candidate for the backward op"
		i := position(r.order, owner.info.ID)
		if i < 0 && !r.onHost() && t.policy.CrossDevice != oppolicy.CrossDeviceError {
			r = &t.rows[op]
			i = position(r.order, owner.info.ID)
		}
		if i >= 0 {
			c := r.order[i]
			if c == x.fallback(t, r) {
				continue
			}
			var known bool
			if reason, known = x.reason(r, c); !known {
				return verdict{unknown: c}
			}
		}
		if reason != "" {
			v.by = nil
			v.reasons = append(v.reasons, oppolicy.Rejection{ID: owner.info.ID, Reason: reason + "; it serves the forward op, and only it can read the saved state"})
		}
	}
	return v
}

// declared returns why the Support of an impl rules the call out, "" if it does not.
func (x *expectedCall) declared(c *candidate) string {
	if c.support == nil {
		return ""
	}
	if err := x.args.Served(c.support); err != nil {
		return strings.TrimPrefix(err.Error(), opregistry.ErrUnsupported.Error()+": ")
	}
	return ""
}

// reason returns why a candidate of a row does not serve the call, "" if it does. known is false if
// the impl has to be tried.
func (x *expectedCall) reason(r *row, c *candidate) (reason string, known bool) {
	if reason := x.declared(c); reason != "" {
		return reason, true
	}
	reason, known = x.verdicts[c.number]
	return reason, known || !r.onHost()
}

// maxTrialBytes bounds the operands of calls on which impls are tried. What an impl declares about
// larger ones is believed.
const maxTrialBytes = 256 << 20

// maxTrials is how often an impl may decline or fail a call before it counts as one that does not
// serve it. A fault that passes leaves a run to the fallback of its calls.
const maxTrials = 3

// try runs an impl on copies of a call and returns why it does not serve it, "" if it does.
func (c *core) try(impl *candidate, x *expectedCall) (reason string) {
	for range maxTrials {
		if reason = c.tryOnce(impl, x); reason == "" {
			break
		}
	}
	return reason
}

func (c *core) tryOnce(impl *candidate, x *expectedCall) (reason string) {
	if x.Op.Collective() {
		return "" // the other processes would have to try it, too
	}
	size := 0
	for _, o := range x.args.Operands() {
		if o.Tensor != nil {
			size += o.Tensor.NumElements() * o.Tensor.DType().Size()
		}
	}
	if size > maxTrialBytes {
		return ""
	}
	args, err := argcopy.Replace(x.args, filled)
	if err != nil {
		return "" // what cannot be tried is believed
	}
	defer func() {
		if cause := recover(); cause != nil {
			reason = fmt.Sprintf("it panicked when it was tried: %v", cause)
		}
	}()
	switch err := args.Run(impl.run, c.exec); {
	case err == nil:
		return ""
	case errors.Is(err, opregistry.ErrUnsupported):
		return strings.TrimPrefix(err.Error(), opregistry.ErrUnsupported.Error()+": ")
	default:
		return "it failed when it was tried: " + err.Error()
	}
}
