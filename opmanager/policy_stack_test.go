package opmanager_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// given is a policy layer as the tests write it: for each field that it gives, how to set it.
type given map[oppolicy.Field]func(*oppolicy.Policy)

// layer returns the policy layer.
func (g given) layer() opmanager.PolicyLayer {
	p := oppolicy.Default()
	for _, set := range g {
		set(&p)
	}
	return opmanager.PolicyLayer{Policy: p}
}

// text returns how to set a field from a text, which has to be right.
func text(set func(p *oppolicy.Policy, value, source string) error, value, source string) func(*oppolicy.Policy) {
	return func(p *oppolicy.Policy) {
		if err := set(p, value, source); err != nil {
			panic(err)
		}
	}
}

// generated returns a random layer whose values have this source. It may give a field its default.
func generated(random *rand.Rand, source string) given {
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	field := func(f oppolicy.Field, set func(*oppolicy.Policy)) func(*oppolicy.Policy) {
		return func(p *oppolicy.Policy) {
			set(p)
			p.SetSource(f, source)
		}
	}
	failures, fraction, on := random.IntN(3), float64(random.IntN(3))/4, random.IntN(2) == 1
	deterministic := random.IntN(16) == 0 // which no impl of the tests is
	rules := []oppolicy.Rule{{Layers: []oppolicy.LayerRange{{First: 0, Last: random.IntN(4)}}, Prefer: opregistry.KindReference, Source: source}}[:random.IntN(2)]
	g := given{
		oppolicy.FieldPrefer:      text((*oppolicy.Policy).SetPrefer, one("flagos", "vendor", "reference", "tuned"), source),
		oppolicy.FieldStrict:      text((*oppolicy.Policy).SetStrict, one("on", "off"), source),
		oppolicy.FieldAllow:       text((*oppolicy.Policy).SetAllow, one("acme", "other", "*"), source),
		oppolicy.FieldDeny:        text((*oppolicy.Policy).SetDeny, one("acme", "other", "*"), source),
		oppolicy.FieldSkip:        text((*oppolicy.Policy).SetSkipCUDA, one("on", "off"), source),
		oppolicy.FieldPerOp:       text((*oppolicy.Policy).SetPerOp, one("add_one=vendor", "add_one=flagos|vendor;pair_*=reference", "*=reference", "add_one=vendor:other"), source),
		oppolicy.FieldCrossDevice: text((*oppolicy.Policy).SetCrossDevice, one("copy", "error"), source),

		oppolicy.FieldDeterministic: field(oppolicy.FieldDeterministic, func(p *oppolicy.Policy) { p.Deterministic = deterministic }),
		oppolicy.FieldProtect:       field(oppolicy.FieldProtect, func(p *oppolicy.Policy) { p.ProtectInPlace = on }),
		oppolicy.FieldRules:         field(oppolicy.FieldRules, func(p *oppolicy.Policy) { p.Rules = rules }),
		oppolicy.FieldQuarantine:    field(oppolicy.FieldQuarantine, func(p *oppolicy.Policy) { p.Quarantine.Failures = failures }),
		oppolicy.FieldVerify:        field(oppolicy.FieldVerify, func(p *oppolicy.Policy) { p.Verify.Fraction = fraction }),
	}
	for _, f := range slices.Sorted(maps.Keys(g)) { // a map has no order, and a seed stands for one layer
		if random.IntN(3) > 0 {
			delete(g, f)
		}
	}
	return g
}

// inForce returns the policy in which each field is that of the highest layer that gives it.
func inForce(layers map[opmanager.LayerKind]given) oppolicy.Policy {
	p, decided := oppolicy.Default(), given{}
	for _, kind := range slices.Backward(opmanager.LayerKinds()) {
		for field, set := range layers[kind] {
			if decided[field] == nil {
				decided[field] = set
				set(&p)
			}
		}
	}
	return p
}

