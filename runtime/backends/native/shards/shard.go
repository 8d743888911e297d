package shards

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/runtime/backends/native/optim"
	"github.com/primus-fl/primus/runtime/backends/native/world"
	"github.com/primus-fl/primus/tensor"
)

// Shard is the part of the weights that a rank updates.
type Shard struct {
	Params []optim.Param // views of a range of each weight
	pieces []piece
}

// piece is the elements lo to hi of the weights.
type piece struct {
	name   string // of the weight
	lo, hi int
}

// New returns the shard of a rank, given its parts of the weights. whole returns what the optimizer
// should know of a weight.
func New(f model.Flat, parts []world.Part, whole func(*model.Param) optim.Param) *Shard {
	s := &Shard{}
	for _, part := range parts {
		for i, p := range f.Params {
			from := f.Offsets[i]
			lo, hi := max(part.Lo, from), min(part.Hi, from+p.Shape.NumElements())
			if lo >= hi {
				continue
			}
			own := whole(p)
			own.Value, own.Grad = span(f.Values, lo, hi), span(part.Sums, lo-part.Lo, hi-part.Lo)
			s.Params, s.pieces = append(s.Params, own), append(s.pieces, piece{p.Name, lo, hi})
		}
	}
	return s
}

// State returns what the optimizer keeps of the pieces, under the names of the weights.
func (s *Shard) State(states []optim.State) []model.Named {
	var all []model.Named
	for _, state := range states {
		for i, t := range state.Tensors {
			all = append(all, model.Named{Name: s.pieces[i].name + "." + state.Name, Tensor: t})
		}
	}
	return all
}

// place is a tensor of a checkpoint: the elements lo to hi of the weights.
type place struct {
	name   string
	shape  tensor.Shape
	lo, hi int
}

// places returns where the tensors that are trained lie among the weights.
func places(m *model.Model) ([]place, error) {
	f := m.Flat()
	begin := uintptr(f.Values.Pointer())
	var values []*tensor.Tensor
	for _, p := range m.Trained() {
		values = append(values, p.Value)
	}
	var all []place
	for _, n := range m.SplitTrained(values) {
		offset := (uintptr(n.Tensor.Pointer()) - begin) / unsafe.Sizeof(float32(0))
		p := place{n.Name, n.Tensor.Shape(), int(offset), int(offset) + n.Tensor.NumElements()}
		if !n.Tensor.IsContiguous() || n.Tensor.DType() != tensor.F32 || p.hi > f.Used {
			return nil, fmt.Errorf("use_distributed_optimizer: the weight %s is not f32, one element after the other: train without it", n.Name)
		}
		all = append(all, p)
	}
	return all, nil
}

// span returns the elements lo to hi of a tensor of one axis.
func span(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	view, err := t.Slice(0, lo, hi)
	if err != nil {
		panic("BUG: shards: " + err.Error())
	}
	return view
}
