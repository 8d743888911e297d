package opmanager_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var catalogue = []oppolicy.Candidate{
	{ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150},
	{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100},
	{ID: "vendor.cuda", Kind: opregistry.KindVendor, Vendor: "cuda", Priority: 100},
	{ID: "vendor.slow", Kind: opregistry.KindVendor, Vendor: "slow", Priority: 10},
	{ID: "vendor.gone", Kind: opregistry.KindVendor, Vendor: "gone", Priority: 200, Unusable: "unavailable: no driver"},
	{ID: "reference.go", Kind: opregistry.KindReference, Priority: 50},
}

// reasons returns the reason of every impl by id.
func reasons(e opmanager.Explanation) map[string]string {
	all := map[string]string{}
	for _, list := range [][]opmanager.ImplStatus{e.Order, e.Rejected} {
		for _, s := range list {
			all[s.ID] = s.Reason
		}
	}
	return all
}

// W6: every impl has a reason, with its source.
func TestExplainReasons(t *testing.T) {
	resolve := opregistry.NewRegistry().Snapshot().Vendor
	const later = "later in the order vendor|flagos|reference (environment TE_FL_PREFER)"
	tests := []struct {
		name     string
		env      map[string]string
		selected string
		want     map[string]string
	}{
		{"preference", map[string]string{"TE_FL_PREFER": "vendor"}, "vendor.cuda", map[string]string{
			"vendor.cuda":    "",
			"vendor.acme":    "lower priority: the same 100 as vendor.cuda, whose id sorts after this one",
			"vendor.slow":    "lower priority: 10, where vendor.cuda has 100",
			"vendor.gone":    "unavailable: no driver",
			"default.flagos": later,
			"reference.go":   later,
		}},
		{"filters", map[string]string{"TE_FL_DENY_VENDORS": "Nvidia", "TE_FL_ALLOW_VENDORS": "nvidia,acme,gone"}, "default.flagos", map[string]string{
			"default.flagos": "",
			"vendor.acme":    "later in the order flagos|vendor|reference (default)",
			"vendor.cuda":    "vendor cuda is denied by environment TE_FL_DENY_VENDORS",
			"vendor.slow":    "vendor slow is not among those allowed by environment TE_FL_ALLOW_VENDORS",
			"vendor.gone":    "unavailable: no driver",
			"reference.go":   "later in the order flagos|vendor|reference (default)",
		}},
		{"per-op order", map[string]string{"TE_FL_PER_OP": "x=flagos; op=vendor:slow|impl:vendor.acme|vendor:gone"}, "vendor.slow", map[string]string{
			"vendor.slow":    "",
			"vendor.acme":    "later in the order vendor:slow|impl:vendor.acme|vendor:gone (environment TE_FL_PER_OP at 11)",
			"vendor.cuda":    "not in the per-op order vendor:slow|impl:vendor.acme|vendor:gone (environment TE_FL_PER_OP at 11)",
			"vendor.gone":    "unavailable: no driver",
			"default.flagos": "not in the per-op order vendor:slow|impl:vendor.acme|vendor:gone (environment TE_FL_PER_OP at 11)",
			"reference.go":   "not in the per-op order vendor:slow|impl:vendor.acme|vendor:gone (environment TE_FL_PER_OP at 11)",
		}},
		{"nothing", map[string]string{"TE_FL_PER_OP": "op=vendor:gone"}, "", map[string]string{
			"vendor.gone":    "unavailable: no driver",
			"default.flagos": "not in the per-op order vendor:gone (environment TE_FL_PER_OP at 1)",
			"vendor.acme":    "not in the per-op order vendor:gone (environment TE_FL_PER_OP at 1)",
			"vendor.cuda":    "not in the per-op order vendor:gone (environment TE_FL_PER_OP at 1)",
			"vendor.slow":    "not in the per-op order vendor:gone (environment TE_FL_PER_OP at 1)",
			"reference.go":   "not in the per-op order vendor:gone (environment TE_FL_PER_OP at 1)",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := fromEnvironment(tt.env)
			require.NoError(t, err)
			e := opmanager.Explain(p, "op", catalogue, resolve)
			assert.Equal(t, tt.selected, e.Selected)
			assert.Equal(t, tt.want, reasons(e))
		})
	}
}

