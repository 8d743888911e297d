package pipeline

import "slices"

// Span is when a pass of a table runs.
type Span struct{ Start, End float64 }

// Simulation is what a table does in time.
type Simulation struct {
	StepTime   float64
	Bubble     float64   // share of the step in which ranks wait, over all ranks
	Activation []float64 // peak by rank, in micro batches on a whole rank
	Busy       []float64 // time in passes by rank
	Spans      [][]Span  // by rank and position in the table
}

// Peak returns the largest peak of activations of a rank.
func (s Simulation) Peak() float64 {
	peak := 0.0
	for _, a := range s.Activation {
		peak = max(peak, a)
	}
	return peak
}

// BubbleOfWork returns the time that ranks wait as a fraction of the time that they work.
func (s Simulation) BubbleOfWork() float64 { return s.Bubble / (1 - s.Bubble) }

// Simulate runs a table with the given times. A pass begins when its rank is free and the result
// that it needs has arrived. A rank works while its messages are on the way.
func Simulate(t Table, times Times) (Simulation, error) {
	if err := Check(t, 0); err != nil {
		return Simulation{}, err
	}
	if err := times.Validate(t.Shape); err != nil {
		return Simulation{}, err
	}
	return simulate(t, times), nil
}

// simulate runs a table that has been checked.
func simulate(t Table, times Times) Simulation {
	r, ok := run(t, times)
	if !ok {
		panic("BUG: pipeline: a table that was checked does not end")
	}
	return r
}

// run simulates a table that has every pass once. ok is false if it does not end.
func run(t Table, times Times) (r Simulation, ok bool) {
	costs := times.costs(t.Shape)
	r = Simulation{
		Activation: make([]float64, t.Ranks), Busy: make([]float64, t.Ranks), Spans: make([][]Span, t.Ranks),
	}
	ends := newArrivals(t.Shape)
	free := make([]float64, t.Ranks)
	held, peak := make([]int, t.Ranks), make([]int, t.Ranks)
	for rank := range r.Spans {
		r.Spans[rank] = make([]Span, 0, len(t.Passes[rank]))
	}
	next := walk(t, func(rank int, p Pass) bool {
		start, ok := ends.ready(t.Shape, rank, p, times.Send)
		if !ok {
			return false
		}
		start = max(start, free[rank])
		length := costs[rank][p.Chunk].of(p.Kind)
		end := start + length
		free[rank] = end
		ends.set(t.Shape, rank, p, end)
		r.Busy[rank] += length
		r.Spans[rank] = append(r.Spans[rank], Span{start, end})
		switch p.Kind {
		case Forward:
			held[rank]++
			peak[rank] = max(peak[rank], held[rank])
		case BackwardWeights, Backward:
			held[rank]--
		}
		r.StepTime = max(r.StepTime, end)
		return true
	})
	busy := 0.0
	for rank := range t.Ranks {
		if next[rank] < len(t.Passes[rank]) {
			return Simulation{}, false
		}
		busy += r.Busy[rank]
		r.Activation[rank] = float64(peak[rank]) / float64(t.Chunks)
	}
	r.Bubble = max(0, 1-busy/(float64(t.Ranks)*r.StepTime))
	return r, true
}

// Held returns how many micro batches of each chunk have activations when a rank first holds the
// most chunks, by rank.
func Held(t Table) [][]int {
	all := make([][]int, t.Ranks)
	for rank, passes := range t.Passes {
		held := make([]int, t.Chunks)
		total, most := 0, 0
		for _, p := range passes {
			switch p.Kind {
			case Forward:
				held[p.Chunk]++
				total++
			case BackwardWeights, Backward:
				held[p.Chunk]--
				total--
			}
			if total > most {
				most = total
				all[rank] = slices.Clone(held)
			}
		}
	}
	return all
}

// walk calls step for the passes of a table, those of each rank in order, until step returns false
// for the next pass of every rank. It returns how many passes of each rank were run.
func walk(t Table, step func(rank int, p Pass) bool) []int {
	next := make([]int, t.Ranks)
	queue := make([]int, 0, t.Ranks)
	queued := make([]bool, t.Ranks)
	for rank := range t.Ranks {
		queue, queued[rank] = append(queue, rank), true
	}
	for len(queue) > 0 {
		rank := queue[len(queue)-1]
		queue, queued[rank] = queue[:len(queue)-1], false
		for next[rank] < len(t.Passes[rank]) {
			p := t.Passes[rank][next[rank]]
			if !step(rank, p) {
				break
			}
			next[rank]++
			if to, _, ok := t.feeds(rank, p); ok && to != rank && !queued[to] {
				queue, queued[to] = append(queue, to), true
			}
		}
	}
	return next
}

// arrivals are when the results of forward and backward passes are there, by place in the model and
// micro batch; -1 is never.
type arrivals struct{ forward, backward [][]float64 }

func newArrivals(s Shape) arrivals {
	make2 := func() [][]float64 {
		all := make([]float64, s.depths()*s.MicroBatches)
		for i := range all {
			all[i] = -1
		}
		rows := make([][]float64, s.depths())
		for d := range rows {
			rows[d] = all[d*s.MicroBatches : (d+1)*s.MicroBatches]
		}
		return rows
	}
	return arrivals{make2(), make2()}
}

func (a arrivals) set(s Shape, rank int, p Pass, end float64) {
	switch p.Kind {
	case Forward:
		a.forward[s.Depth(rank, p.Chunk)][p.MicroBatch] = end
	case BackwardInput, Backward:
		a.backward[s.Depth(rank, p.Chunk)][p.MicroBatch] = end
	}
}

// ready returns when the results that a pass needs have arrived, and false if one has not been
// computed.
func (a arrivals) ready(s Shape, rank int, p Pass, send float64) (float64, bool) {
	d := s.Depth(rank, p.Chunk)
	if p.Kind == BackwardWeights {
		end := a.backward[d][p.MicroBatch]
		return end, end >= 0
	}
	var before float64
	neighbour := d + 1
	switch {
	case p.Kind == Forward && d == 0:
		return 0, true
	case p.Kind == Forward:
		neighbour = d - 1
		before = a.forward[neighbour][p.MicroBatch]
	default:
		own := a.forward[d][p.MicroBatch]
		if d == len(a.forward)-1 || own < 0 {
			return own, own >= 0
		}
		before = a.backward[neighbour][p.MicroBatch]
	}
	if before < 0 {
		return 0, false
	}
	if send > 0 {
		if from, _ := s.At(neighbour); from != rank {
			before += send
		}
	}
	return before, true
}
