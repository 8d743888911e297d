package opmanager_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/fardevice"
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
// declaration or, unless it is one for a device, when it is called.
func picky(random *rand.Rand, op opregistry.Handle, id, vendor string, kind opregistry.Kind, on *fardevice.Backend) opregistry.Impl {
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
	if on != nil {
		impl.Support.Devices = []device.Type{fardevice.Type}
		work.do = func(a addArgs) error {
			in, out := on.Floats(a.In), on.Floats(a.Out)
			for i := range in {
				out[i] = in[i] + 1
			}
			return nil
		}
	}
	if on != nil || random.IntN(2) == 0 {
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

// onBackends runs a test with operands in host memory and on a device.
func onBackends(t *testing.T, test func(t *testing.T, on device.Backend)) {
	t.Parallel()
	for name, on := range map[string]device.Backend{"host": cpu.New(), "device": fardevice.New(0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, on)
		})
	}
}

// pickyManager returns a Manager with picky impls for the host and, if that is where operands are,
// for a device, under a policy that selects the reference.
func pickyManager(t *testing.T, random *rand.Rand, on device.Backend, set opmanager.Settings) *opmanager.Manager {
	t.Helper()
	registry := opregistry.NewRegistry()
	source := opregistry.Source{Name: "picky"}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		source.Impls = append(source.Impls,
			picky(random, op, "vendor.acme", "acme", opregistry.KindVendor, nil),
			picky(random, op, "vendor.other", "other", opregistry.KindVendor, nil),
			picky(random, op, "default.flagos", "", opregistry.KindFlagos, nil),
			picky(random, op, "reference.go", "", opregistry.KindReference, nil))
		if far, ok := on.(*fardevice.Backend); ok {
			source.Impls = append(source.Impls,
				picky(random, op, "vendor.acme_far", "acme", opregistry.KindVendor, far),
				picky(random, op, "vendor.other_far", "other", opregistry.KindVendor, far))
		}
	}
	require.NoError(t, registry.Register(source))
	start := oppolicy.Default()
	start.Prefer = opregistry.KindReference
	start.PerOp = []oppolicy.OpRule{{Pattern: "*", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}
	return opmanager.New(registry, start, set)
}

// callers makes the calls of a program: every op with every size, some of them in a layer, on
// operands in host memory or on a device.
type callers struct {
	sizes    []int
	on       device.Backend
	add      []*opmanager.Bound[addArgs]
	fwd, bwd *opmanager.Bound[pairArgs]
}

func bindAll(m *opmanager.Manager, on device.Backend) callers {
	return callers{
		sizes: expectedSizes,
		on:    on,
		add:   []*opmanager.Bound[addArgs]{opmanager.MustBind(m, addOne), opmanager.MustBind(m.Layer(1), addOne)},
		fwd:   opmanager.MustBind(m.Phase(oppolicy.PhaseForward), pairFwd), bwd: opmanager.MustBind(m.Phase(oppolicy.PhaseBackward), pairBwd),
	}
}

func (c callers) call() error {
	for _, n := range c.sizes {
		if err := c.callWith(n); err != nil {
			return err
		}
	}
	return nil
}

func (c callers) callWith(n int) (err error) {
	var args addArgs
	for _, operand := range []**tensor.Tensor{&args.In, &args.Out} {
		if *operand, err = tensor.New(c.on, tensor.F32, n); err != nil {
			return err
		}
		defer (*operand).Release()
	}
	for _, add := range c.add {
		if err := add.Call(args); err != nil {
			return fmt.Errorf("add_one of %d: %w", n, err)
		}
	}
	for {
		saved := &opregistry.Saved{}
		if err := c.fwd.Call(pairArgs{args.In, args.Out, saved}); err != nil {
			return fmt.Errorf("pair_fwd of %d: %w", n, err)
		}
		err := c.bwd.Call(pairArgs{args.In, args.Out, saved})
		if failed, ok := errors.AsType[*opmanager.CallError](err); !ok || !failed.PutBack {
			if err != nil {
				return fmt.Errorf("pair_bwd of %d: %w", n, err)
			}
			return nil
		}
	}
}

// Whatever impls decline and whatever a policy says: one that is accepted serves all calls that the
// program has announced, and one that is refused changes nothing.
func TestAcceptedPoliciesServe(t *testing.T) {
	onBackends(t, acceptPolicies)
}

func acceptPolicies(t *testing.T, on device.Backend) {
	accepted, refused, wrong := 0, 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 33))
		m := pickyManager(t, random, on, opmanager.Settings{})
		calls, err := m.Trace(func(m *opmanager.Manager) error { return bindAll(m, on).call() })
		require.NoError(t, err)
		require.Len(t, calls, 3*len(expectedSizes))
		require.NoError(t, m.Expect(calls))
		program := bindAll(m, on)
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
	assert.Equal(t, 3, f.vendor.calls, "a fault may pass")
	f.vendor.do = panics
	require.NoError(t, f.Expect(nil))
	assert.ErrorContains(t, f.Expect(calls), "it panicked when it was tried: boom")
	f.vendor.calls, f.vendor.do = 0, func(a addArgs) error {
		if f.vendor.calls < 3 {
			return panics(a)
		}
		return nil
	}
	require.NoError(t, f.Expect(calls), "the third attempt succeeds")
	require.NoError(t, f.Expect(calls), "the first one does")
}

// A trace is over when the program fails.
func TestTraceOfAProgramThatFails(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	broken := errors.New("broken")
	_, err := f.Trace(func(*opmanager.Manager) error { return broken })
	require.ErrorIs(t, err, broken)
}
