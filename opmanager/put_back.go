package opmanager

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// PolicyPutBack is a return to an earlier policy, because the one in force did not serve a call.
// It follows the rules of Manager.Expect.
type PolicyPutBack struct {
	Generation uint64 `json:"generation"` // of the dispatch table that begins with the earlier policy
	Op         string `json:"op"`
	// Call describes the operands, and Where the layers and phases that the call comes from.
	Call  string `json:"call,omitempty"`
	Where string `json:"where,omitempty"`
	// Layers are the layers of the policy that are what they were before, such as
	// "fleet (etcd:primus/policy@7)".
	Layers []string `json:"layers"`
	Cause  error    `json:"-"` // why the call was not served
}

// String returns what was put back, and why.
func (p PolicyPutBack) String() string {
	return fmt.Sprintf("the policy of %s did not serve op %q and is taken back: %v", strings.Join(p.Layers, " and "), p.Op, p.Cause)
}

func (PolicyPutBack) event() {}

// maxEarlier bounds the number of earlier policies that a PolicyStack keeps: the first and the
// last ones.
const maxEarlier = 16

// remember keeps layers that are about to be replaced. The caller holds core.mu.
func (s *PolicyStack) remember(layers PolicyLayers) {
	if len(s.earlier) == maxEarlier {
		s.earlier = slices.Delete(slices.Clone(s.earlier), 1, 2)
	}
	s.earlier = append(slices.Clip(s.earlier), layers)
}

// PutBack returns the returns to earlier policies, in their order.
func (s *PolicyStack) PutBack() []PolicyPutBack {
	s.manager.core.mu.Lock()
	defer s.manager.core.mu.Unlock()
	return slices.Clone(s.returns)
}

// present is a policy of a stack at one time, with those before it.
type present struct {
	since   uint64
	layers  PolicyLayers
	earlier []PolicyLayers
	views   []*Manager
	in      inputs
}

func (s *PolicyStack) present() present {
	m := s.manager
	m.core.mu.Lock()
	defer m.core.mu.Unlock()
	return present{s.since, s.layers, s.earlier, m.views(), m.table.Load().inputs}
}

// tables returns the tables of the k-th earlier policy.
func (s *PolicyStack) tables(p present, k int) map[*Manager]*table {
	m := s.manager
	m.core.mu.Lock()
	defer m.core.mu.Unlock()
	policy := p.earlier[k].Policy()
	return m.core.buildTables(p.views, &policy, p.in, m.history)
}

// goBack puts the k-th earlier policy in force, unless another one than p is by now.
func (s *PolicyStack) goBack(p present, k int, why PolicyPutBack) {
	m := s.manager
	generation, err := m.core.apply(func(in inputs) (*Manager, error) {
		if s.since != p.since {
			return nil, errChanged
		}
		policy := p.earlier[k].Policy()
		s.layers, s.earlier, s.since, m.policy = p.earlier[k], p.earlier[:k:k], in.generation, &policy
		why.Generation, why.Layers = in.generation, differences(p.layers, s.layers)
		s.returns = append(s.returns, why)
		storeTables(m.core.buildTables(m.views(), &policy, in, m.history))
		return m, nil
	})
	if err != nil {
		return
	}
	m.core.emit(why)
	m.core.emit(PolicyChanged{Generation: generation})
}

// errChanged says that a policy is no longer in force.
var errChanged = errors.New("another policy is in force")

// differences returns the layers of one policy that another does not have.
func differences(of, from PolicyLayers) []string {
	var names []string
	for _, kind := range LayerKinds() {
		if reflect.DeepEqual(of[kind], from[kind]) {
			continue
		}
		name := kind.String()
		if origin := of[kind].Origin; origin != "" {
			name += " (" + origin + ")"
		}
		names = append(names, name)
	}
	return names
}

// serveEarlier serves a call that the table t has not served, for the reason err. If the program
// has said which calls it makes, and the policy has changed since, the last earlier policy that
// serves the call is put in force.
func (b *binding) serveEarlier(t *table, r *row, a opregistry.Call, err error) (*candidate, error) {
	s := b.m.root.stack
	expected, failed := b.m.root.expected.Load(), (*CallError)(nil)
	if expected == nil || !errors.As(err, &failed) {
		return nil, err
	}
	p := s.present()
	for t.generation < p.since && b.repeatable(failed, a) { // the policy has changed during the call
		t = b.m.table.Load()
		r = t.like(r, b.index, a)
		var used *candidate
		if used, err = b.serveUnder(t, r, nil, a); err == nil || !errors.As(err, &failed) {
			return used, err
		}
		p = s.present()
	}
	found, why := failed, PolicyPutBack{Op: b.name, Call: a.Describe(), Where: describeScopes([]scope{b.m.scope}), Cause: err}
	for k := len(p.earlier) - 1; k >= 0; k-- {
		before := s.tables(p, k)[b.m]
		if before == nil {
			continue // the Manager of a layer that was made in the meantime
		}
		row := before.like(r, b.index, a)
		if failed.savedState {
			if row.head == nil && before.policy.CrossDevice != oppolicy.CrossDeviceError {
				row = before.rows[b.index].variant(a.Signature()) // of the host, on copies
			}
			if len(failed.Tried) == 0 || row.head == nil || row.head.info.ID == a.Saved().Owner() {
				continue
			}
			s.goBack(p, k, why)
			again := *failed
			again.PutBack = true
			return nil, &again
		}
		if !b.repeatable(failed, a) {
			break
		}
		used, fault := b.serveUnder(before, row, nil, a)
		if fault == nil {
			expected.add(b, a, r, found)
			s.goBack(p, k, why)
			return used, nil
		}
		if !errors.As(fault, &failed) {
			break
		}
	}
	return nil, err
}

// repeatable reports whether a call that has failed may run again: nothing was written in place,
// and no other rank takes part.
func (b *binding) repeatable(failed *CallError, a opregistry.Call) bool {
	if failed.savedState {
		return false
	}
	safe := !b.handle.Collective() && len(a.Updated()) == 0
	return safe || !slices.ContainsFunc(failed.Tried, func(err error) bool {
		return !errors.Is(err, opregistry.ErrUnsupported) && !errors.Is(err, opregistry.ErrUntouched)
	})
}

// like returns the row for a call that is served by a row of another table.
func (t *table) like(r *row, op int, a opregistry.Call) *row {
	return t.rowOn(op, r.on).variant(a.Signature())
}

// add adds a call that was not foreseen, with what is known about it.
func (e *expectation) add(b *binding, a opregistry.Call, r *row, failed *CallError) {
	outlined, err := argcopy.Replace(a, outline)
	if err != nil {
		return
	}
	x := expectedCall{ExpectedCall: ExpectedCall{Op: b.handle, args: outlined, on: r.on}, views: []*Manager{b.m}, verdicts: map[uint64]string{}}
	for _, cause := range failed.Tried {
		impl, ok := errors.AsType[*opregistry.ImplError](cause)
		if i := -1; ok {
			if i = position(r.order, impl.ID); i >= 0 {
				x.verdicts[r.order[i].number] = strings.TrimPrefix(impl.Err.Error(), opregistry.ErrUnsupported.Error()+": ")
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, x)
}
