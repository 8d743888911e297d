package opmanager_test

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// hammerImpls are the ids of the impls; a set of them is a mask of their indexes.
var hammerImpls = []string{"vendor.red", "vendor.green", "vendor.blue", "default.flagos", "reference.go"}

const hammerLayers = 16

// hammerRule and hammerPolicy describe policies apart from how the manager reads
// them. They forbid vendors, by index.
type hammerRule struct {
	first, last int
	phase       oppolicy.Phase
	deny, allow []int
}

type hammerPolicy struct {
	deny, allow []int
	order       []int // for every op, nothing else may run
	rules       []hammerRule
}

var hammerPolicies = []hammerPolicy{
	{},
	{deny: []int{0}},
	{deny: []int{1, 2}},
	{allow: []int{}},
	{allow: []int{1}, deny: []int{2}},
	{order: []int{2, 3}},
	{order: []int{1, 4}, deny: []int{1}},
	{rules: []hammerRule{{0, 3, 0, []int{0}, nil}, {2, 9, oppolicy.PhaseBackward, []int{2}, nil}, {0, hammerLayers, oppolicy.PhaseForward, nil, []int{0, 1}}}},
	{deny: []int{1}, rules: []hammerRule{{5, 7, 0, []int{0, 2}, []int{1}}}},
}

func vendorNames(indexes []int) []string {
	if indexes == nil {
		return nil
	}
	names := make([]string, len(indexes))
	for i, v := range indexes {
		names[i] = hammerImpls[v][len("vendor."):]
	}
	return names
}

func (h hammerPolicy) policy() oppolicy.Policy {
	p := oppolicy.Default()
	p.Prefer, p.Deny, p.Allow = opregistry.KindVendor, vendorNames(h.deny), vendorNames(h.allow)
	p.Quarantine = oppolicy.Quarantine{Backoff: time.Millisecond}
	if h.order != nil {
		rule := oppolicy.OpRule{Pattern: "*"}
		for _, i := range h.order {
			rule.Order = append(rule.Order, oppolicy.Token{Impl: hammerImpls[i]})
		}
		p.PerOp = []oppolicy.OpRule{rule}
	}
	for _, r := range h.rules {
		p.Rules = append(p.Rules, oppolicy.Rule{
			Layers: []oppolicy.LayerRange{{First: r.first, Last: r.last}}, Phase: r.phase, Deny: vendorNames(r.deny), Allow: vendorNames(r.allow),
		})
	}
	return p
}

// forbidden returns the impls that must not run in a layer and phase; a layer below 0 is none.
func (h hammerPolicy) forbidden(layer int, phase oppolicy.Phase) uint {
	mask := uint(0)
	forbid := func(deny, allow []int) {
		for v := range 3 {
			if slices.Contains(deny, v) || allow != nil && !slices.Contains(allow, v) {
				mask |= 1 << v
			}
		}
	}
	forbid(h.deny, h.allow)
	for _, r := range h.rules {
		if r.first <= layer && layer <= r.last && (r.phase == 0 || r.phase == phase) {
			forbid(r.deny, r.allow)
		}
	}
	for i := range hammerImpls {
		if h.order != nil && !slices.Contains(h.order, i) {
			mask |= 1 << i
		}
	}
	return mask
}

// hammerImpl leaves in the output that it ran: the first element is the mask of the
// impls that did, the second how many runs there were.
func hammerImpl(op opregistry.Handle, index, priority int) opregistry.Impl {
	var calls atomic.Uint64
	impl := opregistry.Impl{Op: op, ID: hammerImpls[index], Kind: opregistry.KindVendor, Priority: priority}
	switch index {
	case 3:
		impl.Kind = opregistry.KindFlagos
	case 4:
		impl.Kind = opregistry.KindReference
	default:
		impl.Vendor = vendorNames([]int{index})[0]
	}
	impl.Run = runOf(op, func(_ *opregistry.Exec, a addArgs) error {
		out := tensor.Data[float32](a.Out)
		out[0] = float32(uint(out[0]) | 1<<index)
		out[1]++
		n := calls.Add(1)
		switch {
		case index == 0 && n%101 == 0:
			panic("red")
		case index == 1 && n%3 == 0:
			return opregistry.Unsupported("every third call")
		case index == 2 && n%5 == 0:
			return errors.New("blue")
		}
		return nil
	})
	return impl
}

func hammerSource(name string, priority int, indexes ...int) opregistry.Source {
	src := opregistry.Source{Name: name}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		for _, i := range indexes {
			src.Impls = append(src.Impls, hammerImpl(op, i, priority))
		}
	}
	return src
}

// seen is what ran in a call of a known generation.
type seen struct {
	generation uint64
	layer      int
	phase      oppolicy.Phase
	ran        uint
}

// hammerCaller calls ops and keeps what it saw.
type hammerCaller struct {
	t    *testing.T
	args addArgs
	seen map[seen]struct{}
}

func newHammerCaller(t *testing.T) *hammerCaller {
	t.Helper()
	return &hammerCaller{t: t, args: newArgs(t), seen: map[seen]struct{}{}}
}

