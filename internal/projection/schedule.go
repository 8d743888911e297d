package projection

import (
	"fmt"

	"github.com/primus-fl/primus/internal/pipeline"
)

// steady is how many micro batches for each stage are enough to see a pipeline in full work: more
// of them change neither how long stages wait nor what they hold.
const steady = 8

// tableNames are the names of schedules in package pipeline.
var tableNames = map[Schedule]string{
	ScheduleOneForwardOneBackward: "1f1b", ScheduleInterleaved: "interleaved", ScheduleZeroBubble: "zb1p",
	ScheduleZeroBubbleV: "zbv", ScheduleVHalf: "v-half", ScheduleVMin: "v-min",
}

// table returns the schedule of the pipeline for the given times, with no more micro batches than
// it takes to see it in full work.
func (p Parallel) table(times pipeline.Times) (pipeline.Table, error) {
	t, err := pipeline.Generate(tableNames[p.Schedule], p.Pipeline, p.simulated(), p.Virtual, times)
	if err != nil {
		return t, fmt.Errorf("projection: the schedule %s: %w", p.Schedule, err)
	}
	return t, nil
}

// simulated returns how many micro batches a table has.
func (p Parallel) simulated() int {
	if most := steady * p.Pipeline; p.MicroBatches > most+p.Pipeline {
		return most + p.MicroBatches%p.Pipeline
	}
	return p.MicroBatches
}

// inFlight returns how many micro batches of each chunk keep their activations when a stage keeps
// most of them, by stage.
func (p Parallel) inFlight() ([][]int, error) {
	t, err := p.table(pipeline.Times{Ranks: []pipeline.Cost{{Forward: 1, Backward: 1, Weights: 1}}})
	if err != nil {
		return nil, err
	}
	return pipeline.Held(t), nil
}

// times returns the costs of the chunks of every pipeline rank.
func (p *Plan) times(r Rates, passes []pass) pipeline.Times {
	times := pipeline.Times{Chunks: make([][]pipeline.Cost, p.Parallel.Pipeline)}
	for rank, first := range p.alike {
		if first < rank {
			times.Chunks[rank] = times.Chunks[first]
			continue
		}
		times.Chunks[rank] = p.chunkCosts(p.Stages[rank], passes[rank], r)
	}
	return times
}

// waiting is how long the slowest stage of a pipeline waits in a step.
type waiting struct {
	rates    Rates
	seconds  float64
	schedule string // that was simulated
}

// bubble simulates how long the slowest stage waits.
func (p *Plan) bubble(r Rates, passes []pass, slowest int) (waiting, error) {
	w := waiting{rates: r}
	if p.Parallel.Pipeline == 1 {
		return w, nil
	}
	if p.simulation != nil && p.simulation.rates == r {
		return *p.simulation, nil
	}
	times := p.times(r, passes)
	t, err := p.Parallel.table(times)
	if err != nil {
		return w, err
	}
	s, err := pipeline.Simulate(t, times)
	if err != nil {
		return w, err
	}
	w.seconds, w.schedule = max(0, s.StepTime-float64(t.MicroBatches)*passes[slowest].total()), t.Name
	return w, nil
}

// chunkCosts divides the time of a micro batch on a rank between its chunks, by the work of their
// forward passes; communication is divided evenly.
func (p *Plan) chunkCosts(chunks []Chunk, x pass, r Rates) []pipeline.Cost {
	tokens := p.tokens() / float64(p.Parallel.Tensor)
	costs := make([]pipeline.Cost, len(chunks))
	for i, c := range chunks {
		w := p.chunkWork(c)
		exposed := x.exposed / float64(2*len(chunks))
		forward := p.seconds(w.Linear, w.Other, tokens, r)
		if forward == 0 { // the embedding alone
			costs[i] = pipeline.Cost{Forward: exposed, Backward: exposed}
			continue
		}
		weights := forward * max(0, w.Linear-w.Frozen) / w.forward()
		costs[i] = pipeline.Cost{
			Forward:  forward + exposed,
			Backward: forward*(2-w.Frozen/w.forward()+w.Again/w.forward()) - weights + exposed,
			Weights:  weights,
		}
	}
	return costs
}
