package projection

import (
	"errors"
	"fmt"
)

// Rates are the speeds that a projection assumes, per device and second.
type Rates struct {
	BF16       float64 `json:"bf16_flops"`
	FP8        float64 `json:"fp8_flops"`
	Efficiency float64 `json:"efficiency"` // of the rates above that matrix products reach
	Measured   float64 `json:"measured_flops,omitempty"`
	HBM        float64 `json:"memory_bandwidth"`
	Inside     float64 `json:"inside_bandwidth"`  // bytes between devices of a node
	Between    float64 `json:"between_bandwidth"` // bytes between nodes
}

// Performance is the work of a step and the time that it would take.
type Performance struct {
	Rates           Rates     `json:"rates"`
	Work            []Work    `json:"work"`
	TokensPerStep   float64   `json:"tokens_per_step"`
	FLOPsPerToken   float64   `json:"flops_per_token"` // of the model: forward and backward pass
	FLOPsPerStep    float64   `json:"flops_per_step"`
	Recomputed      float64   `json:"recomputed_flops_per_step"`
	Bubble          float64   `json:"pipeline_bubble"` // idle time as a fraction of the working time
	SlowestStage    int       `json:"slowest_stage"`
	Traffic         []Traffic `json:"communication"`
	Times           []Time    `json:"times"`
	StepSeconds     float64   `json:"step_seconds"`
	TokensPerSecond float64   `json:"tokens_per_second"` // of all devices
	FLOPSPerDevice  float64   `json:"flops_per_second_and_device"`
	Utilisation     float64   `json:"model_flops_utilisation"`
}

// Time is a part of the time of a step with its formula.
type Time struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"`
	Formula string  `json:"formula"`
	Numbers string  `json:"numbers"`
}

// Validate returns an error for rates that a projection cannot use.
func (r Rates) Validate() error {
	var faults []error
	for _, f := range []struct {
		name  string
		value float64
	}{{"bf16", r.BF16}, {"memory bandwidth", r.HBM}, {"bandwidth within a node", r.Inside}, {"bandwidth between nodes", r.Between}} {
		if !(f.value > 0 && f.value < 1e30) {
			faults = append(faults, fmt.Errorf("projection: the rate of %s is %v, want a number above 0", f.name, f.value))
		}
	}
	if !(r.Efficiency > 0 && r.Efficiency <= 1) {
		faults = append(faults, fmt.Errorf("projection: the efficiency is %v, want a number above 0 and up to 1", r.Efficiency))
	}
	return errors.Join(faults...)
}

// linear returns the rate of linear layers.
func (p *Plan) linear(r Rates) float64 {
	if (p.Precision.Compute == "fp8" || p.Precision.Compute == "fp4") && r.FP8 > 0 {
		return r.FP8
	}
	return r.BF16
}

// seconds returns the time of work on n tokens.
func (p *Plan) seconds(linear, other, tokens float64, r Rates) float64 {
	if r.Measured > 0 {
		return (linear + other) * tokens / r.Measured
	}
	return (linear/p.linear(r) + other/r.BF16) * tokens / r.Efficiency
}

// pass is the time of one micro batch on a device of a pipeline rank.
type pass struct {
	forward, backward, again float64
	traffic                  []Traffic // of a whole step
	exposed                  float64   // communication that is not hidden
}

func (p pass) total() float64 { return p.forward + p.backward + p.again + p.exposed }

func (p *Plan) pass(rank int, r Rates) pass {
	var w Work
	for _, c := range p.Stages[rank] {
		one := p.chunkWork(c)
		w.Linear, w.Other, w.Again, w.Frozen = w.Linear+one.Linear, w.Other+one.Other, w.Again+one.Again, w.Frozen+one.Frozen
	}
	tokens := p.tokens() / float64(p.Parallel.Tensor) // of the work that tensor parallelism cuts
	x := pass{forward: p.seconds(w.Linear, w.Other, tokens, r), traffic: p.traffic(rank, r)}
	if w.forward() > 0 { // a stage can have the embedding alone
		x.backward = x.forward * (2 - w.Frozen/w.forward())
		x.again = x.forward * w.Again / w.forward()
	}
	layers, _ := p.countLayers(rank)
	attention := 3 * p.seconds(0, float64(layers)*p.Model.core(), tokens, r)
	for i := range x.traffic {
		one := &x.traffic[i]
		one.Seconds = one.Bytes / one.bandwidth
		if !one.inPasses {
			continue
		}
		perPass := one.perPass / one.bandwidth
		exposed := perPass
		if one.hideable {
			exposed = max(0, perPass-map[bool]float64{true: attention, false: x.forward + x.backward}[one.Kind == "context"])
		}
		one.Exposed = exposed * float64(p.Parallel.MicroBatches)
		x.exposed += exposed
	}
	return x
}

// passes returns the passes of every pipeline rank, and the slowest rank.
func (p *Plan) passes(r Rates) (all []pass, slowest int) {
	all = make([]pass, len(p.Stages))
	for rank, first := range p.alike {
		if first < rank {
			all[rank] = all[first]
			continue
		}
		all[rank] = p.pass(rank, r)
		if all[rank].total() > all[slowest].total() {
			slowest = rank
		}
	}
	return all, slowest
}

