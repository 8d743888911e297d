// Package finite looks for NaN and infinities in the results of ops, to name the first op that
// produced one.
package finite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/vector"
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
// infinity, or whose content cannot be had, are left out; those on a device are copied to the host.
// The workers of the pool look at the parts of a large operand.
func First(call opregistry.Call, pool opregistry.Pool) *Found {
	return first(call, pool, func(o opregistry.Operand) bool { return o.Access != opregistry.AccessRead })
}

// FirstRead is First for the operands that a call reads.
func FirstRead(call opregistry.Call, pool opregistry.Pool) *Found {
	return first(call, pool, func(o opregistry.Operand) bool { return o.Access != opregistry.AccessWrite })
}

func first(call opregistry.Call, pool opregistry.Pool, of func(opregistry.Operand) bool) *Found {
	for _, o := range call.Operands() {
		if o.Tensor == nil || !of(o) || !o.Tensor.DType().IsFloat() {
			continue
		}
		host, err := o.Tensor.ToHost()
		if err != nil {
			continue
		}
		o.Tensor = host
		if i := index(o, pool); i >= 0 {
			return &Found{Operand: o.Name, Index: i, Value: values(o.Tensor)[i]}
		}
	}
	return nil
}

// index returns the row-major index of the first element that is not finite, -1 if there is none.
func index(o opregistry.Operand, pool opregistry.Pool) int {
	t := o.Tensor
	if o.Masked {
		return slices.IndexFunc(values(t), func(v float64) bool { return notFinite(v) && !math.IsInf(v, -1) })
	}
	if t.NumElements() > 0 {
		switch t.DType() {
		case tensor.F32:
			return inRuns(t, pool, index32)
		case tensor.BF16:
			return inRuns(t, pool, func(s []uint16) int { return index16(s, 0x7f80) })
		case tensor.F16:
			return inRuns(t, pool, func(s []uint16) int { return index16(s, 0x7c00) })
		case tensor.F64, tensor.F8E4M3, tensor.F8E5M2, tensor.I64, tensor.I32, tensor.I16, tensor.U8, tensor.Bool, tensor.Unspecified:
			// rare, and large nowhere
		}
	}
	return slices.IndexFunc(values(t), notFinite)
}

// partLen is the number of elements that a worker looks at before it takes the next part.
const partLen = 1 << 15

// search looks for the first element that find finds in the runs of elements that lie side by side,
// in row-major order.
type search[E any] struct {
	memory         unsafe.Pointer
	shape, strides []int // of the runs
	run, size      int   // elements of a run, and of all
	find           func([]E) int
	first          atomic.Int64 // row-major index of the first element found so far, size for none
}

// inRuns returns the row-major index of the first element that find finds in a tensor with elements
// of type E, -1 for none. The workers of the pool take parts of a large tensor.
func inRuns[E any](t *tensor.Tensor, pool opregistry.Pool, find func([]E) int) int {
	s := &search[E]{memory: t.Pointer(), shape: t.Shape(), strides: t.Strides(), run: 1, size: t.NumElements(), find: find}
	axes := len(s.shape)
	for axes > 0 && (s.shape[axes-1] == 1 || s.strides[axes-1] == s.run) {
		axes--
		s.run *= s.shape[axes]
	}
	s.shape, s.strides = s.shape[:axes], s.strides[:axes]
	s.first.Store(int64(s.size))
	if parts := (s.size + partLen - 1) / partLen; parts == 1 {
		s.Do(0)
	} else {
		pool.Run(parts, s)
	}
	if i := int(s.first.Load()); i < s.size {
		return i
	}
	return -1
}

// Do implements opregistry.Task.
func (s *search[E]) Do(part int) {
	var element E
	i := part * partLen
	end := min(i+partLen, s.size)
	at, offset, rest := make([]int, len(s.shape)), i%s.run, i/s.run // the indexes of the run, and where in memory i is
	for k := len(at) - 1; k >= 0; k-- {
		at[k] = rest % s.shape[k]
		rest /= s.shape[k]
		offset += at[k] * s.strides[k]
	}
	for i < end {
		begin := i % s.run
		n := min(s.run-begin, end-i)
		address := unsafe.Add(s.memory, offset*int(unsafe.Sizeof(element)))
		if found := s.find(unsafe.Slice((*E)(address), n)); found >= 0 {
			s.found(int64(i + found))
			return
		}
		i += n
		offset -= begin
		for k := len(at) - 1; k >= 0; k-- {
			offset += s.strides[k]
			if at[k]++; at[k] < s.shape[k] {
				break
			}
			offset -= s.shape[k] * s.strides[k]
			at[k] = 0
		}
	}
}

func (s *search[E]) found(i int64) {
	for first := s.first.Load(); i < first && !s.first.CompareAndSwap(first, i); {
		first = s.first.Load()
	}
}

// values returns the elements of a tensor that may hold a NaN or an infinity.
func values(t *tensor.Tensor) []float64 {
	if !t.DType().IsFloat() || !t.Readable() {
		return nil
	}
	return t.Float64s()
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// block is the number of elements that are looked at together.
const block = 4096

// index32 looks at the sum of the squares of each block, which is NaN or infinite if an element is.
// It may overflow otherwise, too, so a block at fault is searched.
func index32(s []float32) int {
	for at := 0; at < len(s); at += block {
		part := s[at:min(at+block, len(s))]
		if !notFinite(vector.SumSquares(part)) {
			continue
		}
		if i := slices.IndexFunc(part, func(v float32) bool { return v-v != 0 }); i >= 0 {
			return at + i
		}
	}
	return -1
}

// index16 returns the index of the first element whose exponent has all bits set. It looks at four
// elements at a time as one number.
func index16(s []uint16, exponent uint16) int {
	const each = 0x0001000100010001
	mask := uint64(exponent) * each
	step := uint64(exponent&-exponent) * each // the lowest bits of the exponents, which carry into the signs
	for at := 0; at < len(s); at += block {
		part := s[at:min(at+block, len(s))]
		rest, seen := part, uint64(0)
		if uintptr(unsafe.Pointer(&part[0]))%8 == 0 {
			words := unsafe.Slice((*uint64)(unsafe.Pointer(&part[0])), len(part)/4)
			for ; len(words) >= 4; words = words[4:] {
				seen |= (words[0]&mask + step) | (words[1]&mask + step) | (words[2]&mask + step) | (words[3]&mask + step)
			}
			for _, w := range words {
				seen |= w&mask + step
			}
			rest = part[len(part)/4*4:]
		}
		for _, v := range rest {
			seen |= uint64(v)&mask + step
		}
		if seen&(0x8000*each) == 0 {
			continue
		}
		if i := slices.IndexFunc(part, func(v uint16) bool { return v&exponent == exponent }); i >= 0 {
			return at + i
		}
	}
	return -1
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
	// ForwardOnly leaves out calls that are not part of a forward pass, for training whose gradients
	// may overflow because the loss is scaled.
	ForwardOnly bool

	found atomic.Bool
}

// Begin implements opmanager.Tap.
func (c *Check) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	if c.ForwardOnly && call.Phase != oppolicy.PhaseForward {
		return nil
	}
	return func(served opmanager.ImplInfo, err error) error {
		if err != nil || c.found.Load() {
			return nil
		}
		found := First(call.Args, call.Pool)
		if found == nil || !c.found.CompareAndSwap(false, true) {
			return nil
		}
		return &Error{Op: call.Op.Name(), Layer: call.Layer, Phase: call.Phase, Impl: served, Found: *found, Inputs: inputs(call.Args)}
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
