package opstest

import (
	"math"
	"math/rand/v2"

	"github.com/primus-fl/primus/tensor"
)

// Total returns the sum of numbers of rows.
func Total(rows []int) int {
	sum := 0
	for _, m := range rows {
		sum += m
	}
	return sum
}

// Shift adds v to every element.
func (s *Stage) Shift(x *tensor.Tensor, v float64) {
	s.T.Helper()
	values := x.Float64s()
	for i := range values {
		values[i] += v
	}
	s.Fill(x, values)
}

// Permutation returns the numbers below n in an order that depends on the stage.
func (s *Stage) Permutation(n int) []int {
	s.Seed++
	return rand.New(rand.NewPCG(s.Seed, 2)).Perm(n)
}

// Integers returns a guarded operand of these integers.
func (s *Stage) Integers(d tensor.DType, v []int, shape ...int) *tensor.Tensor {
	s.T.Helper()
	x := s.Out(Dense, d, shape...)
	values := make([]float64, len(v))
	for i, n := range v {
		values[i] = float64(n)
	}
	s.Fill(x, values)
	return x
}

// Flag returns a no-op flag.
func (s *Stage) Flag(v float64) *tensor.Tensor { return s.Values(tensor.I32, v) }

// Squares replaces the elements of each tensor by their squares: second moments.
func (s *Stage) Squares(list []*tensor.Tensor) []*tensor.Tensor {
	for _, t := range list {
		v := t.Float64s()
		for i, x := range v {
			v[i] = x*x + 1e-3
		}
		s.Fill(t, v)
	}
	return list
}

// Random returns n random integers in (-limit, limit).
func (s *Stage) Random(limit float64, n int) []float64 {
	s.T.Helper()
	v := s.In(Dense, tensor.F64, n).Float64s()
	for i := range v {
		v[i] = math.Trunc(v[i] * limit)
	}
	return v
}
