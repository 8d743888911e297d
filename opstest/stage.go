package opstest

import (
	"math"
	"slices"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Layout is how the elements of an operand lie in memory.
type Layout uint8

const (
	Dense  Layout = iota + 1 // row-major
	Padded                   // row-major with gaps after rows
	Turned                   // the last two axes exchanged
)

func (l Layout) String() string {
	return [...]string{"", "dense", "padded", "turned"}[l]
}

// Stage makes the operands of one call. Two stages make equal operands for the same requests in the
// same order.
type Stage struct {
	T      tensortest.TB
	Seed   uint64
	guards []func(tensortest.TB)
	place  tensortest.Placement
	axis   func(int) int  // replaces the length of an axis; nil keeps it
	padded func(int) bool // chooses operands by number that would be dense and get gaps after rows
	made   int            // operands so far
	limit  int            // how many elements operands have at most if axis is not nil

	// outline leaves large operands without values and guards, for a call of which only the shapes
	// are looked at.
	outline bool
}

// outlined is how many elements an operand has at least that an outline leaves without values.
const outlined = 1 << 12

// valueless reports whether an operand of n elements gets no values.
func (s *Stage) valueless(n int) bool { return s.outline && n >= outlined }

// OnlyShapes reports whether only the shapes of the operands will be looked at, so that values
// which take long to compute need not be there.
func (s *Stage) OnlyShapes() bool { return s.outline }

// Out returns a guarded operand that has not been written yet.
func (s *Stage) Out(l Layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.T.Helper()
	if s.padded != nil && s.padded(s.made) && l == Dense {
		l = Padded
	}
	s.made++
	x, intact := s.guarded(l, d, s.lengths(shape))
	s.guards = append(s.guards, intact)
	return x
}

// lengths returns the lengths of the axes of an operand for which a case wants a shape.
func (s *Stage) lengths(shape []int) []int {
	if s.axis == nil {
		return shape
	}
	longer, elements := slices.Clone(shape), 1
	for i, n := range longer {
		longer[i] = s.axis(n)
		elements *= longer[i]
	}
	if s.limit -= elements; s.limit < 0 {
		s.T.Fatalf("opstest: an operand of shape %v is one too many", tensor.Shape(longer))
	}
	return longer
}

func (s *Stage) guarded(l Layout, d tensor.DType, shape []int) (*tensor.Tensor, func(tensortest.TB)) {
	s.T.Helper()
	n := len(shape)
	if l == Turned && n < 2 {
		l = Padded
	}
	outline := s.valueless(tensor.Shape(shape).NumElements())
	if l == Padded && !outline {
		return s.place.Strided(s.T, d, shape...)
	}
	lengths, strides := slices.Clone(shape), make([]int, n)
	if l == Turned {
		lengths[n-1], lengths[n-2] = lengths[n-2], lengths[n-1]
	}
	step := 1
	for i := n - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(lengths[i], 1)
		if l == Padded && i == n-1 {
			step++
		}
	}
	if l == Turned {
		strides[n-1], strides[n-2] = strides[n-2], strides[n-1]
	}
	if !outline {
		return s.place.Guarded(s.T, d, shape, strides)
	}
	x, err := tensor.FromBytes(make([]byte, step*d.Size()), d, step)
	if err == nil {
		x, err = x.AsStrided(shape, strides, 0)
	}
	if err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
	return x, func(tensortest.TB) {}
}

// In returns a guarded operand of random values in [-1, 1].
func (s *Stage) In(l Layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.T.Helper()
	s.Seed++
	x := s.Out(l, d, shape...)
	longer := s.lengths(shape) // values count against the limit, too
	if s.valueless(x.NumElements()) {
		return x
	}
	if err := x.CopyFrom(tensortest.Random(s.T, s.Seed, d, longer...)); err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
	return x
}

// Scaled returns a guarded operand of random values in [-f, f].
func (s *Stage) Scaled(f float64, l Layout, d tensor.DType, shape ...int) *tensor.Tensor {
	s.T.Helper()
	x := s.In(l, d, shape...)
	if s.valueless(x.NumElements()) {
		return x
	}
	v := x.Float64s()
	for i := range v {
		v[i] *= f
	}
	s.Fill(x, v)
	return x
}

// Short returns a guarded operand of random multiples of 1/64 in [-1, 1].
func (s *Stage) Short(d tensor.DType, shape ...int) *tensor.Tensor {
	s.T.Helper()
	x := s.In(Dense, d, shape...)
	if s.valueless(x.NumElements()) {
		return x
	}
	v := x.Float64s()
	for i := range v {
		v[i] = math.Round(v[i]*64) / 64
	}
	s.Fill(x, v)
	return x
}

// Values returns a guarded vector of these values.
func (s *Stage) Values(d tensor.DType, v ...float64) *tensor.Tensor {
	s.T.Helper()
	x := s.Out(Dense, d, len(v))
	s.Fill(x, v)
	return x
}

// Indexes returns a guarded vector of n random values in [0, limit), the last of them the largest.
func (s *Stage) Indexes(d tensor.DType, n, limit int) *tensor.Tensor {
	s.T.Helper()
	s.Seed++
	v := tensortest.Random(s.T, s.Seed, tensor.F64, n).Float64s()
	for i := range v {
		v[i] = float64(min(int((v[i]+1)/2*float64(limit)), limit-1))
	}
	if n > 1 {
		v[n-1] = float64(limit - 1)
	}
	return s.Values(d, v...)
}

// Parts returns views of one guarded operand that is cut along an axis, like the parts of a fused
// projection. With filled, it has random values.
func (s *Stage) Parts(filled bool, d tensor.DType, shape []int, axis int, sizes ...int) []*tensor.Tensor {
	s.T.Helper()
	shape = slices.Clone(shape)
	shape[axis] = 0
	for _, n := range sizes {
		shape[axis] += n
	}
	var whole *tensor.Tensor
	if filled {
		whole = s.In(Dense, d, shape...)
	} else {
		whole = s.Out(Dense, d, shape...)
	}
	views := make([]*tensor.Tensor, len(sizes))
	lo := 0
	for i, n := range sizes {
		v, err := whole.Slice(axis, lo, lo+n)
		if err != nil {
			s.T.Fatalf("opstest: %v", err)
		}
		views[i] = v
		lo += n
	}
	return views
}

// Fill writes elements. Those of an operand that a rule has made longer begin again after the last.
func (s *Stage) Fill(x *tensor.Tensor, v []float64) {
	s.T.Helper()
	if s.valueless(x.NumElements()) {
		return
	}
	if n := x.NumElements(); s.axis != nil && len(v) > 0 && len(v) < n {
		v = slices.Repeat(v, n/len(v)+1)[:n]
	}
	if err := x.SetFloat64s(v); err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
}

// intact checks the guards of all operands.
func (s *Stage) intact(t tensortest.TB) {
	t.Helper()
	for _, g := range s.guards {
		g(t)
	}
}

// F64In makes operands for a gradient check.
func (s *Stage) F64In(shape ...int) *tensor.Tensor { return s.In(Dense, tensor.F64, shape...) }

func (s *Stage) F64Out(shape ...int) *tensor.Tensor { return s.Out(Dense, tensor.F64, shape...) }
