// Package finite looks for NaN and infinities in the results of ops, to name the first op that
// produced one.
package finite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Found is an element that is not finite.
type Found struct {
	Operand string
	Index   int // row-major
	Value   float64
}

// String describes the element.
func (f *Found) String() string {
	return fmt.Sprintf("operand %q holds %v at element %d", f.Operand, f.Value, f.Index)
}

// First returns the first element that is not finite of the operands that a call writes, nil if
// there is none. In an operand that is Masked, −∞ is no fault. Operands of types without NaN and
// infinity, or in memory that the processor cannot read, are left out.
func First(call opregistry.Call) *Found {
	for _, o := range call.Operands() {
		if o.Tensor == nil || o.Access == opregistry.AccessRead {
			continue
		}
		if i := index(o); i >= 0 {
			return &Found{Operand: o.Name, Index: i, Value: values(o.Tensor)[i]}
		}
	}
	return nil
}

// index returns the row-major index of the first element that is not finite, -1 if there is none.
func index(o opregistry.Operand) int {
	t := o.Tensor
	if o.Masked {
		return slices.IndexFunc(values(t), func(v float64) bool { return notFinite(v) && !math.IsInf(v, -1) })
	}
	if t.IsContiguous() && t.OnHost() {
		switch t.DType() {
		case tensor.F32:
			return index32(tensor.Data[float32](t))
		case tensor.BF16:
			return index16(tensor.Data[tensor.BFloat16](t), 0x7f80)
		case tensor.F16:
			return index16(tensor.Data[tensor.Float16](t), 0x7c00)
		}
	}
	return slices.IndexFunc(values(t), notFinite)
}

// values returns the elements of a tensor that may hold a NaN or an infinity.
func values(t *tensor.Tensor) []float64 {
	if !t.DType().IsFloat() || !t.OnHost() {
		return nil
	}
	return t.Float64s()
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// block is the number of elements that are looked at together: x-x is 0 for every finite x and NaN
// for others, and so is a sum of such differences.
const block = 256

func index32(s []float32) int {
	for at := 0; at < len(s); at += block {
		part := s[at:min(at+block, len(s))]
		if faulty32(part) {
			return at + slices.IndexFunc(part, func(v float32) bool { return v-v != 0 })
		}
	}
	return -1
}

func faulty32(s []float32) bool {
	var a, b, c, d float32
	for ; len(s) >= 4; s = s[4:] {
		a += s[0] - s[0]
		b += s[1] - s[1]
		c += s[2] - s[2]
		d += s[3] - s[3]
	}
	for _, v := range s {
		a += v - v
	}
	return a+b+c+d != 0
}

func index16[T ~uint16](s []T, exponent T) int {
	return slices.IndexFunc(s, func(v T) bool { return v&exponent == exponent })
}

// Error says which call produced a value that is not finite.
type Error struct {
	Op    string
	Layer int // counted from 0; -1 outside of layers
	Phase oppolicy.Phase
	Impl  opmanager.ImplInfo
	Found
	// Inputs describes the tensors that the op read. One that it also wrote is described as it was
	// left.
	Inputs []string
}

// Error names the op, its place, the element and the ranges of the inputs.
func (e *Error) Error() string {
	place := ""
	if e.Layer >= 0 {
		place += fmt.Sprintf(" in layer %d", e.Layer)
	}
	if e.Phase != oppolicy.PhaseUnspecified {
		place += fmt.Sprintf(" (%v)", e.Phase)
	}
	return fmt.Sprintf("op %q%s on impl %q: %s; it read %s", e.Op, place, e.Impl.ID, e.Found.String(), strings.Join(e.Inputs, ", "))
}

// Check is an opmanager.Tap that fails the first call whose result is not finite with an *Error,
// and lets all calls after it pass.
type Check struct {
	found atomic.Bool
	mu    sync.Mutex
	first *Error
}

// First returns the error of the first call whose result was not finite, nil if there was none.
func (c *Check) First() *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first
}

// Begin implements opmanager.Tap.
func (c *Check) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	return func(served opmanager.ImplInfo, err error) error {
		if err != nil || c.found.Load() {
			return nil
		}
		found := First(call.Args)
		if found == nil || !c.found.CompareAndSwap(false, true) {
			return nil
		}
		e := &Error{Op: call.Op.Name(), Layer: call.Layer, Phase: call.Phase, Impl: served, Found: *found, Inputs: inputs(call.Args)}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.first = e
		return e
	}
}

// maxInputs bounds the inputs that an Error describes; an optimizer has as many as the model.
const maxInputs = 8

// inputs describes the operands that a call reads.
func inputs(call opregistry.Call) []string {
	var all []string
	for _, o := range call.Operands() {
		if o.Tensor != nil && o.Access != opregistry.AccessWrite {
			if len(all) == maxInputs {
				return append(all, "and more")
			}
			all = append(all, describe(o))
		}
	}
	return all
}

// describe returns the name, type and range of an operand.
func describe(o opregistry.Operand) string {
	text := fmt.Sprintf("%s %v %v", o.Name, o.Tensor.DType(), o.Tensor.Shape())
	all := values(o.Tensor)
	if len(all) == 0 {
		return text
	}
	lo, hi, bad := math.Inf(1), math.Inf(-1), 0
	for _, v := range all {
		if notFinite(v) {
			bad++
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	switch {
	case bad == len(all):
		return text + " without a finite element"
	case bad > 0:
		return fmt.Sprintf("%s from %.4g to %.4g with %d elements that are not finite", text, lo, hi, bad)
	}
	return fmt.Sprintf("%s from %.4g to %.4g", text, lo, hi)
}
