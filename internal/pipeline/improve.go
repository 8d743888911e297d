package pipeline

import (
	"math/rand/v2"
	"slices"
)

// improve swaps neighbours on the critical path of a table while that makes it no slower and it
// needs no more memory than most chunks on a rank. It simulates about passes passes in all, and
// ends with the same table each time.
func improve(t Table, times Times, most, passes int) Table {
	best := Table{Name: t.Name, Shape: t.Shape, Passes: slices.Clone(t.Passes)}
	for rank := range best.Passes {
		best.Passes[rank] = slices.Clone(t.Passes[rank])
	}
	size := 0
	for _, list := range best.Passes {
		size += len(list)
	}
	limit := float64(most)/float64(t.Chunks) + 1e-9
	r := rand.New(rand.NewPCG(uint64(t.Ranks), uint64(t.MicroBatches)))
	now := simulate(best, times)
	pairs := criticalPairs(best, now, times)
	for range passes / size {
		if len(pairs) == 0 {
			break
		}
		p := pairs[r.IntN(len(pairs))]
		list := best.Passes[p.rank]
		list[p.i-1], list[p.i] = list[p.i], list[p.i-1]
		next, ok := run(best, times)
		if !ok || next.StepTime > now.StepTime || next.Peak() > limit {
			list[p.i-1], list[p.i] = list[p.i], list[p.i-1]
			continue
		}
		now = next
		pairs = criticalPairs(best, now, times)
	}
	return best
}

// pair are two passes of a rank, at i − 1 and i, of which the second begins when the first ends.
type pair struct{ rank, i int }

// criticalPairs follows the passes that determine the time of a step back from its end, and returns
// those pairs of neighbours among them that can be swapped.
func criticalPairs(t Table, r Simulation, times Times) []pair {
	where := newArrivals(t.Shape) // positions of passes
	last := pair{}
	for rank, list := range t.Passes {
		for i, p := range list {
			where.set(t.Shape, rank, p, float64(i))
			if r.Spans[rank][i].End >= r.Spans[last.rank][min(last.i, len(r.Spans[last.rank])-1)].End {
				last = pair{rank, i}
			}
		}
	}
	var pairs []pair
	for at := last; ; {
		start := r.Spans[at.rank][at.i].Start
		p := t.Passes[at.rank][at.i]
		if at.i > 0 && r.Spans[at.rank][at.i-1].End >= start {
			before := t.Passes[at.rank][at.i-1]
			if before.MicroBatch != p.MicroBatch || before.Chunk != p.Chunk {
				pairs = append(pairs, at)
			}
			at.i--
			continue
		}
		from, needed, ok := t.needs(at.rank, p)
		if !ok || start == 0 {
			return pairs
		}
		d := t.Depth(from, needed.Chunk)
		rows := where.backward
		if needed.Kind == Forward {
			rows = where.forward
		}
		at = pair{from, int(rows[d][needed.MicroBatch])}
	}
}
