package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build is what a program knows about itself.
type Build struct{ Version, Revision, GoVersion string }

// Plugin is a source of ops that a program has taken in or tried to: one compiled in, or a library.
type Plugin struct {
	Name, Version string
	State         PluginState
}

// PluginState says how far a plugin has come.
type PluginState string

// The states of a plugin.
const (
	PluginActive      PluginState = "active"      // some of its impls can run on this machine
	PluginUnavailable PluginState = "unavailable" // none can
	PluginRejected    PluginState = "rejected"    // it was not taken in
)

// PluginLister tells which plugins there are. It is asked at every scrape, from any goroutine.
type PluginLister interface{ Plugins() []Plugin }

// Process exports what is known about the process: its build, its plugins, the Go runtime, memory and CPU time.
type Process struct {
	set     *set
	plugins atomic.Pointer[PluginLister]
	info    *prometheus.Desc
}

// NewProcess registers the metrics of the process; those of plugins are empty until WatchPlugins. When one of their names is
// taken it registers none and returns the error of reg.
func NewProcess(reg prometheus.Registerer, b Build) (*Process, error) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "primus_build_info", Help: "The build of this program.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion},
	})
	build.Set(1)
	p := &Process{info: prometheus.NewDesc("primus_plugin_info", "A source of ops, and whether it can be used.", []string{"plugin", "version", "state"}, nil)}
	var err error
	p.set, err = register(reg, "process", build, p, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// WatchPlugins makes the plugins of l the ones that are exported. Their names must differ.
func (p *Process) WatchPlugins(l PluginLister) { p.plugins.Store(&l) }

// Close unregisters the metrics. Further calls do nothing.
func (p *Process) Close() { p.set.close() }

// Describe implements prometheus.Collector.
func (p *Process) Describe(ch chan<- *prometheus.Desc) { ch <- p.info }

// Collect implements prometheus.Collector.
func (p *Process) Collect(ch chan<- prometheus.Metric) {
	l := p.plugins.Load()
	if l == nil {
		return
	}
	for _, each := range (*l).Plugins() {
		ch <- prometheus.MustNewConstMetric(p.info, prometheus.GaugeValue, 1, each.Name, each.Version, string(each.State))
	}
}

var _ prometheus.Collector = (*Process)(nil)
