package pipeline

import (
	"fmt"
	"math"
	"slices"
)

// Search returns the fastest table that it finds for the given times among schedules that hold the
// activations of at most limit micro batches, counted on a whole rank; a limit of 0 is none. It is
// never slower than a named schedule within the limit: it compares them all, with 1, 2 and the
// given number of chunks, and beside them further orders, each with several rules for the
// gradients of weights. Then it swaps passes on the critical path of the best one. Times of single
// chunks leave no choice of their number.
func Search(ranks, microBatches, chunks int, times Times, limit float64) (Table, error) {
	counts := []int{1, 2, chunks}
	if times.Chunks != nil {
		counts = []int{chunks}
	}
	slices.Sort(counts)
	return search(Shape{ranks, microBatches, chunks, Loop}, slices.Compact(counts), times, limit)
}

// SearchShape is Search for one number of chunks.
func SearchShape(s Shape, times Times, limit float64) (Table, error) {
	return search(s, []int{s.Chunks}, times, limit)
}

func search(s Shape, counts []int, times Times, limit float64) (Table, error) {
	if err := s.Validate(); err != nil {
		return Table{}, err
	}
	if err := times.Validate(s); err != nil {
		return Table{}, err
	}
	if !(limit == 0 || limit >= 1) {
		return Table{}, fmt.Errorf("pipeline: given a limit of %v micro batches, want a number >= 1: a stage holds all of one micro batch", limit)
	}
	var best Table
	var found Simulation
	try := func(t Table) {
		if r := simulate(t, times); (limit == 0 || r.Peak() <= limit+1e-9) && (best.Passes == nil || r.better(found)) {
			best, found = t, r
		}
	}
	for _, v := range counts {
		s.Chunks = v
		if s.Validate() != nil {
			continue // the product with a number of chunks that was not asked for is too large
		}
		for _, g := range generators() {
			if g.chunks != 0 && g.chunks != v || s.MicroBatches < g.micro*s.Ranks || g.name == "interleaved" && v == 1 {
				continue
			}
			s.Placement = g.placement
			t := g.make(s, times)
			t.Shape = s
			try(t)
		}
		for _, placement := range []Placement{Loop, Vee} {
			s.Placement = placement
			if list := wider(s, times, limit); len(list) > 0 {
				t := fastest(s, times, list)
				t.Shape = s
				try(t)
			}
		}
	}
	if best.Passes == nil {
		return Table{}, fmt.Errorf("pipeline: no schedule was found with %d chunks that holds at most %v micro batches: want a higher limit, or 1 chunk", s.Chunks, limit)
	}
	most := chunksWithin(limit, best.Chunks)
	if limit == 0 {
		most = int(found.Peak()*float64(best.Chunks) + 0.5)
	}
	best.Name = Auto
	if improved := improve(best, times, most, 10*effort); simulate(improved, times).better(found) {
		return improved, nil
	}
	return best, nil
}

// wider returns arrangements beyond the named schedules for one number and placement of chunks.
func wider(s Shape, times Times, limit float64) []arrangement {
	most := 2 * s.Ranks * s.Chunks
	if limit > 0 {
		most = chunksWithin(limit, s.Chunks)
	}
	var plans []plan
	add := func(order func(s Shape) [][]Pass, least int) {
		for _, l := range []int{least, (least + most) / 2, most} {
			if least <= l && l <= most && (len(plans) == 0 || plans[len(plans)-1].limit != l || l == least) {
				plans = append(plans, plan{order, l})
			}
		}
	}
	switch {
	case s.Placement == Loop && s.Chunks == 1:
		for _, slope := range []int{1, 2} {
			for _, ahead := range []int{s.Ranks, 2*s.Ranks - 1, most, s.Ranks / 2} {
				if 1 <= ahead && ahead <= most {
					add(func(s Shape) [][]Pass { return alternate(s, BackwardInput, slope, ahead) }, ahead)
				}
			}
		}
	case s.Placement == Loop:
		add(func(s Shape) [][]Pass { return interleave(s, BackwardInput) }, ahead(s))
	case s.Chunks == 2:
		add(orderV, 2*s.Ranks)
		var blocks []block
		for i := range 4 * 2 * 4 * 2 {
			fitted := block{down: 1 + i%4, up: 1 + i/4%2, back: 1 + i/8%4, out: 1 + i/32}.fit(s.Ranks)
			blocks = append(blocks, fitted[:min(len(fitted), 2)]...)
		}
		for _, b := range blocks {
			p := b.plan(s)
			add(p.order, p.limit)
		}
	}
	return arrangements(plans, times, 6*s.Ranks)
}

// chunksWithin returns how many chunks a limit of micro batches on a whole rank has room for.
func chunksWithin(limit float64, chunks int) int {
	return int(min(math.Floor(limit*float64(chunks)+1e-9), MaxPasses))
}
