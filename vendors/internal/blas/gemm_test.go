package blas_test

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
)

// plain is a library written in Go.
type plain struct {
	calls int
	err   error
}

// SGEMM is not instrumented: blas has told the race detector what it touches.
//
//go:norace
func (l *plain) SGEMM(p *blas.Product) error {
	l.calls++
	left := elements(p.Left, p.LDLeft, p.M, p.K, p.TransLeft)
	right := elements(p.Right, p.LDRight, p.K, p.N, p.TransRight)
	all := elements(p.Out, p.LDOut, p.M, p.N, false)
	for i := range p.M {
		for j := range p.N {
			var sum float64
			for k := range p.K {
				x, y := i*p.LDLeft+k, k*p.LDRight+j
				if p.TransLeft {
					x = k*p.LDLeft + i
				}
				if p.TransRight {
					y = j*p.LDRight + k
				}
				sum += float64(left[x]) * float64(right[y])
			}
			out := &all[i*p.LDOut+j]
			sum *= float64(p.Alpha)
			if p.Beta != 0 {
				sum += float64(p.Beta) * float64(*out)
			}
			*out = float32(sum)
		}
	}
	return l.err
}

// elements returns the memory of X, where op(X) is rows×cols.
func elements(first unsafe.Pointer, ld, rows, cols int, transposed bool) []float32 {
	if transposed {
		rows, cols = cols, rows
	}
	return unsafe.Slice((*float32)(first), (rows-1)*ld+cols)
}

var anything = blas.Limits{MaxDim: math.MaxInt32}

func TestGemmDifferential(t *testing.T) {
	lib := &plain{}
	blastest.Differential(t, func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, lib, anything)
	}, 300, 1)
	assert.Equal(t, 300, lib.calls)
}

func TestGemmManyBiasParts(t *testing.T) {
	blastest.Differential(t, func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		return blas.Gemm(x, a, &plain{}, anything)
	}, 8, 260)
}

func floats(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(i + 1)
	}
	return s
}

func of[T tensor.Element](t testing.TB, s []T, shape ...int) *tensor.Tensor {
	v, err := tensor.FromSlice(s, shape...)
	require.NoError(t, err)
	return v
}

func TestGemmLeadingAxes(t *testing.T) {
	storage := of(t, floats(1000))
	strided := func(shape, strides []int) *tensor.Tensor {
		v, err := storage.AsStrided(shape, strides, 0)
		require.NoError(t, err)
		return v
	}
	tests := []struct {
		name string
		b    *tensor.Tensor
		want bool
	}{
		{"contiguous", strided([]int{2, 3, 4}, []int{12, 4, 1}), true},
		{"pitch", strided([]int{2, 3, 4}, []int{21, 7, 1}), true},
		{"axes of length 1 have any stride", strided([]int{1, 6, 1, 4}, []int{999, 5, 777, 1}), true},
		{"one column has any stride", strided([]int{6, 1}, []int{3, 50}), true},
		{"one row", strided([]int{1, 1, 4}, []int{0, 0, 1}), true},
		{"gap between blocks", strided([]int{2, 3, 4}, []int{13, 4, 1}), false},
		{"transposed", strided([]int{6, 4}, []int{1, 6}), false},
		{"every second column", strided([]int{6, 4}, []int{8, 2}), false},
		{"repeated row", strided([]int{6, 4}, []int{0, 1}), false},
		{"overlapping rows", strided([]int{6, 4}, []int{3, 1}), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, cols := tt.b.Shape().Rows(), tt.b.Shape().Cols()
			d := of(t, make([]float32, rows*2), rows, 1, 2)
			a := gemm.GenericGemmArgs{A: of(t, floats(cols*2), cols, 2), B: tt.b, D: d}
			require.NoError(t, gemm.GenericGemm.Validate(a))
			lib := &plain{}
			err := blas.Gemm(opregistry.NewExec(nil, 0), a, lib, anything)
			if !tt.want {
				require.ErrorIs(t, err, opregistry.ErrUnsupported)
				assert.Zero(t, lib.calls)
				return
			}
			require.NoError(t, err)
			b, w, got := tt.b.Float64s(), a.A.Float64s(), d.Float64s()
			for i := range rows {
				for j := range 2 {
					var sum float64
					for k := range cols {
						sum += b[i*cols+k] * w[k*2+j]
					}
					assert.InDelta(t, sum, got[i*2+j], 1e-3)
				}
			}
		})
	}
}

