package opmanager_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// takes returns what an impl does that serves calls in this time.
func takes(d time.Duration) func(addArgs) error {
	return func(addArgs) error {
		time.Sleep(d)
		return nil
	}
}

func declinesDropout(addArgs) error { return opregistry.Unsupported("dropout is 0.1, want 0") }

// A step in which reference takes more than a tenth of the time names the ops, what
// they cost and why no other impl served them.
func TestReferenceWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*oppolicy.Policy)
		pair bool // pair_fwd runs first, then pair_bwd is watched
		do   func(f fixtureManager)
		want string
	}{
		{
			name: "the others decline",
			do:   func(f fixtureManager) { f.flagos.do = declinesDropout },
			want: "op 'add_one' took 25 % of the time on 'reference.go': 'default.flagos' declined: unsupported: dropout is 0.1, want 0",
		},
		{
			name: "the others fail",
			do:   func(f fixtureManager) { f.flagos.do = func(addArgs) error { return errors.New("no memory") } },
			want: "op 'add_one' took 25 % of the time on 'reference.go': 'default.flagos' failed: no memory",
		},
		{
			name: "the policy prefers it",
			edit: func(p *oppolicy.Policy) { require.NoError(t, p.SetPrefer("reference", "p.yaml:1")) },
			want: "op 'add_one' took 25 % of the time on 'reference.go': the policy ranks it first, by the order reference|flagos|vendor (p.yaml:1)",
		},
		{
			name: "the policy leaves nothing else",
			edit: func(p *oppolicy.Policy) { require.NoError(t, p.SetPerOp("add_one=reference", "p.yaml")) },
			want: "op 'add_one' took 25 % of the time on 'reference.go': 'vendor.acme': vendor acme is denied by the program; 'default.flagos': not in the per-op order reference (p.yaml at 1)",
		},
		{
			name: "a rule for a layer prefers it",
			edit: func(p *oppolicy.Policy) {
				p.Rules = []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 1, Last: 1}}, Prefer: opregistry.KindReference, Source: "p.yaml:2"}}
			},
			want: "op 'add_one' took 25 % of the time on 'reference.go': the policy ranks it first, by the order " +
				"reference|flagos|vendor (p.yaml:2 for layers 1), under rule 1 (p.yaml:2 for layers 1)",
		},
		{
			name: "the forward op ran there", pair: true,
			do: func(f fixtureManager) { f.flagos.do = declinesDropout },
			want: "op 'pair_bwd' took 25 % of the time on 'reference.go': pair_fwd, whose saved state it reads, ran there: " +
				"'default.flagos' declined: unsupported: dropout is 0.1, want 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManager(t, func(p *oppolicy.Policy) {
					*p = oppolicy.Default()
					p.Deny = []string{"acme"}
					if tt.edit != nil {
						tt.edit(p)
					}
				}, opmanager.Settings{})
				if tt.do != nil {
					tt.do(f)
				}
				layer := f.Layer(1)
				call := func() error { return opmanager.MustBind(layer, addOne).Call(newArgs(t)) }
				if tt.pair {
					a := newPair(t)
					require.NoError(t, opmanager.MustBind(layer, pairFwd).Call(a))
					call = func() error { return opmanager.MustBind(layer, pairBwd).Call(a) }
				}
				f.reference.do = takes(25 * time.Millisecond)
				w := opmanager.NewReferenceWatch(f.Manager)
				w.Begin()
				require.NoError(t, call())
				costs := w.End(100 * time.Millisecond)
				require.Len(t, costs, 1)
				assert.Equal(t, tt.want, costs[0].String())
				assert.InDelta(t, 0.25, w.Share(), 1e-9)

				w.Begin()
				assert.Empty(t, w.End(100*time.Millisecond), "nothing ran in this step")
				assert.Zero(t, w.Share())
				total := w.Total()
				require.Len(t, total, 1)
				assert.Equal(t, 1, total[0].Steps)
				assert.InDelta(t, 0.125, total[0].Share, 1e-9)
			})
		})
	}
}

// A tenth of a step is not too much, and what is not timed in a step does not count.
func TestReferenceWatchOfFastSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManager(t, func(p *oppolicy.Policy) { p.Prefer = opregistry.KindReference }, opmanager.Settings{})
		f.reference.do = takes(10 * time.Millisecond)
		bound := opmanager.MustBind(f.Manager, addOne)
		w := opmanager.NewReferenceWatch(f.Manager)
		require.NoError(t, bound.Call(newArgs(t)), "an evaluation between steps")
		w.Begin()
		require.NoError(t, bound.Call(newArgs(t)))
		assert.Empty(t, w.End(100*time.Millisecond))
		assert.InDelta(t, 0.1, w.Share(), 1e-9)
		assert.Empty(t, w.Total())
	})
}
