package shards

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/tensor"
)

// Shard is pieces of the weights that a rank has, such as those that it updates.
type Shard struct {
	Params []optim.Param // views of a range of each weight
	pieces []piece

	without map[string]bool // states of weights of which an optimizer keeps nothing, on any rank; nil if own pieces tell
}

// Compare finds out of which weights the optimizers of other ranks keep nothing. Where ranks have
// different weights, it comes before Spread and Load.
func (s *Shard) Compare(w *world.World, states []optim.State) error {
	var own []string
	for _, state := range states {
		for i, p := range s.pieces {
			if state.Tensors[i] == nil {
				own = append(own, stateName(p.param.Name, state))
			}
		}
	}
	all, err := w.Gather("compare the state of the optimizer", []byte(strings.Join(own, "\n")))
	if err != nil {
		return err
	}
	s.without = map[string]bool{}
	for _, names := range all {
		for name := range strings.SplitSeq(string(names), "\n") {
			s.without[name] = true
		}
	}
	return nil
}

// piece is the elements lo to hi of a weight.
type piece struct {
	param  *model.Param
	lo, hi int
	writes bool // this rank writes it to checkpoints, of those that have it
}

// Cut adds the parts of weights that lie in a Flat. whole returns what the optimizer should know of
// a weight, and writes whether this is the rank that writes it to checkpoints.
func (s *Shard) Cut(f model.Flat, parts []world.Part, whole func(*model.Param) optim.Param, writes func(*model.Param) bool) {
	for _, part := range parts {
		for i, p := range f.Params {
			from := f.Offsets[i]
			lo, hi := max(part.Lo, from), min(part.Hi, from+p.Shape.NumElements())
			if lo >= hi {
				continue
			}
			own := whole(p)
			own.Matrices = nil // a range is no matrix
			own.Value, own.Grad = span(f.Values, lo, hi), span(part.Sums, lo-part.Lo, hi-part.Lo)
			s.Params, s.pieces = append(s.Params, own), append(s.pieces, piece{p, lo - from, hi - from, writes(p)})
		}
	}
}

// Add adds a weight as a whole, as far as this rank has it. writes says whether this is the rank
// that writes it to checkpoints.
func (s *Shard) Add(p *model.Param, whole optim.Param, writes bool) {
	s.Params, s.pieces = append(s.Params, whole), append(s.pieces, piece{p, 0, p.Shape.NumElements(), writes})
}

// Writes reports whether this is the rank that writes a piece, of those that have it.
func (s *Shard) Writes(piece int) bool { return s.pieces[piece].writes }

// Values returns the values of the pieces as a state without a name, for Spread and Load.
func (s *Shard) Values() []optim.State {
	values := optim.State{}
	for _, p := range s.Params {
		values.Tensors = append(values.Tensors, p.Value)
	}
	return []optim.State{values}
}

// State returns what the optimizer keeps of the pieces, under the names of the weights.
func (s *Shard) State(states []optim.State) []model.Named {
	var all []model.Named
	for _, state := range states {
		for i, t := range state.Tensors {
			if t == nil {
				continue
			}
			all = append(all, model.Named{Name: stateName(s.pieces[i].param.Name, state), Tensor: t})
		}
	}
	return all
}

// kept returns the places of a state, of those of all ranks: an optimizer may keep nothing of some
// weights. Of a weight that other ranks have, something is kept.
func (s *Shard) kept(state optim.State, all []model.Place) []model.Place {
	return slices.DeleteFunc(slices.Clone(all), func(p model.Place) bool {
		if s.without != nil {
			return s.without[stateName(p.Param.Name, state)]
		}
		i := slices.IndexFunc(s.pieces, func(own piece) bool { return own.param.Name == p.Param.Name })
		return i >= 0 && state.Tensors[i] == nil
	})
}

// named returns the name of a state of a tensor in checkpoints.
func named(p model.Place, state optim.State) string { return stateName(p.Name, state) }

// stateName returns the name of a state of what has a name.
func stateName(name string, state optim.State) string {
	if state.Name == "" {
		return name
	}
	return name + "." + state.Name
}

// span returns the elements lo to hi of a tensor of one axis.
func span(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	view, err := t.Slice(0, lo, hi)
	if err != nil {
		panic("BUG: shards: " + err.Error())
	}
	return view
}
