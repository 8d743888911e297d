package pipeline

import (
	"fmt"
	"math"
)

// Cost is how long the passes of one chunk last.
type Cost struct {
	Forward, Backward, Weights float64 // Backward is the gradient of the input alone
}

// of returns the time of a pass.
func (c Cost) of(k Kind) float64 {
	switch k {
	case Forward:
		return c.Forward
	case BackwardInput:
		return c.Backward
	case BackwardWeights:
		return c.Weights
	}
	return c.Backward + c.Weights
}

// total is the time of all passes on a micro batch.
func (c Cost) total() float64 { return c.Forward + c.Backward + c.Weights }

// Times are the costs of a pipeline in one unit.
type Times struct {
	Ranks []Cost  // of a whole rank, over all its chunks; one entry stands for all ranks
	Send  float64 // from one rank to another, beside the passes

	Chunks [][]Cost // by rank and chunk, in place of Ranks
}

// Validate returns an error unless the times fit a shape.
func (t Times) Validate(s Shape) error {
	check := func(what string, v float64) error {
		if !(v >= 0 && v <= 1e30) {
			return fmt.Errorf("pipeline: given the %s time %v, want a number from 0 to 1e30", what, v)
		}
		return nil
	}
	if err := check("send", t.Send); err != nil {
		return err
	}
	costs := t.Ranks
	if t.Chunks != nil {
		if len(t.Chunks) != s.Ranks {
			return fmt.Errorf("pipeline: given times of %d stages, want %d", len(t.Chunks), s.Ranks)
		}
		costs = nil
		for rank, list := range t.Chunks {
			if len(list) != s.Chunks {
				return fmt.Errorf("pipeline: given times of %d chunks for stage %d, want %d", len(list), rank, s.Chunks)
			}
			costs = append(costs, list...)
		}
	} else if len(costs) != 1 && len(costs) != s.Ranks {
		return fmt.Errorf("pipeline: given times of %d stages, want 1 or %d", len(costs), s.Ranks)
	}
	total := 0.0
	for _, c := range costs {
		for _, one := range []struct {
			what  string
			value float64
		}{{"forward", c.Forward}, {"backward", c.Backward}, {"weight gradient", c.Weights}} {
			if err := check(one.what, one.value); err != nil {
				return err
			}
		}
		total += c.total()
	}
	if !(total > 0) || math.IsInf(total*float64(s.MicroBatches), 0) {
		return fmt.Errorf("pipeline: the passes take %v in all, want a number above 0", total)
	}
	return nil
}

// costs returns the cost of each chunk of each rank.
func (t Times) costs(s Shape) [][]Cost {
	if t.Chunks != nil {
		return t.Chunks
	}
	all := make([][]Cost, s.Ranks)
	for rank := range all {
		c := t.Ranks[0]
		if len(t.Ranks) > 1 {
			c = t.Ranks[rank]
		}
		n := float64(s.Chunks)
		all[rank] = make([]Cost, s.Chunks)
		for chunk := range all[rank] {
			all[rank][chunk] = Cost{c.Forward / n, c.Backward / n, c.Weights / n}
		}
	}
	return all
}

// unit are passes of equal length.
func unit(s Shape) Times {
	n := float64(s.Chunks)
	return Times{Ranks: []Cost{{n, n, n}}}
}

// equal reports whether all passes last equally long and messages take no time.
func (t Times) equal() bool {
	if t.Send > 0 || t.Chunks != nil {
		return false
	}
	for _, c := range t.Ranks {
		if f := t.Ranks[0].Forward; c != (Cost{f, f, f}) {
			return false
		}
	}
	return true
}
