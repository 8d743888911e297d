// Package policytest makes runs whose impls decline at random and policies at random, for tests of
// the ways in which a policy reaches a run. Whatever the way, a policy that is refused changes
// nothing, and one that is accepted does not end the run.
package policytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

type plainArgs struct {
	In  *tensor.Tensor `op:"0 in read any"`
	Out *tensor.Tensor `op:"1 out write any"`
}

type pairArgs struct {
	In    *tensor.Tensor `op:"0 in read any"`
	Out   *tensor.Tensor `op:"1 out write any"`
	Saved *opregistry.Saved
}

var (
	plain   = opregistry.NewOp("plain", opregistry.Schema[plainArgs]{})
	pairFwd = opregistry.NewOp("pair_fwd", opregistry.Schema[pairArgs]{Family: "pair", Forward: true})
	pairBwd = opregistry.NewOp("pair_bwd", opregistry.Schema[pairArgs]{Family: "pair"})
)

// The sizes of calls: those that a run announces, and one that it has not foreseen.
var (
	announced  = []int{1, 7, 64}
	unforeseen = 1000
)

// Run is a run with impls that decline some sizes, by declaration or when they are called.
type Run struct {
	Manager  *opmanager.Manager
	Accepted int
	Refused  int

	t     *testing.T
	calls calls
}

// New returns a run that has not announced its calls. Below layers its policy prefers the
// reference, which declines nothing.
func New(t *testing.T, random *rand.Rand, layers opmanager.PolicyLayers) *Run {
	t.Helper()
	source := opregistry.Source{Name: "picky"}
	for _, op := range []opregistry.Handle{plain, pairFwd, pairBwd} {
		source.Impls = append(source.Impls, impl(op, "reference.go", "", opregistry.KindReference, 0, false))
		for _, one := range []struct {
			id, vendor string
			kind       opregistry.Kind
		}{{"vendor.acme", "acme", opregistry.KindVendor}, {"vendor.other", "other", opregistry.KindVendor}, {"default.flagos", "", opregistry.KindFlagos}} {
			source.Impls = append(source.Impls, impl(op, one.id, one.vendor, one.kind, random.IntN(16)&random.IntN(16)&7|random.IntN(2)<<3, random.IntN(2) == 0))
		}
	}
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(source))
	policy := oppolicy.Default()
	policy.Verify.Mode, policy.Prefer = oppolicy.VerifyOff, opregistry.KindReference
	m := opmanager.New(registry, policy, opmanager.Settings{Layers: layers})
	t.Cleanup(m.Close)
	return &Run{Manager: m, t: t, calls: bind(m)}
}

// impl returns an impl that declines the sizes of which declines has a bit.
func impl(op opregistry.Handle, id, vendor string, kind opregistry.Kind, declines int, declares bool) opregistry.Impl {
	decide := func(in *tensor.Tensor) error {
		for i, n := range append(announced[:len(announced):len(announced)], unforeseen) {
			if in.NumElements() == n && declines>>i&1 != 0 {
				return opregistry.Unsupported("%d elements", n)
			}
		}
		return nil
	}
	made := opregistry.Impl{Op: op, ID: id, Kind: kind, Vendor: vendor}
	if op.Family() == "" {
		made.Run = opregistry.Func[plainArgs](func(_ *opregistry.Exec, a plainArgs) error { return decide(a.In) })
		if declares {
			made.Support.Call = func(a plainArgs) error { return decide(a.In) }
		}
		return made
	}
	made.Run = opregistry.Func[pairArgs](func(_ *opregistry.Exec, a pairArgs) error { return decide(a.In) })
	if declares {
		made.Support.Call = func(a pairArgs) error { return decide(a.In) }
	}
	return made
}

// Announce makes known which calls the run makes, and returns why its policy does not serve them.
func (r *Run) Announce() error {
	r.t.Helper()
	calls, err := r.Manager.Trace(func(m *opmanager.Manager) error { return bind(m).make(announced) })
	require.NoError(r.t, err)
	return r.Manager.Expect(calls)
}

// Train makes the calls that the run has announced, and then the one that nobody has foreseen.
func (r *Run) Train() (known, unknown error) {
	return r.calls.make(announced), r.calls.make([]int{unforeseen})
}

// Try lets set bring a policy to a run that has announced its calls, and fails the test if that
// ends the run, or if it is refused and changes something.
func (r *Run) Try(set func() error) {
	r.t.Helper()
	before := r.Manager.PolicyStack().State()
	if err := set(); err != nil {
		r.Refused++
		require.Equal(r.t, before, r.Manager.PolicyStack().State(), "%v", err)
	} else {
		r.Accepted++
	}
	known, unknown := r.Train()
	require.NoError(r.t, errors.Join(known, unknown), "%+v", r.Manager.Policy().View())
}

// calls are the handles of a run.
type calls struct {
	plain    *opmanager.Bound[plainArgs]
	fwd, bwd *opmanager.Bound[pairArgs]
}

func bind(m *opmanager.Manager) calls {
	layer := m.Layer(1)
	return calls{opmanager.MustBind(m, plain), opmanager.MustBind(layer.Phase(oppolicy.PhaseForward), pairFwd), opmanager.MustBind(layer.Phase(oppolicy.PhaseBackward), pairBwd)}
}

// make makes each call with each size.
func (c calls) make(sizes []int) error {
	for _, n := range sizes {
		in, err := tensor.FromSlice(make([]float32, n), n)
		if err != nil {
			return err
		}
		out, err := tensor.FromSlice(make([]float32, n), n)
		if err != nil {
			return err
		}
		if err := c.plain.Call(plainArgs{in, out}); err != nil {
			return err
		}
		for again := true; again; { // as a trainer computes a step again
			saved := &opregistry.Saved{}
			if err := c.fwd.Call(pairArgs{in, out, saved}); err != nil {
				return err
			}
			err := c.bwd.Call(pairArgs{in, out, saved})
			failed, ok := errors.AsType[*opmanager.CallError](err)
			if again = ok && failed.PutBack; err != nil && !again {
				return err
			}
		}
	}
	return nil
}

// Text returns a policy file.
func Text(random *rand.Rand) string {
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	var b strings.Builder
	add := func(key string, values ...string) {
		if random.IntN(2) == 0 {
			fmt.Fprintf(&b, "%s: %s\n", key, one(values...))
		}
	}
	add("prefer", "flagos", "vendor", "reference")
	add("strict", "true", "false")
	add("allow_vendors", "[acme]", "[other]", "[acme, other]")
	add("deny_vendors", "[acme]", "[other]")
	token := func() string { return one("flagos", "vendor", "vendor:acme", "vendor:other", "reference") }
	add("per_op", fmt.Sprintf("{plain: %s}", token()), fmt.Sprintf("{plain: %s|%s, pair_fwd: %s}", token(), token(), token()), fmt.Sprintf("{'pair_*': %s}", token()))
	add("rules", fmt.Sprintf("[{layers: 0-3, prefer: %s}]", one("flagos", "vendor", "reference")))
	if b.Len() == 0 {
		return "{}\n"
	}
	return b.String()
}
