package fleet

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the metrics of an Agent: whether it is connected, how often it lost the connection, which policy is in
// force and how many could not be used.
func (a *Agent) Collector() prometheus.Collector { return &collector{agent: a, descs: newDescs()} }

type collector struct {
	agent *Agent
	descs descs
}

type descs struct{ connected, losses, revision, rejected *prometheus.Desc }

func newDescs() descs {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("primus_fleet_"+name, help, nil, nil)
	}
	return descs{
		connected: desc("connected", "1 while the run is registered with the fleet and follows its policy, else 0."),
		losses:    desc("losses_total", "How often the connection to the fleet was lost."),
		revision:  desc("policy_revision", "Revision of the policy of the fleet that is in force, 0 for none."),
		rejected:  desc("policies_rejected_total", "Policies of the fleet that could not be used."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.descs.connected, c.descs.losses, c.descs.revision, c.descs.rejected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.agent.State()
	connected := 0.0
	if s.Connected {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(c.descs.connected, prometheus.GaugeValue, connected)
	out <- prometheus.MustNewConstMetric(c.descs.losses, prometheus.CounterValue, float64(s.Losses))
	out <- prometheus.MustNewConstMetric(c.descs.revision, prometheus.GaugeValue, float64(s.Policy.InForce))
	out <- prometheus.MustNewConstMetric(c.descs.rejected, prometheus.CounterValue, float64(s.Rejections))
}

var _ prometheus.Collector = (*collector)(nil)
