package opstest

import (
	"math"
	"slices"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// layout is how the elements of an operand lie in memory.
type layout uint8

const (
	dense  layout = iota + 1 // row-major
	padded                   // row-major with gaps after rows
	turned                   // the last two axes exchanged
)

func (l layout) String() string {
	return [...]string{"", "dense", "padded", "turned"}[l]
}

// stage makes the operands of one call. Two stages make equal operands for the same requests in the
// same order.
type stage struct {
	t      tensortest.TB
	seed   uint64
	guards []func(tensortest.TB)
}

// out returns a guarded operand that has not been written yet.
func (s *stage) out(l layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.t.Helper()
	x, intact := guarded(s.t, l, d, shape)
	s.guards = append(s.guards, intact)
	return x
}

func guarded(t tensortest.TB, l layout, d tensor.DType, shape []int) (*tensor.Tensor, func(tensortest.TB)) {
	t.Helper()
	if n := len(shape); l == turned && n >= 2 {
		swapped := slices.Clone(shape)
		swapped[n-1], swapped[n-2] = swapped[n-2], swapped[n-1]
		strides := make([]int, n)
		step := 1
		for i := n - 1; i >= 0; i-- {
			strides[i] = step
			step *= max(swapped[i], 1)
		}
		strides[n-1], strides[n-2] = strides[n-2], strides[n-1]
		return tensortest.GuardedAs(t, d, shape, strides)
	}
	if l == dense {
		return tensortest.Guarded(t, d, shape...)
	}
	return tensortest.GuardedStrided(t, d, shape...)
}

// in returns a guarded operand of random values in [-1, 1].
func (s *stage) in(l layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.t.Helper()
	s.seed++
	x := s.out(l, d, shape...)
	if err := x.CopyFrom(tensortest.Random(s.t, s.seed, d, shape...)); err != nil {
		s.t.Fatalf("opstest: %v", err)
	}
	return x
}

// scaled returns a guarded operand of random values in [-f, f].
func (s *stage) scaled(f float64, l layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.t.Helper()
	x := s.in(l, d, shape...)
	v := x.Float64s()
	for i := range v {
		v[i] *= f
	}
	s.fill(x, v)
	return x
}

// short returns a guarded operand of random multiples of 1/64 in [-1, 1].
func (s *stage) short(d tensor.DType, shape ...int) *tensor.Tensor {
	s.t.Helper()
	x := s.in(dense, d, shape...)
	v := x.Float64s()
	for i := range v {
		v[i] = math.Round(v[i]*64) / 64
	}
	s.fill(x, v)
	return x
}

// values returns a guarded vector of these values.
func (s *stage) values(d tensor.DType, v ...float64) *tensor.Tensor {
	s.t.Helper()
	x := s.out(dense, d, len(v))
	s.fill(x, v)
	return x
}

// indexes returns a guarded vector of n random values in [0, limit).
func (s *stage) indexes(d tensor.DType, n, limit int) *tensor.Tensor {
	s.t.Helper()
	s.seed++
	v := tensortest.Random(s.t, s.seed, tensor.F64, n).Float64s()
	for i := range v {
		v[i] = float64(min(int((v[i]+1)/2*float64(limit)), limit-1))
	}
	return s.values(d, v...)
}

// parts returns views of one guarded operand that is cut along an axis, like the parts of a fused
// projection. With filled, it has random values.
func (s *stage) parts(filled bool, d tensor.DType, shape []int, axis int, sizes ...int) []*tensor.Tensor {
	s.t.Helper()
	shape = slices.Clone(shape)
	shape[axis] = 0
	for _, n := range sizes {
		shape[axis] += n
	}
	var whole *tensor.Tensor
	if filled {
		whole = s.in(dense, d, shape...)
	} else {
		whole = s.out(dense, d, shape...)
	}
	views := make([]*tensor.Tensor, len(sizes))
	lo := 0
	for i, n := range sizes {
		v, err := whole.Slice(axis, lo, lo+n)
		if err != nil {
			s.t.Fatalf("opstest: %v", err)
		}
		views[i] = v
		lo += n
	}
	return views
}

func (s *stage) fill(x *tensor.Tensor, v []float64) {
	s.t.Helper()
	if err := x.SetFloat64s(v); err != nil {
		s.t.Fatalf("opstest: %v", err)
	}
}

// intact checks the guards of all operands.
func (s *stage) intact(t tensortest.TB) {
	t.Helper()
	for _, g := range s.guards {
		g(t)
	}
}
