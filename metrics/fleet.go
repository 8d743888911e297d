package metrics

import "github.com/prometheus/client_golang/prometheus"

// FleetState is what a run reports about its membership in a fleet.
type FleetState struct {
	Connected  bool   // the run is registered and follows the policy of the fleet
	Losses     uint64 // how often the connection was lost
	Revision   int64  // of the current policy of the fleet, 0 for none
	Rejections uint64 // policies that could not be used
}

// Fleet exports the membership of a run in a fleet.
type Fleet struct {
	set                                    *set
	state                                  func() FleetState
	connected, losses, revision, rejection *prometheus.Desc
}

// NewFleet registers the metrics of a member of a fleet. It calls state at every scrape, on any
// goroutine. If one of the names is taken, it registers none and returns the error of reg.
func NewFleet(reg prometheus.Registerer, state func() FleetState) (*Fleet, error) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("primus_fleet_"+name, help, nil, nil)
	}
	f := &Fleet{
		state:     state,
		connected: desc("connected", "1 while the run is registered with the fleet and follows its policy, else 0."),
		losses:    desc("losses_total", "How often the connection to the fleet was lost."),
		revision:  desc("policy_revision", "Revision of the policy of the fleet that is in force, 0 for none."),
		rejection: desc("policies_rejected_total", "Policies of the fleet that could not be used."),
	}
	var err error
	if f.set, err = register(reg, "fleet", f); err != nil {
		return nil, err
	}
	return f, nil
}

// Close unregisters the metrics. Further calls do nothing.
func (f *Fleet) Close() { f.set.close() }

// Describe implements prometheus.Collector.
func (f *Fleet) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.connected, f.losses, f.revision, f.rejection} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f *Fleet) Collect(ch chan<- prometheus.Metric) {
	s := f.state()
	connected := 0.0
	if s.Connected {
		connected = 1
	}
	ch <- prometheus.MustNewConstMetric(f.connected, prometheus.GaugeValue, connected)
	ch <- prometheus.MustNewConstMetric(f.losses, prometheus.CounterValue, float64(s.Losses))
	ch <- prometheus.MustNewConstMetric(f.revision, prometheus.GaugeValue, float64(s.Revision))
	ch <- prometheus.MustNewConstMetric(f.rejection, prometheus.CounterValue, float64(s.Rejections))
}

var _ prometheus.Collector = (*Fleet)(nil)
