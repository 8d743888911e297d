package metrics

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/prometheus/client_golang/prometheus"
)

// Dispatch exports what an op manager counts. It has to be a listener of the manager, too, to count fallbacks.
type Dispatch struct {
	manager   atomic.Pointer[opmanager.Manager]
	fallbacks *prometheus.CounterVec
	reg       prometheus.Registerer

	calls, errors, declines, duration           *prometheus.Desc
	verified, violations, unverified, verifyMax *prometheus.Desc
	selected, quarantined, policy, generation   *prometheus.Desc
}

// NewDispatch registers the metrics of dispatch, which are empty until Watch. When one of their names is taken it registers
// none and returns the error of reg.
func NewDispatch(reg prometheus.Registerer) (*Dispatch, error) {
	labels := []string{"op", "impl", "kind", "vendor"}
	d := &Dispatch{
		reg:         reg,
		calls:       prometheus.NewDesc("primus_op_calls_total", "Calls that an impl served.", labels, nil),
		errors:      prometheus.NewDesc("primus_op_errors_total", "Calls in which an impl returned an error or panicked.", labels, nil),
		declines:    prometheus.NewDesc("primus_op_declines_total", "Calls that an impl declined as unsupported.", labels, nil),
		duration:    prometheus.NewDesc("primus_op_duration_seconds", "Time in the calls that an impl served.", labels, nil),
		verified:    prometheus.NewDesc("primus_op_verify_calls_total", "Calls whose results were compared with the reference.", labels, nil),
		violations:  prometheus.NewDesc("primus_op_verify_violations_total", "Verified calls whose results were beyond the tolerance.", labels, nil),
		unverified:  prometheus.NewDesc("primus_op_verify_skipped_total", "Sampled calls that could not be compared with the reference.", labels, nil),
		verifyMax:   prometheus.NewDesc("primus_op_verify_error_ratio_max", "Largest difference from the reference in verified calls, over the reference's value.", labels, nil),
		selected:    prometheus.NewDesc("primus_op_selected_info", "The impl that serves an op outside of rules for layers and phases.", labels, nil),
		quarantined: prometheus.NewDesc("primus_op_quarantined", "1 for an impl that is set aside for an op.", []string{"op", "impl", "state"}, nil),
		policy:      prometheus.NewDesc("primus_policy_info", "The dispatch policy in force.", []string{"fingerprint", "prefer", "strict"}, nil),
		generation:  prometheus.NewDesc("primus_dispatch_generation", "Number of the dispatch table in force; every change of policy, registry or quarantine makes a new one.", nil, nil),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "primus_op_fallbacks_total", Help: "Calls that another impl served than the first candidate.",
		}, []string{"op", "from", "to", "reason"}),
	}
	if err := reg.Register(d); err != nil {
		return nil, fmt.Errorf("metrics: register dispatch: %w", err)
	}
	if err := reg.Register(d.fallbacks); err != nil {
		reg.Unregister(d)
		return nil, fmt.Errorf("metrics: register dispatch: %w", err)
	}
	return d, nil
}

// Watch makes the counters of m the ones that are exported.
func (d *Dispatch) Watch(m *opmanager.Manager) { d.manager.Store(m) }

// Close unregisters the metrics. Further calls do nothing.
func (d *Dispatch) Close() {
	d.reg.Unregister(d)
	d.reg.Unregister(d.fallbacks)
}

// OnEvent counts fallbacks. It implements opmanager.Listener.
func (d *Dispatch) OnEvent(e opmanager.Event) {
	if f, ok := e.(opmanager.FellBack); ok {
		reason := "failed"
		if errors.Is(f.Cause, opregistry.ErrUnsupported) {
			reason = "declined"
		}
		d.fallbacks.WithLabelValues(f.Op, f.From.ID, f.To.ID, reason).Inc()
	}
}

// Describe implements prometheus.Collector.
func (d *Dispatch) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		d.calls, d.errors, d.declines, d.duration, d.verified, d.violations, d.unverified, d.verifyMax,
		d.selected, d.quarantined, d.policy, d.generation,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Dispatch) Collect(ch chan<- prometheus.Metric) {
	m := d.manager.Load()
	if m == nil {
		return
	}
	counter := func(desc *prometheus.Desc, n uint64, labels []string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range m.Stats() {
		labels := []string{s.Op, s.ID, s.Kind.String(), s.Vendor}
		counter(d.calls, s.Calls, labels)
		counter(d.errors, s.Errors, labels)
		counter(d.declines, s.Declines, labels)
		ch <- prometheus.MustNewConstSummary(d.duration, s.Calls, s.Duration.Seconds(), nil, labels...)
		if s.Verify.Calls+s.Verify.Skipped > 0 {
			counter(d.verified, s.Verify.Calls, labels)
			counter(d.violations, s.Verify.Violations, labels)
			counter(d.unverified, s.Verify.Skipped, labels)
			gauge(d.verifyMax, s.Verify.MaxRel, labels...)
		}
	}
	for _, e := range m.ExplainAll() {
		if len(e.Order) > 0 {
			first := e.Order[0]
			gauge(d.selected, 1, e.Op, first.ID, first.Kind.String(), first.Vendor)
		}
	}
	for _, q := range m.Quarantines() {
		gauge(d.quarantined, 1, q.Op, q.Impl, string(q.State))
	}
	policy := m.Policy()
	gauge(d.policy, 1, policy.Fingerprint(), policy.Prefer.String(), strconv.FormatBool(policy.Strict))
	gauge(d.generation, float64(m.Generation()))
}

var (
	_ prometheus.Collector = (*Dispatch)(nil)
	_ opmanager.Listener   = (*Dispatch)(nil)
)
