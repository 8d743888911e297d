package model

import (
	"fmt"
	"slices"
)

// Batch is rows of seq tokens, each with the token that follows it.
type Batch struct {
	// Seq is the number of input tokens of a row.
	Seq int

	// Tokens is [rows, seq+1]: of each row, the first seq are the input and the last seq the
	// targets.
	Tokens []int32

	// Weights is [rows, seq]: the weight of the loss of each target, 0 for one that does not count.
	// Nil means 1 for all. The loss of several rows is Σ weight·loss / Σ weight.
	Weights []float32

	// Segments is [rows, seq]: the document of each input token, which does not decrease within a row.
	// A token sees only tokens of its own document. Nil means that a row is one document.
	Segments []int32

	// Positions is [rows, seq]: the position of each input token, which is 0 at the beginning of a row
	// and elsewhere 0 or one more than that of the token before. Nil means the place in the row.
	Positions []int32
}

// NewBatch returns a batch of rows of seq tokens without weights, segments and positions.
func NewBatch(rows, seq int) Batch {
	return Batch{Seq: seq, Tokens: make([]int32, rows*(seq+1))}
}

// Rows returns the number of rows.
func (b Batch) Rows() int {
	if b.Seq < 1 {
		return 0
	}
	return len(b.Tokens) / (b.Seq + 1)
}

// Slice returns rows lo to hi, which share memory with the batch.
func (b Batch) Slice(lo, hi int) Batch {
	part := Batch{Seq: b.Seq, Tokens: b.Tokens[lo*(b.Seq+1) : hi*(b.Seq+1)]}
	if b.Weights != nil {
		part.Weights = b.Weights[lo*b.Seq : hi*b.Seq]
	}
	if b.Segments != nil {
		part.Segments = b.Segments[lo*b.Seq : hi*b.Seq]
	}
	if b.Positions != nil {
		part.Positions = b.Positions[lo*b.Seq : hi*b.Seq]
	}
	return part
}

// Clone returns a copy of the batch.
func (b Batch) Clone() Batch {
	b.Tokens, b.Weights = slices.Clone(b.Tokens), slices.Clone(b.Weights)
	b.Segments, b.Positions = slices.Clone(b.Segments), slices.Clone(b.Positions)
	return b
}

// Weight returns the sum of the weights, which is the number of targets if all count.
func (b Batch) Weight() float64 {
	if b.Weights == nil {
		return float64(b.Rows() * b.Seq)
	}
	sum := 0.0
	for _, w := range b.Weights {
		sum += float64(w)
	}
	return sum
}

// Check returns an error unless the batch is one of rows sequences of seq tokens that keeps to what
// the fields say.
func (b Batch) Check(rows, seq int) error {
	if b.Seq != seq || len(b.Tokens) != rows*(seq+1) {
		return fmt.Errorf("batch: given %d tokens of sequences of %d, want %d sequences of %d and one more", len(b.Tokens), b.Seq, rows, seq)
	}
	for _, f := range []struct {
		name string
		n    int
		none bool
	}{
		{"weights", len(b.Weights), b.Weights == nil}, {"segments", len(b.Segments), b.Segments == nil}, {"positions", len(b.Positions), b.Positions == nil},
	} {
		if !f.none && f.n != rows*seq {
			return fmt.Errorf("batch: given %d %s, want none or %d", f.n, f.name, rows*seq)
		}
	}
	for i, w := range b.Weights {
		if !(w >= 0 && w <= 1e30) {
			return fmt.Errorf("batch: given the weight %v of target %d of row %d, want a finite number >= 0", w, i%seq, i/seq)
		}
	}
	for i, s := range b.Segments {
		if i%seq > 0 && s < b.Segments[i-1] {
			return fmt.Errorf("batch: given segment %d of token %d of row %d after segment %d, want segments that do not decrease", s, i%seq, i/seq, b.Segments[i-1])
		}
	}
	for i, p := range b.Positions {
		if p != 0 && (i%seq == 0 || p != b.Positions[i-1]+1) {
			return fmt.Errorf("batch: given position %d of token %d of row %d, want 0 or one more than that of the token before", p, i%seq, i/seq)
		}
	}
	return nil
}
