package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// bits of the passes that a rank has for a micro batch and a chunk.
const (
	hasForward = 1 << iota
	hasInput
	hasWeights
	hasAll = hasForward | hasInput | hasWeights
)

// bits returns what a pass computes.
func (k Kind) bits() uint8 {
	switch k {
	case Forward:
		return hasForward
	case BackwardInput:
		return hasInput
	case BackwardWeights:
		return hasWeights
	}
	return hasInput | hasWeights
}

// Check returns an error unless each rank of a table runs every pass once and in an order that
// ends, and holds the activations of at most limit micro batches, counted on a whole rank. A limit
// of 0 is none. The error names rank and position, from 0.
func Check(t Table, limit float64) error {
	if err := t.Shape.Validate(); err != nil {
		return err
	}
	if !(limit >= 0) {
		return fmt.Errorf("pipeline: given a limit of %v micro batches, want a number >= 0", limit)
	}
	if len(t.Passes) != t.Ranks {
		return fmt.Errorf("pipeline: given the passes of %d stages, want %d", len(t.Passes), t.Ranks)
	}
	for rank := range t.Passes {
		if err := checkRank(t, rank, limit); err != nil {
			return err
		}
	}
	return checkOrder(t)
}

// checkRank checks what can be seen on one rank.
func checkRank(t Table, rank int, limit float64) error {
	seen := make([]uint8, t.Chunks*t.MicroBatches)
	held, most := 0, chunksWithin(limit, t.Chunks)
	for i, p := range t.Passes[rank] {
		where := fmt.Sprintf("pipeline: stage %d, position %d", rank, i)
		switch {
		case p.Kind < Forward || p.Kind > Backward:
			return fmt.Errorf("%s: given the kind %d, want F, B, W or BW", where, p.Kind)
		case p.MicroBatch < 0 || p.MicroBatch >= t.MicroBatches:
			return fmt.Errorf("%s: given %s, want a micro batch from 0 to %d", where, p.describe(), t.MicroBatches-1)
		case p.Chunk < 0 || p.Chunk >= t.Chunks:
			return fmt.Errorf("%s: given %s, want a chunk from 0 to %d", where, p.describe(), t.Chunks-1)
		}
		done := &seen[p.Chunk*t.MicroBatches+p.MicroBatch]
		bits := p.Kind.bits()
		if *done&bits != 0 {
			first := slices.IndexFunc(t.Passes[rank], func(q Pass) bool {
				return q.Chunk == p.Chunk && q.MicroBatch == p.MicroBatch && q.Kind.bits()&bits != 0
			})
			return fmt.Errorf("%s: given %s, which position %d has computed: want every pass once", where, p.describe(), first)
		}
		if want := needed(p.Kind); *done&want != want {
			before := Pass{Forward, p.MicroBatch, p.Chunk}
			if *done&hasForward != 0 {
				before.Kind = BackwardInput
			}
			return fmt.Errorf("%s: given %s, want %s before it", where, p.describe(), before.describe())
		}
		*done |= bits
		switch p.Kind {
		case Forward:
			held++
		case BackwardWeights, Backward:
			held--
		}
		if limit > 0 && held > most {
			return fmt.Errorf("%s: given %s with the activations of %.4g micro batches held, want at most %.4g", where, p.describe(), float64(held)/float64(t.Chunks), limit)
		}
	}
	for i, done := range seen {
		if done == hasAll {
			continue
		}
		missing := Pass{Forward, i % t.MicroBatches, i / t.MicroBatches}
		switch {
		case done&hasInput != 0:
			missing.Kind = BackwardWeights
		case done&hasForward != 0:
			missing.Kind = BackwardInput
		}
		return fmt.Errorf("pipeline: stage %d, position %d: the passes end here, want %s as well", rank, len(t.Passes[rank]), missing.describe())
	}
	return nil
}

// needed returns what a rank must have computed before a pass of a kind.
func needed(k Kind) uint8 {
	switch k {
	case Forward:
		return 0
	case BackwardWeights:
		return hasForward | hasInput
	}
	return hasForward
}

// checkOrder returns an error if ranks wait for each other for ever.
func checkOrder(t Table) error {
	done := newArrivals(t.Shape)
	next := walk(t, func(rank int, p Pass) bool {
		if _, ok := done.ready(t.Shape, rank, p, 0); !ok {
			return false
		}
		done.set(t.Shape, rank, p, 0)
		return true
	})
	first := 0
	for first < t.Ranks && next[first] == len(t.Passes[first]) {
		first++
	}
	if first == t.Ranks {
		return nil
	}
	// Following the ranks that are waited for leads into a circle.
	visited := map[int]bool{}
	rank := first
	for !visited[rank] {
		visited[rank] = true
		rank, _, _ = t.needs(rank, t.Passes[rank][next[rank]])
	}
	var circle []string
	for start, more := rank, true; more; more = rank != start {
		p := t.Passes[rank][next[rank]]
		from, want, _ := t.needs(rank, p)
		circle = append(circle, fmt.Sprintf("stage %d, position %d: given %s, want %s on stage %d before it", rank, next[rank], p.describe(), want.describe(), from))
		rank = from
	}
	const shown = 4
	if n := len(circle); n > shown {
		circle = append(circle[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return fmt.Errorf("pipeline: the stages wait for each other: %s", strings.Join(circle, "; "))
}