func TestManagerAndPolicyExplainAlike(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		require.NoError(t, p.SetPerOp("add_one=reference|vendor:acme", "environment TE_FL_PER_OP"))
	}, opmanager.Settings{})
	fromManager, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, f.Generation(), fromManager.Generation)

	p := f.Policy()
	fromPolicy := opmanager.Explain(p, "add_one", []oppolicy.Candidate{
		{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100},
		{ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150},
		{ID: "reference.go", Kind: opregistry.KindReference, Priority: 50},
	}, opregistry.NormalVendor)
	fromManager.Generation = 0
	for _, list := range [][]opmanager.ImplStatus{fromManager.Order, fromManager.Rejected} {
		for i := range list {
			assert.Equal(t, "test", list[i].Source)
			list[i].Source = ""
		}
	}
	assert.Equal(t, fromPolicy, fromManager)
}

func TestExplainUnknownOp(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	_, err := f.Explain("add_oen")
	require.ErrorIs(t, err, opregistry.ErrNotFound)
	assert.ErrorContains(t, err, `op "add_oen": not registered by any loaded source; did you mean "add_one"?`)
}

// The backward op of a family is ranked by the order of its forward op, and the explanation says
// so.
func TestExplainFamily(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) {
		require.NoError(t, p.SetPerOp("pair_fwd=reference|flagos;pair_bwd=flagos|vendor|reference", "test"))
	}, opmanager.Settings{})
	e, err := f.Explain("pair_bwd")
	require.NoError(t, err)
	assert.Equal(t, "reference.go", e.Selected)
	assert.Equal(t, "pair_fwd", e.Follows)
	assert.Equal(t, map[string]string{
		"reference.go":   "",
		"default.flagos": "later in the order reference|flagos (test at 1) of pair_fwd",
		"vendor.acme":    "pair_fwd shares saved state with this op and rejects the impl: not in the per-op order reference|flagos (test at 1)",
	}, reasons(e))
	e, err = f.Explain("pair_fwd")
	require.NoError(t, err)
	assert.Empty(t, e.Follows)
}

func TestExplainQuarantine(t *testing.T) {
	f := newManager(t, func(p *oppolicy.Policy) { p.Quarantine.Failures = 1 }, opmanager.Settings{})
	f.vendor.do = func(addArgs) error { return errors.New("device lost") }
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "default.flagos", e.Selected)
	assert.Regexp(t, `^quarantined until \S+ after 1 failures: .*device lost$`, reasons(e)["vendor.acme"])
	require.Len(t, e.Rejected, 1)
	assert.Equal(t, 100, e.Rejected[0].Priority)
}

// A deterministic policy uses only impls that declare it, and says of the others why not.
func TestDeterministicPolicy(t *testing.T) {
	impls := []oppolicy.Candidate{
		{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100},
		{ID: "default.flagos", Kind: opregistry.KindFlagos, Priority: 150, Determinism: opregistry.DeterminismOfClass},
		{ID: "vendor.exact", Kind: opregistry.KindVendor, Vendor: "exact", Priority: 90, Determinism: opregistry.DeterminismEverywhere},
	}
	p := oppolicy.Policy{Prefer: opregistry.KindVendor, Deterministic: true}
	e := opmanager.Explain(p, "op", impls, opregistry.NormalVendor)
	assert.Equal(t, "vendor.exact", e.Selected)
	require.Len(t, e.Rejected, 1)
	assert.Equal(t, "it does not declare that its results have the same bits with any number of threads, which the program requires", e.Rejected[0].Reason)
	assert.Equal(t, opregistry.DeterminismEverywhere, e.Order[0].Determinism)
	p.Deterministic = false
	assert.Equal(t, "vendor.acme", opmanager.Explain(p, "op", impls, opregistry.NormalVendor).Selected)
}