// Performance returns the work of a step and the time that it takes at the given rates.
func (p *Plan) Performance(r Rates) (*Performance, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	c := p.Parallel
	perf := &Performance{Rates: r, Work: p.Work(), TokensPerStep: float64(c.GlobalBatch) * float64(p.Model.Sequence)}
	for _, w := range perf.Work {
		perf.FLOPsPerToken += float64(w.Times) * (3*w.forward() - w.Frozen)
	}
	perf.FLOPsPerStep = perf.FLOPsPerToken * perf.TokensPerStep
	for rank := range p.Stages {
		for _, chunk := range p.Stages[rank] {
			perf.Recomputed += p.chunkWork(chunk).Again * perf.TokensPerStep
		}
	}
	passes, rank := p.passes(r)
	perf.SlowestStage = rank
	waits, err := p.bubble(r, passes, rank)
	if err != nil {
		return nil, err
	}
	perf.time(p, passes[rank], waits)
	perf.TokensPerSecond = perf.TokensPerStep / perf.StepSeconds
	perf.FLOPSPerDevice = perf.FLOPsPerStep / perf.StepSeconds / float64(c.World)
	perf.Utilisation = perf.FLOPSPerDevice / p.linear(r)
	return perf, nil
}

// time sets the parts of the time of a step, in which the slowest stage waits for some seconds
// because of the schedule.
func (perf *Performance) time(p *Plan, slowest pass, w waiting) {
	n := float64(p.Parallel.MicroBatches)
	perf.StepSeconds = p.step(perf.Rates, slowest, perf.SlowestStage, w.seconds, func(t Time, numbers func() string) {
		if t.Part == partBubble {
			t.Formula = "step of the simulated schedule " + w.schedule + " − the passes"
			perf.Bubble = w.seconds / (n * slowest.total())
		}
		t.Numbers = numbers()
		perf.Times = append(perf.Times, t)
	})
	perf.Traffic = slowest.traffic
}

// partBubble is the part of a step in which stages wait for each other.
const partBubble = "pipeline bubble"

// step returns the time of a step of the slowest pipeline rank, and hands out the parts that are
// not 0. It says of the traffic of the rank what is not hidden.
func (p *Plan) step(r Rates, slowest pass, rank int, waits float64, part func(t Time, numbers func() string)) (sum float64) {
	n := float64(p.Parallel.MicroBatches)
	add := func(name string, seconds float64, formula string, numbers func() string) {
		if seconds > 0 {
			sum += seconds
			part(Time{Part: name, Seconds: seconds, Formula: formula}, numbers)
		}
	}
	times := func(seconds float64) func() string {
		return func() string { return fmt.Sprintf("%.0f · %.4g s", n, seconds) }
	}
	rate := "micro batches · FLOPs of the stage / (rate · efficiency)"
	if r.Measured > 0 {
		rate = "micro batches · FLOPs of the stage / measured rate"
	}
	add("forward passes", n*slowest.forward, rate, times(slowest.forward))
	backward := "micro batches · 2 · forward pass"
	if p.Model.AdapterRank > 0 {
		backward = "micro batches · 2 · forward pass, less the gradients of frozen weights"
	}
	add("backward passes", n*slowest.backward, backward, times(slowest.backward))
	add("recomputation", n*slowest.again, "micro batches · what is computed again", times(slowest.again))
	add("communication in the passes", n*slowest.exposed, "micro batches · bytes / bandwidth, where nothing hides them", times(slowest.exposed))
	add(partBubble, waits, "", func() string { return fmt.Sprintf("%.4g · %.4g s", waits/(n*slowest.total()), n*slowest.total()) })

	window := slowest.forward + slowest.backward
	if p.Precision.Sharding == ShardParameters {
		window *= n
	}
	for i := range slowest.traffic {
		x := &slowest.traffic[i]
		if x.inPasses {
			continue
		}
		x.Exposed = x.Seconds
		if x.hideable {
			x.Exposed = max(0, x.Seconds-window)
			window = max(0, window-x.Seconds)
		}
		add("exchange of "+x.Kind, x.Exposed, "bytes / bandwidth, less what the passes hide", func() string { return fmt.Sprintf("%.4g B / %.4g B/s", x.Bytes, x.bandwidth) })
	}

	q, h := p.Precision, p.held(rank)
	dense, expert := p.shards(ShardOptimizer)
	trained, trainedExperts := p.Model.trained(h)
	state := trained/dense + trainedExperts/expert
	perParameter := q.Gradient + 2*(q.Master+q.FirstMoment+q.SecondMom) + q.Weight
	add("optimizer", float64(perParameter)*state/r.HBM, "bytes read and written per parameter · parameters / memory bandwidth", func() string {
		return fmt.Sprintf("%d · %.0f / %.4g B/s", perParameter, state, r.HBM)
	})
	return sum
}

// TimeAssumptions lists the assumptions of the times.
func (p *Plan) TimeAssumptions(r Rates) []string {
	list := []string{
		"norms, activations, kernel launches and the loader of data are part of the efficiency",
		"embeddings and the output layer communicate nothing",
		"every device has a link of its own to other nodes, and collectives use their whole bandwidth",
	}
	if r.Measured > 0 {
		list[0] = "the measured rate holds for all of the passes"
	}
	if p.Model.Experts > 0 {
		list = append(list, "tokens are spread evenly over the experts")
	}
	return list
}
