package projection

import (
	"fmt"

	"github.com/primus-fl/primus/internal/pipeline"
)

// steady is how many micro batches for each stage are enough to see a pipeline in full work: more
// of them change neither how long stages wait nor what they hold.
const steady = 8

// table returns the schedule of the pipeline for the given times, with no more micro batches than
// it takes to see it in full work.
func (p Parallel) table(times pipeline.Times) (pipeline.Table, error) {
	names := map[Schedule]string{
		ScheduleOneForwardOneBackward: "1f1b", ScheduleInterleaved: "interleaved", ScheduleZeroBubble: "zb1p",
		ScheduleZeroBubbleV: "zbv", ScheduleVHalf: "v-half", ScheduleVMin: "v-min",
	}
	microBatches := p.MicroBatches
	if most := steady * p.Pipeline; microBatches > most+p.Pipeline {
		microBatches = most + microBatches%p.Pipeline
	}
	t, err := pipeline.Generate(names[p.Schedule], p.Pipeline, microBatches, p.Virtual, times)
	if err != nil {
		return t, fmt.Errorf("projection: the schedule %s: %w", p.Schedule, err)
	}
	return t, nil
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

// bubble is the time that the slowest stage waits in a step, and the schedule that it follows from.
func (p *Plan) bubble(r Rates, passes []pass, slowest int) (seconds float64, schedule string, err error) {
	times := p.times(r, passes)
	t, err := p.Parallel.table(times)
	if err != nil {
		return 0, "", err
	}
	s, err := pipeline.Simulate(t, times)
	if err != nil {
		return 0, "", err
	}
	return max(0, s.StepTime-float64(t.MicroBatches)*passes[slowest].total()), t.Name, nil
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
