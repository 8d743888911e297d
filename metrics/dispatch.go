package metrics

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// Dispatch exports the counters of an op manager. To count fallbacks, switches and changes of the
// policy and to observe durations, it must also be a listener of the manager; to add the step to
// durations, it must be an observer of the run.
type Dispatch struct {
	set     *set
	manager atomic.Pointer[opmanager.Manager]
	step    stepExemplar
	ranks   backend.RankDispatch // of a framework in other processes

	fallbacks, switches, quarantines *prometheus.CounterVec
	policyChanges                    prometheus.Counter
	putBack                          *prometheus.CounterVec
	durations                        *prometheus.HistogramVec

	calls, errors, declines, seconds                      *prometheus.Desc
	crossed, crossedBytes                                 *prometheus.Desc
	verified, violations, unverified, deferred, verifyMax *prometheus.Desc
	selected, quarantined, policy, generation, canary     *prometheus.Desc

	reference prometheus.Gauge
}

// NewDispatch registers the metrics of dispatch, which are empty until Watch is called. If one of
// their names is taken, it registers none and returns the error of reg.
func NewDispatch(reg prometheus.Registerer) (*Dispatch, error) {
	labels := []string{"op", "impl", "kind", "vendor"}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("primus_"+name, help, labels, nil)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "primus_" + name, Help: help}, labels)
	}
	d := &Dispatch{
		calls:        desc("op_calls_total", "Calls that an impl served.", labels...),
		errors:       desc("op_errors_total", "Calls in which an impl returned an error or panicked.", labels...),
		declines:     desc("op_declines_total", "Calls that an impl declined as unsupported.", labels...),
		seconds:      desc("op_seconds_total", "Time in the calls that an impl served.", labels...),
		crossed:      desc("op_cross_device_calls_total", "Calls that an impl served on the host with copies of operands on a device.", labels...),
		crossedBytes: desc("op_cross_device_bytes_total", "Bytes copied to the host and back for calls with operands on a device.", labels...),
		verified:     desc("op_verify_calls_total", "Calls whose results were compared with the reference.", labels...),
		violations:   desc("op_verify_violations_total", "Verified calls whose results were beyond the tolerance, or that wrote to memory that they may not write.", labels...),
		unverified:   desc("op_verify_skipped_total", "Sampled calls that could not be compared: no reference, or it declined.", labels...),
		deferred:     desc("op_verify_deferred_total", "Sampled calls that were not compared because verification had used its part of the time.", labels...),
		verifyMax:    desc("op_verify_error_ratio_max", "Largest difference from the reference in verified calls, over the reference's value.", labels...),
		selected:     desc("op_selected_info", "The impl that serves an op outside of rules for layers and phases.", labels...),
		quarantined:  desc("op_quarantined", "1 for an impl in quarantine for an op; state is open or half_open.", "op", "impl", "state"),
		canary:       desc("op_canary_calls", "Calls that an impl on trial was given; state is trying, promoted or withdrawn.", "op", "impl", "state"),
		policy:       desc("policy_info", "The policy in force; the fingerprint is equal for policies that mean the same.", "fingerprint", "prefer", "strict"),
		generation:   desc("dispatch_generation", "Number of the dispatch table in force; every change of policy, registry or quarantine makes a new one."),

		fallbacks:     counter("op_fallbacks_total", "Calls that the impl in to served although the one in from is the first candidate.", "op", "from", "to", "reason"),
		switches:      counter("op_switches_total", "Times that the impl in to served an op that the one in from had served before.", "op", "from", "to"),
		quarantines:   counter("op_quarantines_total", "Quarantines of an impl for an op.", "op", "impl"),
		reference:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_reference_ratio", Help: "Part of the last step's time that impls of kind reference took; above 0.1 the log says which ops, and why."}),
		putBack:       counter("policy_put_back_total", "Returns to an earlier policy because the one in force did not serve a call of the op.", "op"),
		policyChanges: prometheus.NewCounter(prometheus.CounterOpts{Name: "primus_policy_changes_total", Help: "Policies put in force after the first."}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "primus_op_duration_seconds", Help: "Duration of every seventh call that an impl served; exemplars carry the step.",
			Buckets:                     prometheus.ExponentialBuckets(1e-6, 4, 12), // 1 µs to 4.2 s
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, labels),
	}
	var err error
	if d.set, err = register(reg, "dispatch", d, d.fallbacks, d.switches, d.quarantines, d.policyChanges, d.putBack, d.durations, d.reference); err != nil {
		return nil, err
	}
	return d, nil
}

// Watch exports the counters of m from now on.
func (d *Dispatch) Watch(m *opmanager.Manager) { d.manager.Store(m) }

// Close unregisters the metrics. Further calls do nothing.
func (d *Dispatch) Close() { d.set.close() }