// However layers are set and taken away, the policy is the one that they make together. A layer
// that would leave an op without an impl changes nothing, and a dry run says all of that before.
func TestPolicyStackIsWhatItsLayersMake(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		f := newManager(t, func(p *oppolicy.Policy) { *p = oppolicy.Default() }, opmanager.Settings{})
		bound := []any{opmanager.MustBind(f.Manager, addOne), opmanager.MustBind(f.Layer(1), addOne)}
		stack, layers, refused := f.PolicyStack(), map[opmanager.LayerKind]given{}, 0
		for step := range 120 {
			kinds := opmanager.LayerKinds()
			kind := kinds[random.IntN(len(kinds))]
			next := given{}
			if random.IntN(4) > 0 {
				next = generated(random, fmt.Sprintf("%v %d", kind, step))
			}
			layer := next.layer()
			if len(next) == 0 {
				layer = opmanager.PolicyLayer{}
			}
			before, selected := stack.State(), selections(f.Manager)
			dry := stack.DryRun(kind, layer)
			require.Equal(t, before, stack.State(), "a dry run changes nothing")
			generation, err := stack.Set(kind, layer)
			require.Equal(t, dry.Refused, err)
			if err != nil {
				refused++
				require.Equal(t, before, stack.State(), "what is refused changes nothing")
				require.Equal(t, selected, selections(f.Manager))
				continue
			}
			layers[kind] = next
			now := stack.State()
			require.Equal(t, opmanager.PolicyState{
				Generation: before.Generation + 1, Since: generation, Layers: now.Layers, Policy: dry.Policy, Warnings: dry.Warnings,
			}, now)
			require.Equal(t, before.Generation, dry.Generation)
			require.Equal(t, inForce(layers).View(), now.Policy.View(), "seed %d, step %d", seed, step)
			require.Equal(t, now.Policy, f.Policy())

			for _, c := range dry.Changes {
				require.NotEqual(t, c.From, c.To)
				for _, at := range c.Places {
					selected[callsOf{c.Op, at}] = c.To
				}
			}
			require.Equal(t, selected, selections(f.Manager), "what a dry run says is what changes")
			fresh := opmanager.New(f.registry, now.Layers[opmanager.LayerDefault].Policy, opmanager.Settings{Layers: now.Layers})
			require.Equal(t, explained(f.Manager), explained(fresh))
			fresh.Close()
		}
		assert.Positive(t, refused, "seed %d", seed)
		assert.Less(t, refused, 100, "seed %d", seed)
		goruntime.KeepAlive(bound)
	}
}

type callsOf struct {
	op string
	at opmanager.Place
}

// explained explains every op, without the number of the table.
func explained(m *opmanager.Manager) []opmanager.Explanation {
	all := m.ExplainAll()
	for i := range all {
		all[i].Generation = 0
	}
	return all
}

// selections returns the impls that serve the calls outside of layers and those of layer 1.
func selections(m *opmanager.Manager) map[callsOf]string {
	all := map[callsOf]string{}
	for _, layer := range []int{-1, 1} {
		at := opmanager.Place{Layer: layer}
		for _, e := range m.ExplainIn(layer, oppolicy.PhaseUnspecified, nil) {
			all[callsOf{e.Op, at}] = e.Selected
		}
	}
	return all
}

