package model

import (
	"math/rand/v2"
	"slices"

	"github.com/primus-fl/primus/runtime/backends/native/layout"
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

	start start
	parts []part
	slice layout.Slice // which part of the whole weight this is; the zero value is all of it
	apart bool         // it lies in a Flat of its own, because other ranks have other such weights

	matrices []int // the rows of the matrices of a layer that the weight holds; nil without
	fused    bool  // parts are queries, keys and values
	inOut    bool  // columns of the matrices belong to outputs

	wide    bool           // layers multiply with the weight itself in every precision
	rounded *tensor.Tensor // the copy that layers multiply with; nil without
	eight   bool           // rounded has values of fp8
}

// Matrices returns the rows of the matrices that a weight of a layer holds one after the other, and
// whether their columns belong to outputs, not rows. It returns nil for vectors, embeddings, the
// output layer and adapters. With split, queries, keys and values are matrices of their own.
func (p *Param) Matrices(split bool) (rows []int, inOut bool) {
	if !split || !p.fused || p.parts == nil {
		return p.matrices, p.inOut
	}
	for _, part := range p.parts {
		rows = append(rows, part.rows)
	}
	return rows, p.inOut
}

// start is the initial value of a weight: normal numbers of a standard deviation, uniform numbers
// up to a bound or, if these are 0, one value.
type start struct{ std, bound, value float64 }

// part is a part of a fused weight that a checkpoint stores as a tensor of its own: rows from the
// end of the part before.
type part struct {
	name string
	rows int

	from, whole int // where these rows are among those of the tensor in the checkpoint, if they are not all
}

// Named is a tensor under its name in a checkpoint.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Init fills the weights from a seed: gains of norms with ones, biases with zeros, matrices with
// normal numbers of standard deviation init_method_std, those that write into the residual stream
// divided by √(2·num_layers). Of adapters, A is uniform up to 1/√in and B is zero. The same seed
// gives the same bits everywhere, and the same weights with and without adapters.
func (m *Model) Init(seed uint64) {
	initialise(m.params, rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)))
	initialise(m.adapters, rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9)))
}

func initialise(params []*Param, rng *rand.Rand) {
	for _, p := range params {
		data := tensor.Data[float32](p.Value)
		if p.slice.Whole != nil { // the numbers of the others are drawn too
			data = make([]float32, p.slice.Whole.NumElements())
		}
		for i := range data {
			switch {
			case p.start.std > 0:
				data[i] = float32(rng.NormFloat64() * p.start.std)
			case p.start.bound > 0:
				data[i] = float32((2*rng.Float64() - 1) * p.start.bound)
			default:
				data[i] = float32(p.start.value)
			}
		}
		if p.slice.Whole != nil {
			own := tensor.Data[float32](p.Value)
			p.slice.Runs(0, len(own), func(at, to, n int) { copy(own[at:at+n], data[to:]) })
		}
	}
}

// Tensors returns views of the weights under the names that Hugging Face's class
// of the model uses, in a fixed order.
func (m *Model) Tensors() []Named {
	return named(m.params, func(i int) *tensor.Tensor { return m.params[i].Value })
}

// Split returns views of tensors that correspond to Params, such as the moments of an optimizer,
// under the names and in the order of Tensors.
func (m *Model) Split(beside []*tensor.Tensor) []Named {
	return named(m.params, func(i int) *tensor.Tensor { return beside[i] })
}

// named returns tensors of weights under the names of a checkpoint.
func named(params []*Param, of func(int) *tensor.Tensor) []Named {
	var all []Named
	for i, p := range params {
		t := of(i)
		if p.parts == nil {
			all = append(all, Named{p.Name, t})
			continue
		}
		from := 0
		for _, part := range p.parts {
			all = append(all, Named{part.name, rows(t, from, from+part.rows)})
			from += part.rows
		}
	}
	return all
}

// Place is a tensor of a checkpoint, or the part of one that a rank has: the elements Lo to Hi of a
// weight.
type Place struct {
	Name   string
	Param  *Param
	Lo, Hi int
	Slice  layout.Slice
}

// Places returns where the tensors of a checkpoint lie that are trained.
func (m *Model) Places() []Place {
	var all []Place
	for _, p := range m.Trained() {
		if p.parts == nil {
			s := p.slice
			if s.Whole == nil {
				s.Whole = p.Shape
			}
			all = append(all, Place{p.Name, p, 0, p.Shape.NumElements(), s})
			continue
		}
		lo := 0
		for _, part := range p.parts {
			shape := slices.Clone(p.Shape)
			shape[0] = part.rows
			hi := lo + shape.NumElements()
			s := layout.Slice{Whole: shape}
			if part.whole > 0 {
				shape[0], s.Rows = part.whole, []layout.Range{{Lo: part.from, Hi: part.from + part.rows}}
			}
			all = append(all, Place{part.name, p, lo, hi, s})
			lo = hi
		}
	}
	return all
}

// Shared reports whether a rank has a part of the weight only, because others have the rest.
func (p *Param) Shared() bool { return p.slice.Whole != nil }