// run makes a call and returns which impls ran in it.
func (c *hammerCaller) run(call func(addArgs) error) (ran uint, err error) {
	out := tensor.Data[float32](c.args.Out)
	out[0], out[1] = 0, 0
	err = call(c.args)
	ran = uint(out[0])
	assert.Equal(c.t, bits.OnesCount(ran), int(out[1]), "no impl runs twice in a call")
	return ran, err
}

// call makes a call that has to succeed through a view of a place.
func (c *hammerCaller) call(m *opmanager.Manager, layer int, phase oppolicy.Phase, call func(addArgs) error) uint {
	before := m.Generation()
	ran, err := c.run(call)
	assert.NoError(c.t, err)
	if m.Generation() == before {
		c.seen[seen{before, layer, phase, ran}] = struct{}{}
	}
	return ran
}

// place returns a view of a random place of a model.
func place(m *opmanager.Manager) (view *opmanager.Manager, layer int, phase oppolicy.Phase) {
	view, layer, phase = m, rand.IntN(hammerLayers+1)-1, oppolicy.Phase(rand.IntN(3))
	if layer >= 0 {
		view = view.Layer(layer)
	}
	return view.Phase(phase), layer, phase
}

// everything calls in a place in each way there is.
func (c *hammerCaller) everything(m *opmanager.Manager) {
	view, layer, phase := place(m)
	c.call(view, layer, phase, opmanager.MustBind(view, addOne).Call)
	c.call(view, layer, phase, func(a addArgs) error { return opmanager.Call(view, "add_one", a) })

	pair := pairArgs{In: c.args.In, Out: c.args.Out, Saved: new(opregistry.Saved)}
	c.call(view, layer, phase, func(addArgs) error { return opmanager.MustBind(view, pairFwd).Call(pair) })
	owner := pair.Saved.Owner()
	back, _, _ := place(m)
	ran, err := c.run(func(addArgs) error { return opmanager.MustBind(back, pairBwd).Call(pair) })
	if err != nil {
		assert.ErrorIs(c.t, err, opmanager.ErrSavedState)
	}
	if err == nil || ran != 0 {
		assert.Equal(c.t, uint(1)<<slices.Index(hammerImpls, owner), ran, "the backward op runs where the forward op ran")
	}
}

// TestHammer changes all that a call depends on while calls go on: no call runs what
// the policy of its generation forbids.
func TestHammer(t *testing.T) {
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(hammerSource("base", 100, 0, 2, 3, 4)))
	m := opmanager.New(registry, hammerPolicies[0].policy(), opmanager.Settings{})
	defer m.Close()

	type change struct {
		generation uint64
		policy     int
	}
	changes := []change{{0, 0}}
	end := time.Now().Add(hammerTime)
	var wg sync.WaitGroup
	until := func(pause time.Duration, round func()) {
		wg.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				round()
				time.Sleep(pause)
			}
		})
	}
	until(time.Millisecond, func() {
		i := rand.IntN(len(hammerPolicies))
		generation, err := m.SetPolicy(hammerPolicies[i].policy())
		assert.NoError(t, err)
		changes = append(changes, change{generation, i})
	})
	until(time.Millisecond, func() {
		assert.NoError(t, registry.Register(hammerSource("green", 50, 1)))
		assert.NoError(t, registry.Replace(hammerSource("green", 200, 1)))
		time.Sleep(time.Millisecond)
		assert.NoError(t, registry.Unregister("green"))
	})
	var explained []seen
	until(time.Millisecond, func() {
		m.ClearQuarantine("", hammerImpls[rand.IntN(3)])
		m.Reprobe()
		for _, e := range m.ExplainAll() {
			candidates := uint(0)
			for _, s := range e.Order {
				candidates |= 1 << slices.Index(hammerImpls, s.ID)
			}
			assert.Equal(t, e.Order[0].ID, e.Selected)
			explained = append(explained, seen{generation: e.Generation, layer: -1, ran: candidates})
		}
		m.Quarantines()
		m.Warnings()
		m.Stats()
	})
	viewer := newHammerCaller(t)
	until(0, func() {
		h := hammerPolicies[rand.IntN(len(hammerPolicies))]
		view := m.With(h.policy())
		defer view.Close()
		for range 10 {
			at, layer, phase := place(view)
			ran := viewer.call(at, layer, phase, opmanager.MustBind(at, addOne).Call)
			assert.Zero(t, ran&h.forbidden(layer, phase), "a view's policy changes only by itself")
		}
	})
	callers := make([]*hammerCaller, 4)
	for i := range callers {
		callers[i] = newHammerCaller(t)
		until(0, func() { callers[i].everything(m) })
	}
	wg.Wait()

	policyOf := func(generation uint64) hammerPolicy {
		n, exact := slices.BinarySearchFunc(changes, generation, func(c change, g uint64) int { return int(c.generation) - int(g) })
		if !exact {
			n--
		}
		return hammerPolicies[changes[n].policy]
	}
	for _, e := range explained {
		require.Zero(t, e.ran&policyOf(e.generation).forbidden(e.layer, e.phase), "generation %d", e.generation)
	}
	for _, c := range callers {
		require.NotEmpty(t, c.seen)
		for s := range c.seen {
			require.Zero(t, s.ran&policyOf(s.generation).forbidden(s.layer, s.phase), "%+v", s)
		}
	}
}
