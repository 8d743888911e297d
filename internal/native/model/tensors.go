package model

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// Init fills the weights from a seed: gains of norms with ones, biases with zeros, matrices with
// normal numbers of standard deviation init_method_std, those that write into the residual stream
// divided by √(2·num_layers). Of adapters, A is uniform up to 1/√in and B is zero. The same seed
// gives the same bits everywhere, and the same weights with and without adapters.
func (m *Model) Init(seed uint64) error {
	return errors.Join(
		Initialise(m.drawn, rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))),
		Initialise(m.drawnAdapters, rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9))),
	)
}

// Tensors returns views of the weights under the names that Hugging Face's class
// of the model uses, in a fixed order.
func (m *Model) Tensors() []Named {
	return ByName(m.params, func(i int) *tensor.Tensor { return m.params[i].Value })
}

// Place is a tensor of a checkpoint, or the part of one that a rank has: the elements Lo to Hi of a
// weight.
type Place struct {
	Name   string
	Param  *Param
	Lo, Hi int
	Slice  Slice
}

// Places returns where the tensors of a checkpoint lie that are trained.
func (m *Model) Places() []Place { return places(m.Trained()) }

// WeightPlaces returns where the tensors of a checkpoint lie that are not of adapters.
func (m *Model) WeightPlaces() []Place { return places(m.params) }

func places(params []*Param) []Place {
	var all []Place
	for _, p := range params {
		if p.Parts == nil {
			s := p.Slice
			if s.Whole == nil {
				s.Whole = p.Shape
			}
			all = append(all, Place{p.Name, p, 0, p.Shape.NumElements(), s})
			continue
		}
		lo := 0
		for _, part := range p.Parts {
			shape := slices.Clone(p.Shape)
			shape[0] = part.Rows
			hi := lo + shape.NumElements()
			s := Slice{Whole: shape}
			if part.Whole > 0 {
				shape[0], s.Rows = part.Whole, []Range{{Lo: part.From, Hi: part.From + part.Rows}}
			}
			all = append(all, Place{part.Name, p, lo, hi, s})
			lo = hi
		}
	}
	return all
}
