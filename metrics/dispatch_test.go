package metrics_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// vendor returns an impl of residual_add that does what the next entry of plan says: nil declines,
// an error fails.
func vendor(plan ...error) opregistry.Source {
	calls := 0
	return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error {
			calls++
			return plan[calls-1]
		}),
	}}}
}

// dispatched returns a strict registry with the metrics of a manager that verifies every call and
// sets an impl aside after some failures, after one call for each entry of plan.
func dispatched(t *testing.T, failures int, plan ...error) *prometheus.Registry {
	t.Helper()
	reg, _ := dispatchedBy(t, failures, plan...)
	return reg
}

// dispatchedBy is dispatched that also returns the manager.
func dispatchedBy(t *testing.T, failures int, plan ...error) (*prometheus.Registry, *opmanager.Manager) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDispatch(reg)
	require.NoError(t, err)
	t.Cleanup(d.Close)

	impls := opregistry.NewRegistry()
	require.NoError(t, impls.Register(reference.Source()))
	require.NoError(t, impls.Register(vendor(plan...)))
	policy := oppolicy.Default()
	policy.Prefer = opregistry.KindVendor
	policy.Quarantine.Failures = failures
	policy.Verify.Fraction, policy.Verify.ReportOnly = 1, true
	m := opmanager.New(impls, policy, opmanager.Settings{Listeners: []opmanager.Listener{d}})
	t.Cleanup(m.Close)
	d.Watch(m)
	add := opmanager.MustBind(m, norm.ResidualAdd)
	args := norm.ResidualAddArgs{A: vector(t), B: vector(t), Output: vector(t)}
	for range plan {
		require.NoError(t, add.Call(args))
	}
	return reg, m
}

func vector(t *testing.T) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice([]float32{1, 2, 3}, 3)
	require.NoError(t, err)
	return x
}

// value returns one sample of what reg gathers.
func value(t *testing.T, g prometheus.Gatherer, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	samples:
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, pair := range m.GetLabel() {
				have[pair.GetName()] = pair.GetValue()
			}
			for k, v := range labels {
				if have[k] != v {
					continue samples
				}
			}
			switch {
			case m.GetHistogram() != nil:
				return float64(m.GetHistogram().GetSampleCount())
			case m.GetGauge() != nil:
				return m.GetGauge().GetValue()
			default:
				return m.GetCounter().GetValue()
			}
		}
	}
	require.Failf(t, "no such sample", "%s %v", name, labels)
	return 0
}

func TestDispatchCounts(t *testing.T) {
	lost := errors.New("device lost")
	reg := dispatched(t, 3, nil, nil, lost, opregistry.Unsupported("no f32"), nil)
	acme := map[string]string{"op": "residual_add", "impl": "vendor.acme", "kind": "vendor", "vendor": "acme"}
	other := map[string]string{"op": "residual_add", "impl": "reference.go", "kind": "reference", "vendor": ""}

	assert.InDelta(t, 3, value(t, reg, "primus_op_calls_total", acme), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_op_errors_total", acme), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_op_declines_total", acme), 0)
	assert.InDelta(t, 2, value(t, reg, "primus_op_calls_total", other), 0)
	assert.InDelta(t, 0, value(t, reg, "primus_op_errors_total", other), 0)
	assert.Positive(t, value(t, reg, "primus_op_seconds_total", acme))
	assert.Positive(t, value(t, reg, "primus_op_seconds_total", other))
	for _, reason := range []string{"failed", "declined"} {
		assert.InDelta(t, 1, value(t, reg, "primus_op_fallbacks_total", map[string]string{
			"op": "residual_add", "from": "vendor.acme", "to": "reference.go", "reason": reason,
		}), 0, reason)
	}
}

