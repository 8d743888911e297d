package sequence

import "fmt"

// Range is places from Lo to Hi, without Hi.
type Range struct{ Lo, Hi int }

// Len is the number of places.
func (r Range) Len() int { return r.Hi - r.Lo }

// Share is the tokens of a sequence that a rank has.
type Share struct {
	Rank, Ranks int // of those that have the sequence together
	Length      int // of the sequence
}

// Validate returns an error unless a sequence of this length can be divided among ranks.
func Validate(length, ranks int) error {
	if ranks > 1 && length%(2*ranks) != 0 {
		return fmt.Errorf("context_parallel_size: given %d, want 1, or a seq_length in place of %d that is a multiple of %d: each rank has two chunks of one length", ranks, length, 2*ranks)
	}
	return nil
}

// Tokens is the number of tokens of the rank.
func (s Share) Tokens() int { return s.Length / s.Ranks }

// Ranges are the places of the tokens of the rank, in their order.
func (s Share) Ranges() []Range {
	if s.Ranks == 1 {
		return []Range{{0, s.Length}}
	}
	n := s.Length / (2 * s.Ranks)
	last := 2*s.Ranks - 1 - s.Rank
	return []Range{{s.Rank * n, (s.Rank + 1) * n}, {last * n, (last + 1) * n}}
}

// Pick returns what the rank has of the values of rows of tokens.
func Pick[T any](s Share, rows []T) []T {
	if s.Ranks == 1 || rows == nil {
		return rows
	}
	own := make([]T, 0, len(rows)/s.Ranks)
	for row := 0; row < len(rows); row += s.Length {
		for _, r := range s.Ranges() {
			own = append(own, rows[row+r.Lo:row+r.Hi]...)
		}
	}
	return own
}

// Run is tokens of a rank whose places follow each other: N of them, from local place At on, of
// which the first has the position First.
type Run struct{ At, First, N int }

// Runs lists the runs of a row. positions are those of the tokens of the sequence, nil for their
// places.
func (s Share) Runs(positions []int32) []Run {
	var all []Run
	at := 0
	for _, r := range s.Ranges() {
		for i := r.Lo; i < r.Hi; i++ {
			position := i
			if positions != nil {
				position = int(positions[i])
			}
			if n := len(all) - 1; i > r.Lo && all[n].First+all[n].N == position {
				all[n].N++
			} else {
				all = append(all, Run{At: at, First: position, N: 1})
			}
			at++
		}
	}
	return all
}