// Where policy and priority do not say which vendor comes first, the one that was
// measured to be the fastest does; without a measurement ids decide, as upstream.
func TestVendorsAreRankedByMeasurement(t *testing.T) {
	vendor := func(name string, priority int, rate float64) oppolicy.Candidate {
		c := oppolicy.Candidate{ID: "vendor." + name, Kind: opregistry.KindVendor, Vendor: name, Priority: priority}
		if rate > 0 {
			c.Measured = opregistry.Measurement{Rate: rate, By: "make bench"}
		}
		return c
	}
	impls := []oppolicy.Candidate{vendor("slow", 100, 0.8), vendor("fast", 100, 0.9), vendor("a", 100, 0), vendor("z", 100, 0), vendor("first", 101, 0.1)}
	p := oppolicy.Policy{Prefer: opregistry.KindVendor}
	e := opmanager.Explain(p, "op", impls, opregistry.NormalVendor)
	var order []string
	for _, s := range e.Order {
		order = append(order, s.ID)
	}
	assert.Equal(t, []string{"vendor.first", "vendor.fast", "vendor.slow", "vendor.z", "vendor.a"}, order)
	p.Deny = []string{"first"}
	e = opmanager.Explain(p, "op", impls, opregistry.NormalVendor)
	assert.Equal(t, "slower as measured beside default.flagos: 0.8 (make bench), where vendor.fast has 0.9 (make bench)", e.Order[1].Reason)
	assert.Contains(t, e.Order[2].Reason, "slower as measured beside default.flagos: no measurement, where vendor.fast")
	p.PerOp = []oppolicy.OpRule{{Pattern: "op", Order: []oppolicy.Token{{Kind: opregistry.KindVendor, Vendor: "slow"}, {Kind: opregistry.KindVendor}}}}
	e = opmanager.Explain(p, "op", impls, opregistry.NormalVendor)
	assert.Equal(t, "vendor.slow", e.Selected, "an order of vendors rules")
	assert.Equal(t, "the program", e.Source)
}

func TestExplanationString(t *testing.T) {
	resolve := opregistry.NewRegistry().Snapshot().Vendor
	policy := oppolicy.Default()
	e := opmanager.Explain(policy, "rmsnorm_fwd", catalogue[3:], resolve)
	assert.Equal(t, strings.TrimPrefix(`
rmsnorm_fwd: served by vendor.slow
order: flagos|vendor|reference (default)
rank  impl          kind       vendor  priority  reason
───────────────────────────────────────────────────────────────────────────────────────────────────────
   1  vendor.slow   vendor     slow          10
   2  reference.go  reference  -             50  later in the order flagos|vendor|reference (default)
   -  vendor.gone   vendor     gone         200  unavailable: no driver`, "\n"), e.String())

	e.Call = &opmanager.CallShape{DType: tensor.BF16, Shape: tensor.Shape{4, 8}}
	e.Follows, e.Rules = "rmsnorm_bwd", "rules[0]"
	assert.Contains(t, e.String(), "\norder: flagos|vendor|reference (default); ranked as rmsnorm_bwd, with which it shares saved state\n"+
		"rules: rules[0]\ncalls: first operand bf16[4 8]\nrank ")
	e = opmanager.Explain(policy, "rmsnorm_fwd", nil, resolve)
	assert.Contains(t, e.String(), "rmsnorm_fwd: no impl can be selected, so calls fail\n")
}

// What an impl declares about subnormal numbers stands in the explanation and in its table.
func TestExplainSubnormals(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.NotContains(t, e.String(), "subnormals")
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "other", Impls: []opregistry.Impl{{
		Op: addOne, ID: "vendor.flush", Kind: opregistry.KindVendor, Vendor: "flush", Run: runOf(addOne, f.vendor.run),
		FlushesSubnormals: []tensor.DType{tensor.BF16, tensor.F16},
	}}}))
	e, err = f.Explain("add_one")
	require.NoError(t, err)
	for _, s := range e.Order {
		assert.Equal(t, s.ID == "vendor.flush", len(s.FlushesSubnormals) == 2, s.ID)
	}
	assert.Regexp(t, `(?m)subnormals are 0 `, e.String())
	assert.Regexp(t, `(?m) vendor\.flush .* bf16, f16 `, e.String())
}
