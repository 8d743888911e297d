package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/primus-fl/primus/internal/stats"
)

// serveReport holds the measurements.
type serveReport struct {
	CPUs    int           `json:"cpus"`
	Pinned  bool          `json:"pinned"`
	Clients int           `json:"clients"`
	Every   float64       `json:"every_seconds"`
	Rounds  int           `json:"rounds"`
	Phases  []phaseReport `json:"phases"`
}

// phaseReport holds the measurements of a phase. Ratios compare it with the phase in which nobody
// asks: ratios of speeds, so that slower steps are below 1, and of CPU time. Those of the median
// step and of the CPU are computed within a round, and are the median over rounds. The ratio of the
// best steps, which a crowd slows like all others, suffers least from other load on the machine.
type phaseReport struct {
	Name      string  `json:"name"`
	Steps     int     `json:"steps"`
	Step      float64 `json:"step_ms"` // median
	Best      float64 `json:"best_step_ms"`
	CPU       float64 `json:"cpu_ms"` // per step, median over rounds
	StepRatio float64 `json:"step_ratio,omitempty"`
	BestRatio float64 `json:"best_step_ratio,omitempty"`
	CPURatio  float64 `json:"cpu_ratio,omitempty"`
	Served    float64 `json:"served"` // share of the CPU time spent on connections, mean over rounds
	Memory    uint64  `json:"memory_bytes"`

	Answers int                `json:"answers"`
	Refused int                `json:"refused"`
	Events  int                `json:"events"`
	Latency map[string]float64 `json:"latency_ms,omitempty"` // by percentile

	turns []serveTurn
}

func newServeReport(o serveOptions, pinned bool, chosen []phase) serveReport {
	r := serveReport{CPUs: runtime.NumCPU(), Pinned: pinned, Clients: o.clients, Every: o.every.Seconds(), Rounds: o.rounds}
	for _, p := range chosen {
		r.Phases = append(r.Phases, phaseReport{Name: p.name})
	}
	return r
}

// compare computes the figures of all phases.
func (r *serveReport) compare() {
	for i := range r.Phases {
		p := &r.Phases[i]
		var steps, cpu, answers []float64
		for _, t := range p.turns {
			steps, cpu, answers = append(steps, t.steps...), append(cpu, t.cpu), append(answers, t.answers...)
			p.Served += t.served / float64(len(p.turns))
			p.Memory = max(p.Memory, t.memory)
			p.Events, p.Refused = p.Events+t.events, p.Refused+t.refused
		}
		p.Steps, p.Answers = len(steps), len(answers)
		p.Step, p.Best, p.CPU = 1e3*stats.Median(steps), 1e3*slices.Min(steps), 1e3*stats.Median(cpu)
		if len(answers) > 0 {
			p.Latency = map[string]float64{}
			for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1} {
				p.Latency[name] = 1e3 * stats.Percentile(q, answers)
			}
		}
		if i == 0 {
			continue
		}
		base := &r.Phases[0]
		var stepRatios, cpuRatios []float64
		for k, t := range p.turns {
			stepRatios = append(stepRatios, stats.Median(base.turns[k].steps)/stats.Median(t.steps))
			cpuRatios = append(cpuRatios, t.cpu/base.turns[k].cpu)
		}
		p.StepRatio, p.BestRatio, p.CPURatio = stats.Median(stepRatios), base.Best/p.Best, stats.Median(cpuRatios)
	}
}

func (r serveReport) writeTable(out io.Writer) error {
	where := "all on the same CPUs"
	if r.Pinned {
		where = "training on one of them, clients on the others"
	}
	fmt.Fprintf(out, "%d CPUs, %s; %d clients; who polls asks every %g s; %d rounds\n\n", r.CPUs, where, r.Clients, r.Every, r.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tsteps\tstep ms\t× speed\tbest ms\t× speed\tCPU ms a step\t× CPU\tserving\tMiB\tanswers\trefused\tp50 ms\tp90\tp99\tmax\tevents")
	for _, p := range r.Phases {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s\t%.1f\t%s\t%.1f\t%s\t%.2f %%\t%d\t%d\t%d", p.Name, p.Steps, p.Step, figure("%.4f", p.StepRatio), p.Best, figure("%.4f", p.BestRatio),
			p.CPU, figure("%.4f", p.CPURatio), 100*p.Served, p.Memory>>20, p.Answers, p.Refused)
		for _, q := range []string{"p50", "p90", "p99", "max"} {
			if v, ok := p.Latency[q]; ok {
				fmt.Fprintf(w, "\t%.1f", v)
			} else {
				fmt.Fprint(w, "\t-")
			}
		}
		fmt.Fprintf(w, "\t%d\n", p.Events)
	}
	return w.Flush()
}
