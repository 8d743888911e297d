package opmanager_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// W8: there are rules for layers and phases.
func TestRulesForLayersAndPhases(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Rules = []oppolicy.Rule{
			{Layers: []oppolicy.LayerRange{{First: 0, Last: 1}}, Prefer: opregistry.KindFlagos, Source: "p.yaml:3"},
			{Layers: []oppolicy.LayerRange{{First: 1, Last: 1}}, Phase: oppolicy.PhaseBackward, Source: "p.yaml:5",
				PerOp: []oppolicy.OpRule{{Pattern: "add_*", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}},
			{Phase: oppolicy.PhaseBackward, Deny: []string{"acme"}, Source: "p.yaml:7"},
		}
	}, opmanager.Settings{})
	backward := oppolicy.PhaseBackward
	tests := []struct {
		name, want, rules string
		m                 *opmanager.Manager
	}{
		{"nowhere", "vendor.acme", "", f.Manager},
		{"layer 0", "default.flagos", "rule 1 (p.yaml:3 for layers 0-1)", f.Layer(0)},
		{"layer 0, forward", "default.flagos", "rule 1 (p.yaml:3 for layers 0-1)", f.Layer(0).Phase(oppolicy.PhaseForward)},
		{"layer 1, backward", "reference.go", "rule 1 (p.yaml:3 for layers 0-1) and rule 2 (p.yaml:5 for layers 1, phase backward) and rule 3 (p.yaml:7 for phase backward)", f.Layer(1).Phase(backward)},
		{"layer 2, backward", "default.flagos", "rule 3 (p.yaml:7 for phase backward)", f.Phase(backward).Layer(2)},
		{"layer 2", "vendor.acme", "", f.Layer(2)},
		{"backward", "default.flagos", "rule 3 (p.yaml:7 for phase backward)", f.Phase(backward)},
	}
	for _, tt := range tests {
		e, err := tt.m.Explain("add_one")
		require.NoError(t, err)
		assert.Equal(t, tt.want, e.Selected, tt.name)
		assert.Equal(t, tt.rules, e.Rules, tt.name)
	}
	e, err := f.Phase(backward).Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "vendor acme is denied by p.yaml:7 for phase backward", reasons(e)["vendor.acme"])
	assert.Same(t, f.Layer(1).Phase(backward), f.Phase(backward).Layer(1), "views of one place are one view")

	// A view follows the policy of its manager.
	bound := opmanager.MustBind(f.Layer(0), addOne)
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, f.flagos.calls)
	plain := f.Policy()
	plain.Rules = nil
	require.NoError(t, setPolicy(f.Manager, plain))
	require.NoError(t, bound.Call(newArgs(t)))
	assert.Equal(t, 1, f.vendor.calls)
}

// A rule never permits what the policy forbids.
func TestRulesNarrow(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		require.NoError(t, p.SetAllow("other", "flag --allow-vendors"))
		p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 0, Last: 0}}, Allow: []string{"acme"}, Deny: []string{}, Source: "p.yaml:3"}}
	}, opmanager.Settings{})
	e, err := f.Layer(0).Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "vendor acme is not among those allowed by flag --allow-vendors and p.yaml:3 for layers 0", reasons(e)["vendor.acme"])
}

// W1: whatever the rules for the phases say, the backward op of a family runs on
// the impl of its forward op.
func TestFamilyAcrossPhases(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Rules = []oppolicy.Rule{{Phase: oppolicy.PhaseBackward, Prefer: opregistry.KindFlagos, Source: "p.yaml:3"}}
	}, opmanager.Settings{})
	a := newPair(t)
	require.NoError(t, opmanager.MustBind(f.Layer(0).Phase(oppolicy.PhaseForward), pairFwd).Call(a))
	require.NoError(t, opmanager.MustBind(f.Layer(0).Phase(oppolicy.PhaseBackward), pairBwd).Call(a))
	assert.Equal(t, 2, f.vendor.calls)
	assert.Zero(t, f.flagos.calls)
}

func TestSelectedIsToldForEachSetOfRules(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 0, Last: 7}}, Prefer: opregistry.KindFlagos, Source: "p.yaml:3"}}
	}, opmanager.Settings{})
	for layer := range 10 {
		bound := opmanager.MustBind(f.Layer(layer), addOne)
		for range 3 {
			require.NoError(t, bound.Call(newArgs(t)))
		}
	}
	assert.Equal(t, 2, count[opmanager.Selected](f.events))
	assert.Zero(t, count[opmanager.Switched](f.events))
}