// Every source sets its layer while others do, and whoever reads sees one state.
func TestPolicyStackIsSetFromEverywhere(t *testing.T) {
	t.Parallel()
	f := newManager(t, func(p *oppolicy.Policy) { *p = oppolicy.Default() }, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	stack := f.PolicyStack()
	layers := map[opmanager.LayerKind]given{}
	var setters, readers sync.WaitGroup
	stop := make(chan struct{})
	for _, kind := range opmanager.LayerKinds() {
		random, accepted := rand.New(rand.NewPCG(uint64(kind), 1)), given{}
		layers[kind] = accepted
		setters.Go(func() {
			for i := range 60 {
				next := generated(random, fmt.Sprintf("%v %d", kind, i))
				if _, err := stack.Set(kind, next.layer()); err == nil {
					clear(accepted)
					maps.Copy(accepted, next)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for last := uint64(0); ; {
				s := stack.State()
				assert.LessOrEqual(t, s.Since, s.Generation)
				assert.LessOrEqual(t, last, s.Since)
				assert.Equal(t, s.Layers.Policy().View(), s.Policy.View())
				last = s.Since
				dry := stack.DryRun(opmanager.LayerService, opmanager.PolicyLayer{})
				assert.LessOrEqual(t, s.Generation, dry.Generation)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	setters.Wait()
	close(stop)
	readers.Wait()
	assert.Equal(t, inForce(layers).View(), stack.State().Policy.View())
	assert.NoError(t, bound.Call(newArgs(t)))
}

// Of several who change the policy that they have read, one wins; the others are told what came
// between.
func TestSetUnchanged(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	stack := f.PolicyStack()
	strict := given{oppolicy.FieldStrict: text((*oppolicy.Policy).SetStrict, "on", "test")}.layer()
	var now opmanager.PolicyState
	for range 100 {
		read := stack.State()
		errs := make([]error, len(opmanager.LayerKinds()))
		begin := make(chan struct{})
		var all sync.WaitGroup
		for i, kind := range opmanager.LayerKinds() {
			all.Go(func() {
				<-begin
				_, errs[i] = stack.SetUnchanged(read.Generation, kind, strict)
			})
		}
		close(begin)
		all.Wait()
		now = stack.State()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.Equal(t, &opmanager.PolicyConflictError{Expected: read.Generation, Since: now.Since, Current: now.Generation}, err)
		}
		require.Equal(t, 1, won)
	}

	f.Reprobe()
	_, err := stack.SetUnchanged(now.Generation, opmanager.LayerFile, strict)
	require.NoError(t, err, "a new table of the same policy is no change of the policy")
	_, err = stack.SetUnchanged(stack.State().Generation+1, opmanager.LayerFile, strict)
	assert.ErrorContains(t, err, "but the dispatch table is of generation")
}

// SetPolicy takes all layers away, and a view has a stack of its own.
func TestPolicyStackOfAManager(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	strict := given{oppolicy.FieldStrict: text((*oppolicy.Policy).SetStrict, "on", "test")}.layer()
	view := f.With(f.Policy())
	defer view.Close()
	_, err := view.PolicyStack().Set(opmanager.LayerFile, strict)
	require.NoError(t, err)
	assert.True(t, view.Policy().Strict)
	assert.False(t, f.Policy().Strict)

	assert.Same(t, f.PolicyStack(), f.Layer(1).Phase(oppolicy.PhaseBackward).PolicyStack())
	_, err = f.Layer(1).PolicyStack().Set(opmanager.LayerFile, strict)
	require.NoError(t, err)
	assert.True(t, f.Policy().Strict)
	require.NoError(t, setPolicy(f.Manager, oppolicy.Default()))
	assert.Equal(t, opmanager.PolicyLayers{opmanager.LayerDefault: {Policy: oppolicy.Default()}}, f.PolicyStack().State().Layers)

	before := f.PolicyStack().State()
	clear(f.PolicyStack().State().Layers)
	assert.Equal(t, before, f.PolicyStack().State(), "a state is a copy")
	for _, kind := range []opmanager.LayerKind{opmanager.LayerUnspecified, opmanager.LayerService + 1} {
		_, err = f.PolicyStack().Set(kind, strict)
		require.ErrorContains(t, err, "want one of [default tuning file fleet experiment environment flags service]")
		assert.Equal(t, err, f.PolicyStack().DryRun(kind, strict).Refused)
	}
	assert.Equal(t, before, f.PolicyStack().State())
}

// The tuning is below every source that a user writes: whoever states a preference gets it.
func TestTuningIsBelowOtherLayers(t *testing.T) {
	t.Parallel()
	f := newManager(t, func(p *oppolicy.Policy) { *p = oppolicy.Default() }, opmanager.Settings{})
	tuned := oppolicy.Default()
	tuned.UseTuning(&oppolicy.Tuning{Source: "tuning file t.json", Ops: map[string]oppolicy.TunedOp{"add_one": {Impl: "vendor.acme"}}})
	set := func(kind opmanager.LayerKind, p oppolicy.Policy) opmanager.Explanation {
		_, err := f.PolicyStack().Set(kind, opmanager.PolicyLayer{Policy: p})
		require.NoError(t, err)
		e, err := f.Explain("add_one")
		require.NoError(t, err)
		return e
	}
	e := set(opmanager.LayerTuning, tuned)
	assert.Equal(t, "vendor.acme", e.Selected)
	assert.Equal(t, "tuning file t.json", e.Source)
	for _, kind := range opmanager.LayerKinds()[2:] {
		preference := given{oppolicy.FieldPrefer: text((*oppolicy.Policy).SetPrefer, "reference", kind.String())}.layer().Policy
		e = set(kind, preference)
		assert.Equal(t, "reference.go", e.Selected, kind)
		assert.Equal(t, kind.String(), e.Source)
		assert.NotNil(t, f.Policy().Tuning, "a preference for tuned impls finds it")
		assert.Equal(t, "vendor.acme", set(kind, oppolicy.Policy{}).Selected)
	}
}

// The order that the documentation lists is the one in force.
func TestDocumentedPrecedence(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "docs", "reference", "policy-file.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(data), "\n## Precedence\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|`).FindAllStringSubmatch(section, -1)
	kinds := opmanager.LayerKinds()
	require.Len(t, rows, len(kinds))
	f := newManager(t, func(p *oppolicy.Policy) { *p = oppolicy.Default() }, opmanager.Settings{})
	set := func(kind opmanager.LayerKind) {
		_, err := f.PolicyStack().Set(kind, given{oppolicy.FieldDeny: text((*oppolicy.Policy).SetDeny, "other", kind.String())}.layer())
		require.NoError(t, err)
	}
	for i, kind := range slices.Backward(kinds) {
		assert.Equal(t, strconv.Itoa(i+1), rows[i][1])
		assert.Contains(t, rows[i][2], kind.String())
		set(kind)
		assert.Equal(t, kinds[len(kinds)-1].String(), f.Policy().Sources[oppolicy.FieldDeny])
	}
	for i, kind := range slices.Backward(kinds[1:]) {
		_, err := f.PolicyStack().Set(kind, opmanager.PolicyLayer{})
		require.NoError(t, err)
		assert.Equal(t, kinds[i].String(), f.Policy().Sources[oppolicy.FieldDeny], "below %v", kind)
	}
}