func TestDispatchSamplesDurationsWithTheStep(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDispatch(reg)
	require.NoError(t, err)
	defer d.Close()
	tell := d.Durations("residual_add", opmanager.ImplInfo{ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme"})
	tell(2 * time.Second) // before any step
	d.RunStarted(backend.Run{FirstStep: 4})
	tell(10 * time.Microsecond)
	d.StepDone(backend.Step{Step: 4})
	tell(time.Millisecond)
	d.RunEnded(backend.Result{})
	tell(100 * time.Millisecond)

	families, err := reg.Gather()
	require.NoError(t, err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "primus_op_duration_seconds" })
	require.GreaterOrEqual(t, i, 0)
	h := families[i].GetMetric()[0].GetHistogram()
	assert.Equal(t, uint64(4), h.GetSampleCount())
	assert.Equal(t, []string{"4", "5"}, exemplars(h))
	assert.NotEmpty(t, h.GetPositiveSpan(), "a native histogram, too")
	assert.NotEmpty(t, h.GetBucket(), "a classic one, too")
}

func TestDispatchCountsEvents(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDispatch(reg)
	require.NoError(t, err)
	defer d.Close()
	from, to := opmanager.ImplInfo{ID: "vendor.acme"}, opmanager.ImplInfo{ID: "default.flagos"}
	d.OnEvent(opmanager.Selected{Op: "gelu", Impl: from})
	d.OnEvent(opmanager.Switched{Op: "gelu", From: from, To: to})
	d.OnEvent(opmanager.Quarantined{Op: "gelu", Impl: from})
	d.OnEvent(opmanager.PolicyChanged{Generation: 2})
	d.OnEvent(opmanager.PolicyPutBack{Op: "gelu"})
	assert.InDelta(t, 1, value(t, reg, "primus_op_switches_total", map[string]string{"op": "gelu", "from": "vendor.acme", "to": "default.flagos"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_op_quarantines_total", map[string]string{"op": "gelu", "impl": "vendor.acme"}), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_policy_changes_total", nil), 0)
	assert.InDelta(t, 1, value(t, reg, "primus_policy_put_back_total", map[string]string{"op": "gelu"}), 0)
}

func TestDispatchIsEmptyBeforeWatch(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDispatch(reg)
	require.NoError(t, err)
	defer d.Close()
	n, err := testutil.GatherAndCount(reg, "primus_op_calls_total", "primus_op_duration_seconds", "primus_policy_info", "primus_dispatch_generation")
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestDispatchRegistersAllOrNothing(t *testing.T) {
	for _, taken := range []string{"primus_op_calls_total", "primus_op_fallbacks_total"} {
		t.Run(taken, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			require.NoError(t, reg.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: taken, Help: "In the way."})))
			_, err := metrics.NewDispatch(reg)
			require.Error(t, err)
			n, err := testutil.GatherAndCount(reg)
			require.NoError(t, err)
			assert.Equal(t, 1, n)
		})
	}
}

func TestDispatchCanBeMadeAgainAfterClose(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 {
		d, err := metrics.NewDispatch(reg)
		require.NoError(t, err)
		d.Close()
		d.Close()
	}
}

func TestDispatchIsScrapedWhileOpsRun(t *testing.T) {
	reg := prometheus.NewRegistry()
	d, err := metrics.NewDispatch(reg)
	require.NoError(t, err)
	defer d.Close()
	var scrapers sync.WaitGroup
	for range 4 {
		scrapers.Go(func() {
			for range 50 {
				_, err := reg.Gather()
				assert.NoError(t, err)
			}
		})
	}
	impls := opregistry.NewRegistry()
	require.NoError(t, impls.Register(reference.Source()))
	m := opmanager.New(impls, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{d}})
	defer m.Close()
	d.Watch(m)
	add := opmanager.MustBind(m, norm.ResidualAdd)
	args := norm.ResidualAddArgs{A: vector(t), B: vector(t), Output: vector(t)}
	for range 500 {
		require.NoError(t, add.Call(args))
	}
	scrapers.Wait()
	assert.InDelta(t, 500, value(t, reg, "primus_op_calls_total", map[string]string{"op": "residual_add"}), 0)
}

// The impls of processes of a framework take the place of those of this program.
func TestDispatchOfProcesses(t *testing.T) {
	other := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDispatch(other)
	require.NoError(t, err)
	defer d.Close()
	m := opmanager.New(opregistry.NewRegistry(), oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	d.Watch(m)
	cuda := opmanager.ImplInfo{ID: "vendor.cuda", Kind: opregistry.KindVendor, Vendor: "cuda"}
	flagos := opmanager.ImplInfo{ID: "default.flagos", Kind: opregistry.KindFlagos}
	for rank := range 2 {
		d.OpEvent(rank, opmanager.Selected{Op: "gelu", Impl: cuda})
	}
	d.OpEvent(1, opmanager.Failed{Op: "gelu", Impl: cuda, Err: errors.New("no kernel")})
	d.OpEvent(1, opmanager.FellBack{Op: "gelu", From: cuda, To: flagos, Cause: errors.New("no kernel")})
	labels := func(i opmanager.ImplInfo) map[string]string {
		return map[string]string{"op": "gelu", "impl": i.ID, "kind": i.Kind.String(), "vendor": i.Vendor}
	}
	assert.InDelta(t, 1, value(t, other, "primus_op_selected_info", labels(cuda)), 0)
	assert.InDelta(t, 1, value(t, other, "primus_op_selected_info", labels(flagos)), 0)
	assert.InDelta(t, 1, value(t, other, "primus_op_errors_total", labels(cuda)), 0)
	assert.InDelta(t, 1, value(t, other, "primus_op_fallbacks_total", map[string]string{"op": "gelu", "from": "vendor.cuda", "to": "default.flagos", "reason": "failed"}), 0)
}
