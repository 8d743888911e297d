package opmanager_test

import (
	goruntime "runtime"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onlyNVIDIA returns a policy that leaves add_one without an impl.
func onlyNVIDIA(p oppolicy.Policy) oppolicy.Policy {
	p.PerOp = []oppolicy.OpRule{{Pattern: "add_one", Order: []oppolicy.Token{{Kind: opregistry.KindVendor, Vendor: "nvidia"}}, Source: "p.yaml:1"}}
	return p
}

// A policy that takes the last impl from an op in use is refused before it is in
// force, and says why of each impl.
func TestPolicyThatLeavesABoundOpUnservedIsRefused(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	dead := onlyNVIDIA(f.Policy())
	require.NoError(t, dryRun(f.Manager, dead).Refused, "nobody calls the op")
	bound := opmanager.MustBind(f.Manager, addOne)
	before := f.Generation()

	err := setPolicy(f.Manager, dead)
	refused := &opmanager.UnservedError{}
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Ops, 1)
	assert.Equal(t, "add_one", refused.Ops[0].Op)
	assert.Equal(t, "vendor.acme", refused.Ops[0].Impl)
	assert.Len(t, refused.Ops[0].Rejected, 3)
	assert.ErrorContains(t, err, `impl "reference.go": not in the per-op order vendor:nvidia (p.yaml:1)`)
	assert.Equal(t, err, dryRun(f.Manager, dead).Refused)

	assert.Equal(t, before, f.Generation())
	assert.Empty(t, f.Policy().PerOp)
	require.NoError(t, bound.Call(newArgs(t)))
}

// An op that only one layer calls is looked at with the rules of that layer.
func TestPolicyIsRefusedForALayer(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	anywhere := opmanager.MustBind(f.Manager, addOne)
	layer := opmanager.MustBind(f.Layer(2).Phase(oppolicy.PhaseForward), addOne)
	rule := oppolicy.Rule{Layers: []oppolicy.LayerRange{{First: 2, Last: 3}}, PerOp: onlyNVIDIA(oppolicy.Policy{}).PerOp, Source: "p.yaml:3"}
	p := f.Policy()
	p.Rules = []oppolicy.Rule{rule}
	assert.ErrorContains(t, setPolicy(f.Manager.Layer(2), p), `op "add_one" is in use in layers 2 forward, served by vendor.acme`)
	p.Rules[0].Layers = []oppolicy.LayerRange{{First: 3, Last: 3}}
	assert.NoError(t, setPolicy(f.Manager, p), "no call comes from layer 3")
	goruntime.KeepAlive(anywhere)
	goruntime.KeepAlive(layer)
}

// An op that fails already is no reason to keep a policy, and one that nobody can
// call any more is none either.
func TestPolicyIsNotRefusedForNothing(t *testing.T) {
	f := newManager(t, onlyNothing, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	require.Error(t, bound.Call(newArgs(t)))
	require.NoError(t, setPolicy(f.Manager, onlyNVIDIA(f.Policy())))
	require.NoError(t, setPolicy(f.Manager, oppolicy.Default()))
	require.Error(t, dryRun(f.Manager, onlyNVIDIA(f.Policy())).Refused)
	goruntime.KeepAlive(bound)

	bound = nil
	for range 1000 {
		goruntime.GC()
		goruntime.Gosched()
		if dryRun(f.Manager, onlyNVIDIA(f.Policy())).Refused == nil {
			return
		}
	}
	t.Fatal("a handle that was collected still counts")
}

func onlyNothing(p *oppolicy.Policy) { *p = onlyNVIDIA(*p) }
