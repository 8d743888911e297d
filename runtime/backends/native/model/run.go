package model

import (
	"fmt"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/finite"
	"github.com/primus-fl/primus/runtime/backends/native/world"
	"github.com/primus-fl/primus/tensor"
)

// run is one forward or backward pass: its first error, and where it is.
type run struct {
	at         string // the part of the model, or of layer index
	index      int    // -1 outside of layers
	check      bool
	dropout    dropoutKey
	accumulate bool
	auxLoss    float64        // of the layers so far
	auxScale   float32        // the gradient of the auxiliary loss of each layer
	segments   *tensor.Tensor // the documents that attention separates, i32 [documents+1]; nil for whole rows
	places     *tensor.Tensor // those in which positions are counted, likewise
	err        error
}

// run begins a forward or backward pass. Only one may run at a time.
func (p *Pass) run() *run {
	p.current = run{index: -1, check: p.check, dropout: p.dropout, segments: p.segments.starts, places: p.places.starts}
	return &p.current
}

// layer moves on to a part of a layer.
func (r *run) layer(i int, part string) { r.index, r.at = i, part }

// leave moves on to a part outside of layers.
func (r *run) leave(part string) { r.index, r.at = -1, part }

func (r *run) place() string {
	if r.index >= 0 {
		return fmt.Sprintf("layer %d %s", r.index, r.at)
	}
	return r.at
}

// total replaces a tensor by its sum over the ranks that share a layer.
func (r *run) total(ranks *world.World, t *tensor.Tensor) {
	if r.err == nil {
		if err := ranks.Total("add up the parts of a layer", t); err != nil {
			r.err = fmt.Errorf("%s: %w", r.place(), err)
		}
	}
}

// NonFiniteError says that an op produced a NaN or an infinity.
type NonFiniteError struct {
	Place   string // "layer 3 mlp"
	Op      string
	Operand string
	Value   float64
}

// Error names op, operand, value and the place in the model.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("%s: op %q: operand %q holds %v", e.Place, e.Op, e.Operand, e.Value)
}

// call calls an op unless an earlier op has failed.
func call[A any](r *run, b *opmanager.Bound[A], a A) {
	if r.err != nil {
		return
	}
	if err := b.Call(a); err != nil {
		r.err = fmt.Errorf("%s: %w", r.place(), err)
		return
	}
	if r.check {
		args := a // only here, so that calls allocate nothing
		if found := finite.First(b.Op().At(&args)); found != nil {
			r.err = &NonFiniteError{Place: r.place(), Op: b.Op().Name(), Operand: found.Operand, Value: found.Value}
		}
	}
}
