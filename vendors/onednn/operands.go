package onednn

import (
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// named is an operand with the name that the op uses for it.
type named struct {
	name string
	t    *tensor.Tensor // nil for one that the caller left out
}

// served declines operands that oneDNN does not take. Operands with the shape of x must have one
// dtype, f32 or bf16; each of the others may have either.
func served(rows, others []named) error {
	want := rows[0].t.DType()
	for _, o := range rows {
		if d := o.t.DType(); d != want {
			return opregistry.Unsupported("given %s of dtype %v, want that of %s, %v", o.name, d, rows[0].name, want)
		}
	}
	for _, all := range [...][]named{rows, others} {
		for _, o := range all {
			if o.t == nil {
				continue
			}
			switch d := o.t.DType(); {
			case d != tensor.F32 && d != tensor.BF16:
				return opregistry.Unsupported("given %s of dtype %v, want f32 or bf16", o.name, d)
			case o.t.Device().Type != device.TypeCPU:
				return opregistry.Unsupported("given %s on %v, want memory on cpu", o.name, o.t.Device())
			case !o.t.IsContiguous():
				return opregistry.Unsupported("given %s with strides %v, want it contiguous", o.name, o.t.Strides())
			}
		}
	}
	return nil
}

// scratch hands out memory and releases all of it together.
type scratch struct {
	exec *opregistry.Exec
	lent [5][]float32
	n    int
}

func (s *scratch) floats(n int) []float32 {
	buf := s.exec.Scratch(n)
	s.lent[s.n] = buf
	s.n++
	return buf
}

func (s *scratch) release() {
	for _, buf := range s.lent[:s.n] {
		s.exec.Release(buf)
	}
}

// asF32 returns the elements of a contiguous tensor in f32, or n zeros for nil.
func (s *scratch) asF32(t *tensor.Tensor, n int) []float32 {
	switch {
	case t == nil:
		out := s.floats(n)
		clear(out)
		return out
	case t.DType() == tensor.F32:
		return tensor.Data[float32](t)
	}
	out := s.floats(n)
	for i, v := range tensor.Data[tensor.BFloat16](t) {
		out[i] = v.Float32()
	}
	return out
}

// gain returns the factors of the columns: γ, or γ+1.
func (s *scratch) gain(gamma *tensor.Tensor, zeroCentered bool) []float32 {
	g := s.asF32(gamma, gamma.NumElements())
	if !zeroCentered {
		return g
	}
	out := s.floats(len(g))
	for i, v := range g {
		out[i] = v + 1
	}
	return out
}

// result returns memory in f32 for the elements of a contiguous tensor, which store then rounds to
// the tensor's dtype. A nil tensor is not wanted.
func (s *scratch) result(t *tensor.Tensor, n int) []float32 {
	if t != nil && t.DType() == tensor.F32 {
		return tensor.Data[float32](t)
	}
	return s.floats(n)
}

func store(t *tensor.Tensor, v []float32) {
	if t == nil || t.DType() == tensor.F32 {
		return
	}
	out := tensor.Data[tensor.BFloat16](t)
	for i := range out {
		out[i] = tensor.ToBFloat16(v[i])
	}
}

// first returns the address of the first element; v must not be empty.
func first(v []float32) unsafe.Pointer { return unsafe.Pointer(&v[0]) }
