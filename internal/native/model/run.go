package model

import (
	"fmt"

	"github.com/primus-fl/primus/internal/finite"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Run is one forward or backward pass: its first error, and where it is.
type Run struct {
	at         string // the part of the model, or of layer index
	Index      int    // -1 outside of layers
	Check      bool
	Dropout    DropoutKey
	Accumulate bool
	AuxLoss    float64        // of the layers so far
	AuxScale   float32        // the gradient of the auxiliary loss of each layer
	Segments   *tensor.Tensor // the documents that attention separates, i32 [documents+1]; nil for whole rows
	Places     *tensor.Tensor // those in which positions are counted, likewise
	Starts     *tensor.Tensor // the position of the first token of each of these, i32 [documents]; nil for 0
	Err        error

	later *[]postponed // collects the gradients of weights that are computed later; nil if none are
	mark  Marker
}

// Marker is told the name of the op that is called, "" between calls.
type Marker interface{ Set(op string) }

// layer moves on to a part of a layer.
func (r *Run) layer(i int, part string) { r.Index, r.at = i, part }

// Leave moves on to a part outside of layers.
func (r *Run) Leave(part string) { r.Index, r.at = -1, part }

func (r *Run) place() string {
	if r.Index >= 0 {
		return fmt.Sprintf("layer %d %s", r.Index, r.at)
	}
	return r.at
}

// total replaces a tensor by its sum over the ranks that share a layer.
func (r *Run) total(ranks *world.World, t *tensor.Tensor) {
	if r.Err == nil {
		r.fail(ranks.Total("add up the parts of a layer", t))
	}
}

// gather gives all ranks that share a layer the rows of all, one after the other.
func (r *Run) gather(ranks *world.World, own, all *tensor.Tensor) {
	if r.Err == nil {
		r.fail(ranks.GatherInto("collect the rows of a layer", own, all))
	}
}

// scatter adds up a tensor over the ranks that share a layer, and gives each its part of the rows.
func (r *Run) scatter(ranks *world.World, all, own *tensor.Tensor) {
	if r.Err == nil {
		r.fail(ranks.TotalInto("add up the parts of a layer", all, own))
	}
}

// fail notes the error of a collective.
func (r *Run) fail(err error) {
	if err != nil {
		r.Err = fmt.Errorf("%s: %w", r.place(), err)
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

// Call calls an op unless an earlier op has failed.
func Call[A any](r *Run, b *opmanager.Bound[A], a A) {
	if r.Err != nil {
		return
	}
	if r.mark != nil {
		r.mark.Set(b.Op().Name())
		defer r.mark.Set("")
	}
	if err := b.Call(a); err != nil {
		r.Err = fmt.Errorf("%s: %w", r.place(), err)
		return
	}
	if r.Check {
		args := a // only here, so that calls allocate nothing
		if found := finite.First(b.Op().At(&args), opregistry.Serial{}); found != nil {
			r.Err = &NonFiniteError{Place: r.place(), Op: b.Op().Name(), Operand: found.Operand, Value: found.Value}
		}
	}
}
