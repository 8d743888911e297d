package model

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/tensor"
)

// Param is one weight of the model with its gradient. Who writes Value after the first pass of the
// model calls Model.WeightsChanged.
type Param struct {
	Name  string // "model.layers.0.mlp.down_proj.weight"; fused weights have names of their own
	Shape tensor.Shape
	Value *tensor.Tensor // a view of Flat, like Grad
	Grad  *tensor.Tensor // nil in a frozen model, and beside adapters
	Decay bool           // whether weight decay applies: to matrices, not to norms and biases
	Depth int            // 0 for embeddings, i+1 for layer i, num_layers+1 for the parts after the layers

	start Start
	Parts []part
	Slice Slice // which part of the whole weight this is; the zero value is all of it
	Twin  bool  // another rank has it, too, and writes it to checkpoints: the embedding as the output layer of a last stage
	Apart bool  // it lies in a Flat of its own, because other ranks have other such weights

	matrices []int // the rows of the matrices of a layer that the weight holds; nil without
	fused    bool  // parts are queries, keys and values
	inOut    bool  // columns of the matrices belong to outputs

	Wide    bool           // layers multiply with the weight itself in every precision
	rounded *tensor.Tensor // the copy that layers multiply with; nil without
	across  *tensor.Tensor // the copy for products along columns, if that is another; nil without
	Eight   bool           // the copies have values of fp8
}

// Matrices returns the rows of the matrices that a weight of a layer holds one after the other, and
// whether their columns belong to outputs, not rows. It returns nil for vectors, embeddings, the
// output layer and adapters. With split, queries, keys and values are matrices of their own.
func (p *Param) Matrices(split bool) (rows []int, inOut bool) {
	if !split || !p.fused || p.Parts == nil {
		return p.matrices, p.inOut
	}
	for _, part := range p.Parts {
		rows = append(rows, part.Rows)
	}
	return rows, p.inOut
}

// Start is the initial value of a weight: normal numbers of a standard deviation, uniform numbers
// up to a bound or, if these are 0, one value.
type Start struct{ Std, bound, value float64 }

// draw returns the next initial value.
func (s Start) draw(rng *rand.Rand) float32 {
	switch {
	case s.Std > 0:
		return float32(rng.NormFloat64() * s.Std)
	case s.bound > 0:
		return float32((2*rng.Float64() - 1) * s.bound)
	}
	return float32(s.value)
}

// skip draws n values that nobody needs.
func (s Start) skip(n int, rng *rand.Rand) {
	if s.Std > 0 || s.bound > 0 {
		for range n {
			s.draw(rng)
		}
	}
}

// part is a part of a fused weight that a checkpoint stores as a tensor of its own: rows from the
// end of the part before.
type part struct {
	Name string
	Rows int

	From, Whole int // where these rows are among those of the tensor in the checkpoint, if they are not all
}

// Named is a tensor under its name in a checkpoint.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Initialise fills weights with their initial values.
func Initialise(params []*Param, rng *rand.Rand) error {
	for _, p := range params {
		if p.Value == nil { // another stage has it
			p.start.skip(p.whole().NumElements(), rng)
			continue
		}
		err := tensor.Fill(p.Value, func(own []float32) {
			data := own
			if p.Slice.Whole != nil { // the numbers of the others are drawn too
				data = make([]float32, p.Slice.Whole.NumElements())
			}
			for i := range data {
				data[i] = p.start.draw(rng)
			}
			if p.Slice.Whole != nil {
				p.Slice.Runs(0, len(own), func(at, to, n int) { copy(own[at:at+n], data[to:]) })
			}
		})
		if err != nil {
			return fmt.Errorf("initialise %s: %w", p.Name, err)
		}
	}
	return nil
}

// ByName returns tensors of weights under the names of a checkpoint.
func ByName(params []*Param, of func(int) *tensor.Tensor) []Named {
	var all []Named
	for i, p := range params {
		t := of(i)
		if p.Parts == nil {
			all = append(all, Named{p.Name, t})
			continue
		}
		from := 0
		for _, part := range p.Parts {
			all = append(all, Named{part.Name, memory.Rows(t, from, from+part.Rows)})
			from += part.Rows
		}
	}
	return all
}

// whole returns the shape of the weight of which a rank may have a part.
func (p *Param) whole() tensor.Shape {
	if p.Slice.Whole != nil {
		return p.Slice.Whole
	}
	return p.Shape
}

// AtFirst returns the weight as the stage has it that has it first: the embedding in place of its
// twin.
func (p *Param) AtFirst() *Param {
	if !p.Twin {
		return p
	}
	first := *p
	first.Depth = 0
	return &first
}

// Shared reports whether a rank has a part of the weight only, because others have the rest.
func (p *Param) Shared() bool { return p.Slice.Whole != nil }

// Rounded returns the copies of the weight that layers multiply with, along its rows and along its
// columns; nil if they multiply with the weight itself.
func (p *Param) Rounded() (alongRows, alongColumns *tensor.Tensor) {
	return p.rounded, cmp.Or(p.across, p.rounded)
}

// Round makes layers multiply with a copy of the weight.
func (p *Param) Round(to *tensor.Tensor) { p.rounded = to }

// RoundToFP8 makes layers multiply with copies of the weight that have values of fp8, with another
// one along columns unless across is nil.
func (p *Param) RoundToFP8(to, across *tensor.Tensor) {
	p.rounded, p.across, p.Eight = to, across, true
}

// OfLayer reports whether the weight is made of matrices of a layer.
func (p *Param) OfLayer() bool { return p.matrices != nil }

// ValueOrNil returns the values of a weight, nil without one.
func (p *Param) ValueOrNil() *tensor.Tensor {
	if p == nil {
		return nil
	}
	return p.Value
}
