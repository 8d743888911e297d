package opmanager_test

import (
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDryRun(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	backward := oppolicy.PhaseBackward
	f.Layer(0)
	f.Layer(1).Phase(backward)
	f.Layer(2).Phase(backward)
	denied := f.Policy()
	denied.Deny = []string{"acme"}
	ruled := f.Policy()
	ruled.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 1, Last: 7}}, Prefer: opregistry.KindReference, Source: "p.yaml:1"}}
	tests := []struct {
		name     string
		give     oppolicy.Policy
		to       string
		where    string
		contains string
	}{
		{"everywhere", denied, "default.flagos", "", "vendor acme is denied by the program"},
		{"two layers of a phase", ruled, "reference.go", "layers 1-2, layers 1-2 backward", "later in the order reference"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			generation, stats, events := f.Generation(), f.Stats(), count[opmanager.Event](f.events)
			got := dryRun(f.Manager, tt.give).Changes
			assert.Equal(t, generation, f.Generation(), "nothing has changed")
			assert.Equal(t, stats, f.Stats())
			assert.Equal(t, events, count[opmanager.Event](f.events))
			i := 0
			for got[i].Op != "add_one" {
				i++
			}
			assert.Equal(t, "vendor.acme", got[i].From)
			assert.Equal(t, tt.to, got[i].To)
			assert.Equal(t, tt.where, got[i].Where)
			assert.Contains(t, got[i].Reason, tt.contains)
		})
	}
	unknown := f.Policy()
	unknown.Deny = []string{"acne"}
	would := dryRun(f.Manager, unknown)
	assert.Empty(t, would.Changes)
	require.Len(t, would.Warnings, 1)
	assert.Contains(t, would.Warnings[0], `did you mean "acme"?`)
}

// What is set aside stays so under another policy.
func TestDryRunSeesQuarantines(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = halfWay
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 3 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	p := f.Policy()
	p.PerOp = []oppolicy.OpRule{{Pattern: "add_one", Order: []oppolicy.Token{{Impl: "vendor.acme"}, {Kind: opregistry.KindReference}}}}
	would := dryRun(f.Manager, p)
	assert.Empty(t, would.Warnings)
	got := would.Changes
	require.Len(t, got, 1)
	assert.Equal(t, opmanager.Change{Op: "add_one", From: "default.flagos", To: "reference.go", Reason: got[0].Reason, Places: []opmanager.Place{{Layer: -1}}}, got[0])
	require.NoError(t, setPolicy(f.Manager, p))
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, got[0].To, e.Selected)
}

// A question about a layer is answered as its view answers, and leaves nothing behind.
func TestExplainIn(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 1, Last: 1}}, Phase: oppolicy.PhaseBackward, Deny: []string{"acme"}, Source: "p.yaml:1"}}
	}, opmanager.Settings{})
	for _, tt := range []struct {
		name  string
		layer int
		phase oppolicy.Phase
		view  func() *opmanager.Manager
	}{
		{"nowhere", -1, oppolicy.PhaseUnspecified, func() *opmanager.Manager { return f.Manager }},
		{"layer 0", 0, oppolicy.PhaseUnspecified, func() *opmanager.Manager { return f.Layer(0) }},
		{"layer 1, backward", 1, oppolicy.PhaseBackward, func() *opmanager.Manager { return f.Layer(1).Phase(oppolicy.PhaseBackward) }},
		{"backward", -1, oppolicy.PhaseBackward, func() *opmanager.Manager { return f.Phase(oppolicy.PhaseBackward) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := opmanager.CallShape{DType: tensor.BF16}
			all, about := f.ExplainIn(tt.layer, tt.phase, nil), f.ExplainIn(tt.layer, tt.phase, &call)
			assert.Equal(t, tt.view().ExplainAll(), all)
			for i, e := range all {
				want, err := tt.view().ExplainCall(e.Op, call)
				require.NoError(t, err)
				assert.Equal(t, want, about[i])
			}
		})
	}
}
