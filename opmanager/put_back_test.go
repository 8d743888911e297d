package opmanager_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// puts counts the returns to earlier policies.
type puts struct{ all []opmanager.PolicyPutBack }

func (p *puts) OnEvent(e opmanager.Event) {
	if e, ok := e.(opmanager.PolicyPutBack); ok {
		p.all = append(p.all, e)
	}
}

// Whatever impls decline: calls that nobody has foreseen do not fail under a policy that was
// accepted. They put one in force again that was in force before, and the policy that did not serve
// them is refused from then on.
func TestCallsThatNobodyForesawPutThePolicyBack(t *testing.T) {
	onBackends(t, putPoliciesBack)
}

func putPoliciesBack(t *testing.T, on device.Backend) {
	accepted, refused, back := 0, 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 34))
		seen := &puts{}
		m := pickyManager(t, random, on, opmanager.Settings{Listeners: []opmanager.Listener{seen}})
		known := bindAll(m, on)
		known.sizes = expectedSizes[:1]
		calls, err := m.Trace(func(m *opmanager.Manager) error {
			c := bindAll(m, on)
			c.sizes = known.sizes
			return c.call()
		})
		require.NoError(t, err)
		require.NoError(t, m.Expect(calls))
		program := bindAll(m, on)
		stack := m.PolicyStack()
		past := []opmanager.PolicyLayers{stack.State().Layers}
		for step := range policiesPerSeed {
			g := generated(random, fmt.Sprint(step))
			delete(g, oppolicy.FieldQuarantine)
			layer := g.layer()
			if _, err := stack.Set(opmanager.LayerService, layer); err != nil {
				refused++
				continue
			}
			accepted++
			past = append(past, stack.State().Layers)
			before := len(seen.all)
			if err := program.call(); err != nil {
				t.Fatalf("seed %d, policy %d: %v: %+v", seed, step, err, m.Policy().View())
			}
			if n := len(seen.all); n > before {
				back++
				require.NotEqual(t, layer, stack.State().Layers[opmanager.LayerService])
				require.Contains(t, past, stack.State().Layers)
				require.Equal(t, seen.all, stack.PutBack())
				require.Equal(t, []string{"service"}, seen.all[n-1].Layers)
				if op := seen.all[before].Op; !strings.HasPrefix(op, "pair") {
					require.Error(t, stack.DryRun(opmanager.LayerService, layer).Refused)
				}
			}
		}
		m.Close()
	}
	t.Logf("%d policies accepted, %d refused, %d put back", accepted, refused, back)
	assert.Greater(t, accepted, 500)
	assert.Greater(t, refused, 500)
	assert.Greater(t, back, 50)
}

// A policy that a program sets itself, or that it begins with, is not put back: what it does not
// serve fails.
func TestOwnPoliciesAreNotPutBack(t *testing.T) {
	t.Parallel()
	strict := func(p *oppolicy.Policy) { p.Prefer, p.Strict = opregistry.KindVendor, true }
	for name, begin := range map[string]func(*opmanager.Manager){
		"the first": func(*opmanager.Manager) {},
		"SetPolicy": func(m *opmanager.Manager) { require.NoError(t, setPolicy(m, m.Policy())) },
		"no calls":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			start := strict
			if begin == nil {
				start = nil
			}
			f := newManager(t, start, opmanager.Settings{})
			f.vendor.do = declines
			if begin != nil {
				begin(f.Manager)
				require.NoError(t, f.Expect(nil))
			} else {
				p := oppolicy.Default()
				require.NoError(t, p.SetPrefer("vendor", "f"))
				require.NoError(t, p.SetStrict("on", "f"))
				_, err := f.PolicyStack().Set(opmanager.LayerFile, opmanager.PolicyLayer{Policy: p})
				require.NoError(t, err)
			}
			assert.Error(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
			assert.Empty(t, f.PolicyStack().PutBack())
		})
	}
}

// A policy of the fleet that was there before the program knew its calls is taken back if it does
// not serve them.
func TestExpectPutsAPolicyBack(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	f.vendor.do = declines
	calls, err := f.Trace(func(m *opmanager.Manager) error { return opmanager.MustBind(m, addOne).Call(newArgs(t)) })
	require.NoError(t, err)
	p := oppolicy.Default()
	require.NoError(t, p.SetPerOp("add_one=vendor", "etcd:policy@7"))
	_, err = f.PolicyStack().Set(opmanager.LayerFleet, opmanager.PolicyLayer{Policy: p, Origin: "etcd:policy@7"})
	require.NoError(t, err, "nobody knows yet that it does not serve")
	require.NoError(t, f.Expect(calls))
	require.Len(t, f.PolicyStack().PutBack(), 1)
	back := f.PolicyStack().PutBack()[0]
	assert.Equal(t, []string{"fleet (etcd:policy@7)"}, back.Layers)
	assert.Contains(t, back.String(), `the policy of fleet (etcd:policy@7) did not serve op "add_one" and is taken back: policy: it leaves calls without an impl`)
	assert.Empty(t, f.Policy().PerOp)
	assert.Equal(t, back.Generation, f.Generation())
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
}
