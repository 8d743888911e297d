package serve

import (
	"context"
	"os"
	goruntime "runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Process is what this process uses of its machine. What the system does not report is null.
type Process struct {
	PID           int      `json:"pid"`
	Host          string   `json:"host"`
	CPUs          int      `json:"cpus" doc:"that it may use"`
	CPUSeconds    *float64 `json:"cpu_seconds" doc:"CPU time until now; its growth per second is the number of busy CPUs"`
	ResidentBytes *float64 `json:"resident_bytes" doc:"memory that is in use"`
}

func (s *Server) registerProcess() {
	figures := prometheus.NewRegistry()
	figures.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	get(s, "get-process", "/v1/process", "Read the memory and CPU time of this process", func(context.Context, *nothing) (Process, error) {
		return readProcess(figures)
	})
}

func readProcess(figures prometheus.Gatherer) (Process, error) {
	p := Process{PID: os.Getpid(), CPUs: goruntime.GOMAXPROCS(0)}
	p.Host, _ = os.Hostname() // without a name it has none
	families, err := figures.Gather()
	if err != nil {
		return Process{}, err
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "process_cpu_seconds_total":
				p.CPUSeconds = new(m.GetCounter().GetValue())
			case "process_resident_memory_bytes":
				p.ResidentBytes = new(m.GetGauge().GetValue())
			}
		}
	}
	return p, nil
}
