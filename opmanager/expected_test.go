package opmanager_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// policiesPerSeed are the policies that TestAcceptedPoliciesServe tries for each set of impls.
const policiesPerSeed = 60

// expectedSizes are the numbers of elements of the calls that the programs of these tests make.
var expectedSizes = []int{1, 7, 64, 1000}

// picky returns a random impl of an op, which declines the sizes that a bit of declines says: in a
// declaration or when it is called.
func picky(random *rand.Rand, op opregistry.Handle, id, vendor string, kind opregistry.Kind) opregistry.Impl {
	declines := 0
	if kind != opregistry.KindReference && random.IntN(3) > 0 {
		declines = random.IntN(1 << len(expectedSizes))
	}
	decide := func(in *tensor.Tensor) error {
		for i, n := range expectedSizes {
			if in.NumElements() == n && declines>>i&1 != 0 {
				return opregistry.Unsupported("%d elements", n)
			}
		}
		return nil
	}
	work := &scripted{}
	impl := opregistry.Impl{Op: op, ID: id, Kind: kind, Vendor: vendor, Priority: 50 + random.IntN(100)}
	if random.IntN(2) == 0 {
		impl.Support.Call = any(func(a addArgs) error { return decide(a.In) })
		if op.Family() != "" {
			impl.Support.Call = func(a pairArgs) error { return decide(a.In) }
		}
	}
	impl.Run = runOf(op, func(x *opregistry.Exec, a addArgs) error {
		if err := decide(a.In); err != nil {
			return err
		}
		return work.run(x, a)
	})
	return impl
}

// pickyManager returns a Manager with picky impls, under a policy that selects the reference.
func pickyManager(t *testing.T, random *rand.Rand, set opmanager.Settings) *opmanager.Manager {
	t.Helper()
	registry := opregistry.NewRegistry()
	source := opregistry.Source{Name: "picky"}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		source.Impls = append(source.Impls,
			picky(random, op, "vendor.acme", "acme", opregistry.KindVendor),
			picky(random, op, "vendor.other", "other", opregistry.KindVendor),
			picky(random, op, "default.flagos", "", opregistry.KindFlagos),
			picky(random, op, "reference.go", "", opregistry.KindReference))
	}
	require.NoError(t, registry.Register(source))
	start := oppolicy.Default()
	start.Prefer = opregistry.KindReference
	start.PerOp = []oppolicy.OpRule{{Pattern: "*", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}
	return opmanager.New(registry, start, set)
}

// callers makes the calls of a program: every op with every size, some of them in a layer.
type callers struct {
	sizes    []int
	add      []*opmanager.Bound[addArgs]
	fwd, bwd *opmanager.Bound[pairArgs]
}

func bindAll(m *opmanager.Manager) callers {
	return callers{
		sizes: expectedSizes,
		add:   []*opmanager.Bound[addArgs]{opmanager.MustBind(m, addOne), opmanager.MustBind(m.Layer(1), addOne)},
		fwd:   opmanager.MustBind(m.Phase(oppolicy.PhaseForward), pairFwd), bwd: opmanager.MustBind(m.Phase(oppolicy.PhaseBackward), pairBwd),
	}
}

func (c callers) call() error {
	for _, n := range c.sizes {
		values := func() *tensor.Tensor {
			t, err := tensor.FromSlice(make([]float32, n), n)
			if err != nil {
				panic(err)
			}
			return t
		}
		for _, add := range c.add {
			if err := add.Call(addArgs{values(), values()}); err != nil {
				return fmt.Errorf("add_one of %d: %w", n, err)
			}
		}
		for again := true; again; {
			saved := &opregistry.Saved{}
			if err := c.fwd.Call(pairArgs{values(), values(), saved}); err != nil {
				return fmt.Errorf("pair_fwd of %d: %w", n, err)
			}
			err := c.bwd.Call(pairArgs{values(), values(), saved})
			failed, ok := errors.AsType[*opmanager.CallError](err)
			if again = ok && failed.PutBack; err != nil && !again {
				return fmt.Errorf("pair_bwd of %d: %w", n, err)
			}
		}
	}
	return nil
}

// Whatever impls decline and whatever a policy says: one that is accepted serves all calls that the
// program has announced, and one that is refused changes nothing.
func TestAcceptedPoliciesServe(t *testing.T) {
	t.Parallel()
	accepted, refused, wrong := 0, 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 33))
		m := pickyManager(t, random, opmanager.Settings{})
		calls, err := m.Trace(func(m *opmanager.Manager) error { return bindAll(m).call() })
		require.NoError(t, err)
		require.Len(t, calls, 3*len(expectedSizes))
		require.NoError(t, m.Expect(calls))
		program := bindAll(m)
		require.NoError(t, program.call())

		for step := range policiesPerSeed {
			g := generated(random, fmt.Sprint(step))
			delete(g, oppolicy.FieldQuarantine)
			layer := g.layer()
			before := m.PolicyStack().State()
			dry := m.PolicyStack().DryRun(opmanager.LayerService, layer)
			_, err := m.PolicyStack().Set(opmanager.LayerService, layer)
			require.Equal(t, dry.Refused == nil, err == nil, "%v, %v", dry.Refused, err)
			if err != nil {
				refused++
				require.ErrorAs(t, err, new(*opmanager.UnservedError))
				require.Equal(t, before, m.PolicyStack().State())
			} else {
				accepted++
			}
			if err := program.call(); err != nil {
				wrong++
				assert.NoError(t, err, "seed %d, policy %d: %+v", seed, step, m.Policy().View())
			}
		}
		m.Close()
	}
	t.Logf("%d policies accepted, %d refused", accepted, refused)
	assert.Greater(t, accepted, 500)
	assert.Greater(t, refused, 500)
	assert.Zero(t, wrong)
}

// A policy that is in force when the calls become known is an error, which names the call and why
// each impl declines it.
func TestExpectUnderAPolicyThatDoesNotServe(t *testing.T) {
	t.Parallel()
	f := newManager(t, func(p *oppolicy.Policy) {
		p.PerOp = []oppolicy.OpRule{{Pattern: "add_one", Order: []oppolicy.Token{{Kind: opregistry.KindVendor}}, Source: "p.yaml:1"}}
	}, opmanager.Settings{})
	f.vendor.do = declines
	calls, err := f.Trace(func(m *opmanager.Manager) error {
		return opmanager.MustBind(m, addOne).Call(newArgs(t))
	})
	require.NoError(t, err)
	assert.Zero(t, f.vendor.calls+f.flagos.calls+f.reference.calls, "a trace computes nothing")
	err = f.Expect(calls)
	assert.ErrorContains(t, err, `policy: it leaves calls without an impl: op "add_one" is called outside of layers with in f32 [`)
	assert.ErrorContains(t, err, `impl "vendor.acme": dtype f32`)
	assert.Equal(t, 1, f.vendor.calls, "it is tried once")
	f.vendor.do = panics
	require.NoError(t, f.Expect(nil))
	assert.ErrorContains(t, f.Expect(calls), "it panicked when it was tried: boom")
	f.vendor.do = nil
	require.NoError(t, f.Expect(calls))
}

// A trace is over when the program fails.
func TestTraceOfAProgramThatFails(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	broken := errors.New("broken")
	_, err := f.Trace(func(*opmanager.Manager) error { return broken })
	require.ErrorIs(t, err, broken)
}
