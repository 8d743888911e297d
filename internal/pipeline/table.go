package pipeline

import (
	"fmt"
	"strconv"
)

// Kind is what a pass computes.
type Kind uint8

const (
	Forward         Kind = iota + 1 // the output of a chunk
	BackwardInput                   // the gradient of its input
	BackwardWeights                 // the gradients of its weights
	Backward                        // both in one
)

// kindNames are the names of kinds in tables.
var kindNames = [...]string{Forward: "F", BackwardInput: "B", BackwardWeights: "W", Backward: "BW"}

func (k Kind) String() string {
	if k < Forward || k > Backward {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// Pass is the work on one micro batch in one chunk of a rank.
type Pass struct {
	Kind       Kind
	MicroBatch int
	Chunk      int
}

// String returns the pass as in schedule files: kind and micro batch, then a dot and the chunk
// unless it is 0.
func (p Pass) String() string {
	s := p.Kind.String() + strconv.Itoa(p.MicroBatch)
	if p.Chunk != 0 {
		s += "." + strconv.Itoa(p.Chunk)
	}
	return s
}

// describe names a pass in errors.
func (p Pass) describe() string {
	return fmt.Sprintf("%s of micro batch %d, chunk %d", p.Kind, p.MicroBatch, p.Chunk)
}

// Placement says which rank has which part of the model.
type Placement string

const (
	// Loop puts the parts of the model on the ranks in order, and after the last rank begins again
	// with the first.
	Loop Placement = "loop"
	// Vee turns round at the last rank: every second chunk is placed from the last rank to the first.
	Vee Placement = "v"
)

// Shape is the size of a pipeline.
type Shape struct {
	Ranks        int
	MicroBatches int
	Chunks       int // parts of the model on each rank
	Placement    Placement
}

// The largest pipeline.
const (
	MaxRanks  = 1024
	MaxChunks = 64
	MaxPasses = 1 << 22 // ranks · micro batches · chunks
)

// Validate returns an error for sizes that no table can have.
func (s Shape) Validate() error {
	switch {
	case s.Ranks < 1 || s.Ranks > MaxRanks:
		return fmt.Errorf("pipeline: given %d stages, want a number from 1 to %d", s.Ranks, MaxRanks)
	case s.MicroBatches < 1 || s.MicroBatches > MaxPasses:
		return fmt.Errorf("pipeline: given %d micro batches, want a number from 1 to %d", s.MicroBatches, MaxPasses)
	case s.Chunks < 1 || s.Chunks > MaxChunks:
		return fmt.Errorf("pipeline: given %d chunks, want a number from 1 to %d", s.Chunks, MaxChunks)
	case s.Ranks*s.MicroBatches*s.Chunks > MaxPasses:
		return fmt.Errorf("pipeline: given %d stages · %d micro batches · %d chunks, want a product of at most %d", s.Ranks, s.MicroBatches, s.Chunks, MaxPasses)
	case s.Placement != Loop && s.Placement != Vee:
		return fmt.Errorf("pipeline: given the placement %q, want %s or %s", s.Placement, Loop, Vee)
	}
	return nil
}

// Depth returns the place in the model of a chunk of a rank, from 0.
func (s Shape) Depth(rank, chunk int) int {
	if s.Placement == Vee && chunk%2 == 1 {
		rank = s.Ranks - 1 - rank
	}
	return chunk*s.Ranks + rank
}

// At returns the rank and the chunk at a place in the model.
func (s Shape) At(depth int) (rank, chunk int) {
	rank, chunk = depth%s.Ranks, depth/s.Ranks
	if s.Placement == Vee && chunk%2 == 1 {
		rank = s.Ranks - 1 - rank
	}
	return rank, chunk
}

// depths returns how many parts the model has.
func (s Shape) depths() int { return s.Ranks * s.Chunks }

// Table is a schedule: the passes of each rank in order.
type Table struct {
	Name string
	Shape
	Passes [][]Pass // by rank
}

// needs returns the pass that must end before p can begin on a rank, and the rank that runs it. A
// backward pass also needs the forward pass of the same chunk. ok is false for the first forward
// pass of a micro batch.
func (s Shape) needs(rank int, p Pass) (from int, pass Pass, ok bool) {
	depth := s.Depth(rank, p.Chunk)
	switch {
	case p.Kind == Forward && depth == 0:
		return 0, Pass{}, false
	case p.Kind == Forward:
		from, chunk := s.At(depth - 1)
		return from, Pass{Forward, p.MicroBatch, chunk}, true
	case p.Kind == BackwardWeights:
		return rank, Pass{BackwardInput, p.MicroBatch, p.Chunk}, true
	case depth == s.depths()-1:
		return rank, Pass{Forward, p.MicroBatch, p.Chunk}, true
	}
	from, chunk := s.At(depth + 1)
	return from, Pass{BackwardInput, p.MicroBatch, chunk}, true
}

// feeds returns the pass that takes the result of p, and the rank that runs it.
func (s Shape) feeds(rank int, p Pass) (to int, pass Pass, ok bool) {
	depth := s.Depth(rank, p.Chunk)
	switch {
	case p.Kind == Forward && depth < s.depths()-1:
		to, chunk := s.At(depth + 1)
		return to, Pass{Forward, p.MicroBatch, chunk}, true
	case (p.Kind == BackwardInput || p.Kind == Backward) && depth > 0:
		to, chunk := s.At(depth - 1)
		return to, Pass{BackwardInput, p.MicroBatch, chunk}, true
	}
	return 0, Pass{}, false
}
