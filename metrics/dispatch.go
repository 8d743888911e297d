package metrics

import (
	"errors"
	"fmt"
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

	calls, errors, declines, duration *prometheus.Desc
}

// NewDispatch registers the metrics of dispatch, which are empty until Watch. When one of their names is taken it registers
// none and returns the error of reg.
func NewDispatch(reg prometheus.Registerer) (*Dispatch, error) {
	labels := []string{"op", "impl", "kind", "vendor"}
	d := &Dispatch{
		reg:      reg,
		calls:    prometheus.NewDesc("primus_op_calls_total", "Calls that an impl served.", labels, nil),
		errors:   prometheus.NewDesc("primus_op_errors_total", "Calls in which an impl returned an error or panicked.", labels, nil),
		declines: prometheus.NewDesc("primus_op_declines_total", "Calls that an impl declined as unsupported.", labels, nil),
		duration: prometheus.NewDesc("primus_op_duration_seconds", "Time in the calls that an impl served.", labels, nil),
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
	ch <- d.calls
	ch <- d.errors
	ch <- d.declines
	ch <- d.duration
}

// Collect implements prometheus.Collector.
func (d *Dispatch) Collect(ch chan<- prometheus.Metric) {
	m := d.manager.Load()
	if m == nil {
		return
	}
	for _, s := range m.Stats() {
		labels := []string{s.Op, s.ID, s.Kind.String(), s.Vendor}
		ch <- prometheus.MustNewConstMetric(d.calls, prometheus.CounterValue, float64(s.Calls), labels...)
		ch <- prometheus.MustNewConstMetric(d.errors, prometheus.CounterValue, float64(s.Errors), labels...)
		ch <- prometheus.MustNewConstMetric(d.declines, prometheus.CounterValue, float64(s.Declines), labels...)
		ch <- prometheus.MustNewConstSummary(d.duration, s.Calls, s.Duration.Seconds(), nil, labels...)
	}
}

var (
	_ prometheus.Collector = (*Dispatch)(nil)
	_ opmanager.Listener   = (*Dispatch)(nil)
)