// OnEvent counts an event. It implements opmanager.Listener.
func (d *Dispatch) OnEvent(e opmanager.Event) {
	switch e := e.(type) {
	case opmanager.FellBack:
		reason := "failed"
		if errors.Is(e.Cause, opregistry.ErrUnsupported) {
			reason = "declined"
		}
		d.fallbacks.WithLabelValues(e.Op, e.From.ID, e.To.ID, reason).Inc()
	case opmanager.Switched:
		d.switches.WithLabelValues(e.Op, e.From.ID, e.To.ID).Inc()
	case opmanager.Quarantined:
		d.quarantines.WithLabelValues(e.Op, e.Impl.ID).Inc()
	case opmanager.PolicyChanged:
		d.policyChanges.Inc()
	case opmanager.PolicyPutBack:
		d.putBack.WithLabelValues(e.Op).Inc()
	}
}

// OpEvent counts an event of the op manager in a process of a framework, whose impls are then
// exported in place of those of this program.
func (d *Dispatch) OpEvent(rank int, e opmanager.Event) {
	d.ranks.OpEvent(rank, e)
	d.OnEvent(e)
}

// RankCalls counts calls in a process of a framework.
func (d *Dispatch) RankCalls(rank int, calls []backend.RankCalls) { d.ranks.RankCalls(rank, calls) }

// Durations returns a function that observes the durations of calls of an op that an impl served,
// with the step as exemplar. It implements opmanager.DurationListener.
func (d *Dispatch) Durations(op string, impl opmanager.ImplInfo) func(time.Duration) {
	histogram := d.durations.WithLabelValues(op, impl.ID, impl.Kind.String(), impl.Vendor).(prometheus.ExemplarObserver)
	return func(took time.Duration) { histogram.ObserveWithExemplar(took.Seconds(), d.step.labels()) }
}

// RunStarted records the first step of the run.
func (d *Dispatch) RunStarted(r backend.Run) { d.step.set(r.FirstStep) }

// StepDone records the number of the next step and the part of the last one that the reference
// took.
func (d *Dispatch) StepDone(s backend.Step) {
	d.step.set(s.Step + 1)
	d.reference.Set(s.ReferenceShare)
}

// RunEnded clears the step.
func (d *Dispatch) RunEnded(backend.Result) { d.step.clear() }

// Describe implements prometheus.Collector.
func (d *Dispatch) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		d.calls, d.errors, d.declines, d.seconds, d.crossed, d.crossedBytes, d.verified, d.violations, d.unverified, d.deferred, d.verifyMax,
		d.selected, d.quarantined, d.policy, d.generation, d.canary,
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
	counter := func(desc *prometheus.Desc, v float64, labels []string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, labels...)
	}
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	policy := m.Policy()
	gauge(d.policy, 1, policy.Fingerprint(), policy.Prefer.String(), strconv.FormatBool(policy.Strict))
	gauge(d.generation, float64(m.Generation()))
	if uses := d.ranks.Uses(); len(uses) > 0 {
		for _, u := range uses {
			labels := []string{u.Op, u.Impl, u.Kind, u.Vendor}
			counter(d.errors, float64(u.Errors), labels)
			if u.Calls+u.Declines > 0 {
				counter(d.calls, float64(u.Calls), labels)
				counter(d.declines, float64(u.Declines), labels)
				counter(d.seconds, time.Duration(u.Nanos).Seconds(), labels)
			}
			if u.Ranks > 0 {
				gauge(d.selected, 1, labels...)
			}
		}
		return
	}
	for _, s := range m.Stats() {
		labels := []string{s.Op, s.ID, s.Kind.String(), s.Vendor}
		counter(d.calls, float64(s.Calls), labels)
		counter(d.errors, float64(s.Errors), labels)
		counter(d.declines, float64(s.Declines), labels)
		counter(d.seconds, s.Duration.Seconds(), labels)
		if s.CrossDevice > 0 {
			counter(d.crossed, float64(s.CrossDevice), labels)
			counter(d.crossedBytes, float64(s.CrossDeviceBytes), labels)
		}
		if s.Verify.Calls+s.Verify.Skipped > 0 {
			counter(d.verified, float64(s.Verify.Calls), labels)
			counter(d.violations, float64(s.Verify.Violations), labels)
			counter(d.unverified, float64(s.Verify.Skipped), labels)
			counter(d.deferred, float64(s.Verify.Deferred), labels)
			gauge(d.verifyMax, s.Verify.MaxRel, labels...)
		}
	}
	for _, e := range m.ExplainAll() {
		if len(e.Order) > 0 {
			first := e.Order[0]
			gauge(d.selected, 1, e.Op, first.ID, first.Kind.String(), first.Vendor)
		}
	}
	for _, c := range m.Canaries() {
		gauge(d.canary, float64(c.Calls), c.Op, c.Impl, string(c.State))
	}
	for _, q := range m.Quarantines() {
		gauge(d.quarantined, 1, q.Op, q.Impl, string(q.State))
	}
}

var (
	_ prometheus.Collector       = (*Dispatch)(nil)
	_ opmanager.DurationListener = (*Dispatch)(nil)
	_ backend.Observer           = (*Dispatch)(nil)
	_ backend.DispatchObserver   = (*Dispatch)(nil)
	_ backend.RankCallObserver   = (*Dispatch)(nil)
)
