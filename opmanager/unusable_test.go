package opmanager_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An impl that is asked for and cannot serve is listed with the reason; one that
// nobody asked for is not.
func TestUnusable(t *testing.T) {
	noChip := func() error { return errors.New("no chip") }
	half := opregistry.Impl{Op: pairFwd, ID: "vendor.half", Kind: opregistry.KindVendor, Vendor: "half", Priority: 10}
	absent := opregistry.Impl{Op: addOne, ID: "vendor.absent", Kind: opregistry.KindVendor, Vendor: "absent", Priority: 120, Available: noChip}
	lower := opregistry.Impl{Op: addOne, ID: "vendor.lower", Kind: opregistry.KindVendor, Vendor: "lower", Priority: 20, Available: noChip}
	idle := absent
	idle.Available = func() error { return fmt.Errorf("%w: one process", opregistry.ErrNotNeeded) }
	order := func(tokens ...string) []oppolicy.OpRule {
		rule := oppolicy.OpRule{Pattern: "add_one", Source: "p.yaml:1"}
		for _, text := range tokens {
			token, err := oppolicy.ParseToken(text)
			require.NoError(t, err)
			rule.Order = append(rule.Order, token)
		}
		return []oppolicy.OpRule{rule}
	}
	const missing = "Implementation 'vendor.half' cannot serve op 'pair_fwd': no impl vendor.half of pair_bwd, which shares saved state with this op"
	for _, tt := range []struct {
		name  string
		impls []opregistry.Impl
		edit  func(*oppolicy.Policy)
		want  []string
	}{
		{name: "everything serves"},
		{name: "an incomplete family", impls: []opregistry.Impl{half}, want: []string{missing}},
		{
			name: "an incomplete family that no preference reaches", impls: []opregistry.Impl{half},
			edit: func(p *oppolicy.Policy) { p.Prefer = opregistry.KindFlagos }, want: []string{missing},
		},
		{
			name: "an incomplete family that the policy leaves out", impls: []opregistry.Impl{half},
			edit: func(p *oppolicy.Policy) { p.Deny = []string{"half"} },
		},
		{
			name: "preferred and not available", impls: []opregistry.Impl{absent, lower},
			want: []string{"Implementation 'vendor.absent' cannot serve op 'add_one': unavailable: no chip"},
		},
		{name: "not needed", impls: []opregistry.Impl{idle}},
		{
			name: "not available and not preferred", impls: []opregistry.Impl{absent},
			edit: func(p *oppolicy.Policy) { p.Prefer = opregistry.KindFlagos },
		},
		{
			name: "named and not available", impls: []opregistry.Impl{lower},
			edit: func(p *oppolicy.Policy) { p.PerOp = order("vendor:lower", "vendor", "flagos") },
			want: []string{"Implementation 'vendor.lower' cannot serve op 'add_one': unavailable: no chip"},
		},
		{
			name: "named as the last resort", impls: []opregistry.Impl{lower},
			edit: func(p *oppolicy.Policy) { p.PerOp = order("flagos", "vendor:lower") },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newManager(t, tt.edit, opmanager.Settings{})
			for i := range tt.impls {
				tt.impls[i].Run = runOf(tt.impls[i].Op, f.vendor.run)
			}
			if len(tt.impls) > 0 {
				require.NoError(t, f.registry.Register(opregistry.Source{Name: "more", Impls: tt.impls}))
			}
			var got []string
			for _, u := range f.Unusable() {
				got = append(got, u.String())
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// What the policy itself rules out by asking for reproducible results was asked for all the same.
func TestUnusableForDeterminism(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	sure := opregistry.Impl{
		Op: addOne, ID: "vendor.sure", Kind: opregistry.KindVendor, Vendor: "sure", Priority: 20, Run: f.vendor.run,
		Determinism: opregistry.DeterminismOfClass,
	}
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "more", Impls: []opregistry.Impl{sure}}))
	assert.Empty(t, f.Unusable())
	p := f.Policy()
	p.Deterministic = true
	require.NoError(t, setPolicy(f.Manager, p))
	all := f.Unusable()
	require.NotEmpty(t, all)
	last := all[len(all)-1]
	assert.Equal(t, "vendor.acme", last.ID)
	assert.Contains(t, last.Ops, "add_one")
	assert.Contains(t, last.Reason, "does not declare that its results have the same bits")
}

// An impl that rules for a layer ask for is listed with the rules.
func TestUnusableUnderRules(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		p.Prefer = opregistry.KindFlagos
		p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 1, Last: 1}}, Prefer: opregistry.KindVendor, Source: "p.yaml:3"}}
	}, opmanager.Settings{})
	absent := opregistry.Impl{
		Op: addOne, ID: "vendor.absent", Kind: opregistry.KindVendor, Vendor: "absent", Priority: 120, Run: f.vendor.run,
		Available: func() error { return errors.New("no chip") },
	}
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "more", Impls: []opregistry.Impl{absent}}))
	assert.Empty(t, f.Unusable())
	f.Layer(1)
	require.Len(t, f.Unusable(), 1)
	assert.Equal(t, "Implementation 'vendor.absent' cannot serve op 'add_one': unavailable: no chip, under rule 1 (p.yaml:3 for layers 1)", f.Unusable()[0].String())
}

// An impl in quarantine is listed as long as that lasts.
func TestUnusableInQuarantine(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = func(addArgs) error { return errors.New("broken") }
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 3 {
		require.NoError(t, bound.Call(newArgs(t)))
	}
	require.Len(t, f.Unusable(), 1)
	assert.Contains(t, f.Unusable()[0].Reason, "quarantined until")
}