func TestGemmDeclines(t *testing.T) {
	half := func(rows, cols int) *tensor.Tensor {
		return of(t, make([]tensor.BFloat16, rows*cols), rows, cols)
	}
	tests := []struct {
		name   string
		edit   func(*gemm.GenericGemmArgs)
		limits blas.Limits
		want   string
	}{
		{"bf16 operands", func(a *gemm.GenericGemmArgs) { a.A, a.B = half(4, 5), half(3, 4) }, anything, "bf16"},
		{"bf16 result", func(a *gemm.GenericGemmArgs) { a.D = half(3, 5) }, anything, "bf16"},
		{"bf16 bias", func(a *gemm.GenericGemmArgs) { a.Bias = half(1, 5) }, anything, "bf16"},
		{"gelu", func(a *gemm.GenericGemmArgs) { a.Gelu, a.GeluIn = true, of(t, floats(15), 3, 5) }, anything, "GELU"},
		{"alpha 0", func(a *gemm.GenericGemmArgs) { a.Alpha = opregistry.Float(0) }, anything, "alpha 0"},
		{"too small", func(*gemm.GenericGemmArgs) {}, blas.Limits{MinFLOP: 121, MaxDim: 100}, "3×5×4"},
		{"too large", func(*gemm.GenericGemmArgs) {}, blas.Limits{MaxDim: 4}, "beyond 4"},
		{"strided bias", func(a *gemm.GenericGemmArgs) {
			v, err := of(t, floats(10)).AsStrided([]int{5}, []int{2}, 0)
			require.NoError(t, err)
			a.Bias = v
		}, anything, "strides"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := of(t, floats(15), 3, 5)
			a := gemm.GenericGemmArgs{A: of(t, floats(20), 4, 5), B: of(t, floats(12), 3, 4), D: d}
			tt.edit(&a)
			require.NoError(t, gemm.GenericGemm.Validate(a))
			lib := &plain{}
			err := blas.Gemm(opregistry.NewExec(nil, 0), a, lib, tt.limits)
			require.ErrorIs(t, err, opregistry.ErrUnsupported)
			assert.ErrorContains(t, err, tt.want)
			assert.Zero(t, lib.calls)
			assert.Equal(t, floats(15), tensor.Data[float32](d), "nothing is written")
		})
	}
	t.Run("exactly large enough", func(t *testing.T) {
		a := gemm.GenericGemmArgs{A: of(t, floats(20), 4, 5), B: of(t, floats(12), 3, 4), D: of(t, floats(15), 3, 5)}
		require.NoError(t, blas.Gemm(opregistry.NewExec(nil, 0), a, &plain{}, blas.Limits{MinFLOP: 120, MaxDim: 5}))
	})
}

func TestGemmWithoutProduct(t *testing.T) {
	tests := []struct {
		name       string
		m, n, k    int
		bias       bool
		grad       bool
		accumulate bool
		beta       opregistry.OptionalFloat
		d          []float32
		wantBias   []float32
	}{
		{name: "k 0", m: 2, n: 2, d: []float32{0, 0, 0, 0}},
		{name: "k 0, bias", m: 2, n: 2, bias: true, d: []float32{1, 2, 1, 2}, wantBias: []float32{1, 2}},
		{name: "k 0, accumulate", m: 2, n: 2, accumulate: true, d: []float32{1, 2, 3, 4}},
		{name: "k 0, beta", m: 2, n: 2, accumulate: true, beta: opregistry.Float(2), d: []float32{2, 4, 6, 8}},
		{name: "k 0, beta and bias", m: 2, n: 2, bias: true, accumulate: true, beta: opregistry.Float(2), d: []float32{3, 6, 7, 10}, wantBias: []float32{1, 2}},
		{name: "no rows", n: 2, k: 3, d: []float32{}},
		{name: "no rows, bias gradient", n: 2, k: 3, bias: true, grad: true, d: []float32{}, wantBias: []float32{0, 0, 0}},
		{name: "no columns, bias gradient", m: 2, k: 3, bias: true, grad: true, d: []float32{}, wantBias: []float32{5, 7, 9}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lib := &plain{}
			a := gemm.GenericGemmArgs{
				A: of(t, floats(tt.k*tt.n), tt.k, tt.n), B: of(t, floats(tt.m*tt.k), tt.m, tt.k),
				D: of(t, floats(tt.m*tt.n), tt.m, tt.n), Grad: tt.grad, Accumulate: tt.accumulate, Beta: tt.beta,
			}
			if tt.bias {
				a.Bias = of(t, floats(len(tt.wantBias)))
			}
			require.NoError(t, gemm.GenericGemm.Validate(a))
			require.NoError(t, blas.Gemm(opregistry.NewExec(nil, 0), a, lib, blas.Limits{MinFLOP: 1e9, MaxDim: 10}))
			assert.Zero(t, lib.calls)
			assert.Equal(t, tt.d, append([]float32{}, tensor.Data[float32](a.D)...))
			if tt.bias {
				assert.Equal(t, tt.wantBias, tensor.Data[float32](a.Bias))
			}
		})
	}
}

func TestGemmReturnsErrorOfLibrary(t *testing.T) {
	broken := errors.New("broken")
	a := gemm.GenericGemmArgs{A: of(t, floats(4), 2, 2), B: of(t, floats(4), 2, 2), D: of(t, floats(4), 2, 2)}
	err := blas.Gemm(opregistry.NewExec(nil, 0), a, &plain{err: broken}, anything)
	require.ErrorIs(t, err, broken)
	assert.NotErrorIs(t, err, opregistry.ErrUnsupported)
}

func TestGemmDoesNotAllocate(t *testing.T) {
	lib, x := &plain{}, opregistry.NewExec(nil, 0)
	a := gemm.GenericGemmArgs{A: of(t, floats(4), 2, 2), B: of(t, floats(4), 2, 2), D: of(t, floats(4), 2, 2), Bias: of(t, floats(2))}
	run := func() { _ = blas.Gemm(x, a, lib, anything) }
	assert.Less(t, testing.AllocsPerRun(200, run), 1.0)
	a.Grad = true
	assert.Less(t, testing.AllocsPerRun(200, run), 1.0)
}
