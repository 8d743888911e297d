package metrics

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build is the build information of a program.
type Build struct{ Version, Revision, GoVersion string }

// Plugin is a source of ops, compiled in or in a library, that a program uses or has tried to use.
type Plugin struct {
	Name, Version string
	State         PluginState
	Usable        bool // some of its impls can run on this machine
}

// PluginState is the state of a plugin.
type PluginState string

// The states of a plugin.
const (
	PluginCompiledIn PluginState = "compiled_in"
	PluginLoaded     PluginState = "loaded"
	PluginIsolated   PluginState = "isolated" // loaded in a process of its own
	PluginRejected   PluginState = "rejected" // not used
)

// PluginLister returns the plugins. It is called at every scrape, on any goroutine.
type PluginLister interface{ Plugins() []Plugin }

// Process exports the build, the plugins, the Go runtime, and the memory and CPU time of the
// process.
type Process struct {
	set     *set
	plugins atomic.Pointer[PluginLister]
	info    *prometheus.Desc
}

// NewProcess registers the metrics of the process. Those of plugins are empty until WatchPlugins is
// called. If one of the names is taken, it registers none and returns the error of reg.
func NewProcess(reg prometheus.Registerer, b Build) (*Process, error) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "primus_build_info", Help: "The build of this program.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion},
	})
	build.Set(1)
	p := &Process{info: prometheus.NewDesc("primus_plugin_info", "A source of impls; state is what primus plugins list says, and usable whether some of its impls can run here.", []string{"plugin", "version", "state", "usable"}, nil)}
	var err error
	p.set, err = register(reg, "process", build, p, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// WatchPlugins exports the plugins of l from now on. Plugins with equal labels are exported once.
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
	told := map[Plugin]bool{}
	for _, each := range (*l).Plugins() {
		each.Name = strings.ToValidUTF8(each.Name, "?") // file names may contain any bytes
		if !told[each] {
			told[each] = true
			ch <- prometheus.MustNewConstMetric(p.info, prometheus.GaugeValue, 1, each.Name, each.Version, string(each.State), strconv.FormatBool(each.Usable))
		}
	}
}

var _ prometheus.Collector = (*Process)(nil)
