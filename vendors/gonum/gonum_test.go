package gonum_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	gemmops "github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/gonum"
	"github.com/primus-fl/primus/vendors/internal/blas/blastest"
)

func gemm() blastest.Gemm { return gonum.Source().Impls[0].Run.(blastest.Gemm) }

func TestConformance(t *testing.T) {
	opscases.All().RunAll(t, gonum.Source(), reference.Source(), opstest.Sample(60, 1))
}

func TestDifferential(t *testing.T) {
	t.Run("small", func(t *testing.T) { blastest.Differential(t, gemm(), 300, 1) })
	t.Run("many blocks", func(t *testing.T) { blastest.Differential(t, gemm(), 6, 260) })
}

func TestHammer(t *testing.T) { blastest.Hammer(t, gemm(), 64) }

func TestSource(t *testing.T) {
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(gonum.Source()))
	i, ok := reg.Snapshot().Index("generic_gemm")
	require.True(t, ok)
	impl := reg.Snapshot().Impls(i)[0]
	assert.Equal(t, "vendor.gonum", impl.ID)
	assert.Less(t, impl.Priority, 100, "vendors with a library come first")
	assert.Nil(t, impl.Available, "it needs nothing")
}

func random[T tensor.Element](t testing.TB, n int, shape ...int) *tensor.Tensor {
	s := make([]T, n)
	x, err := tensor.FromSlice(s, shape...)
	require.NoError(t, err)
	v := x.Float64s()
	for i := range v {
		v[i] = math.Sin(float64(i*i%1009)) * float64(1+i%7)
	}
	require.NoError(t, x.SetFloat64s(v))
	return x
}

// The bits do not depend on the number of workers, in any layout.
func TestSameBitsForAnyWorkers(t *testing.T) {
	const m, n, k = 130, 190, 515
	for _, trans := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		var first []float64
		for _, workers := range []int{1, 2, 3, 7} {
			pool := parallel.New(workers)
			a := gemmops.GenericGemmArgs{A: random[float32](t, k*n, k, n), B: random[float32](t, m*k, m, k), D: random[float32](t, m*n, m, n), TransA: trans[0], TransB: trans[1], Accumulate: true}
			if a.TransA {
				a.A = random[float32](t, k*n, n, k)
			}
			if a.TransB {
				a.B = random[float32](t, k*m, k, m)
			}
			require.NoError(t, gemm()(opregistry.NewExec(pool, 0), a))
			pool.Close()
			if first == nil {
				first = a.D.Float64s()
			}
			assert.Equal(t, first, a.D.Float64s(), "%v with %d workers", trans, workers)
		}
	}
}

// A zero beside an infinity is a NaN in every layout, as in the reference.
func TestZeroTimesInfinity(t *testing.T) {
	for _, trans := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		a := gemmops.GenericGemmArgs{A: random[float64](t, 4, 2, 2), B: random[float64](t, 4, 2, 2), D: random[float64](t, 4, 2, 2), TransA: trans[0], TransB: trans[1]}
		require.NoError(t, a.A.SetFloat64s([]float64{math.Inf(1), math.Inf(1), 1, 1}))
		require.NoError(t, a.B.SetFloat64s([]float64{0, 0, 0, 0}))
		require.NoError(t, gemm()(opregistry.NewExec(nil, 0), a))
		nans := 0
		for _, v := range a.D.Float64s() {
			if math.IsNaN(v) {
				nans++
			}
		}
		assert.Equal(t, map[bool]int{false: 4, true: 2}[trans[0]], nans, "%v", trans)
	}
}

func TestDoesNotAllocate(t *testing.T) {
	x := opregistry.NewExec(nil, 0)
	for _, a := range []gemmops.GenericGemmArgs{
		{A: random[float32](t, 64*64, 64, 64), B: random[float32](t, 64*64, 64, 64), D: random[float32](t, 64*64, 64, 64), TransB: true},
		{A: random[float64](t, 64*64, 64, 64), B: random[float64](t, 64*64, 64, 64), D: random[float64](t, 64*64, 64, 64), TransB: true},
	} {
		run := gemm()
		assert.Less(t, testing.AllocsPerRun(100, func() { _ = run(x, a) }), 1.0)
	}
}

func TestDeclines(t *testing.T) {
	x := opregistry.NewExec(nil, 0)
	a := gemmops.GenericGemmArgs{A: random[float64](t, 4, 2, 2), B: random[float64](t, 4, 2, 2), D: random[float32](t, 4, 2, 2)}
	assert.ErrorIs(t, gemm()(x, a), opregistry.ErrUnsupported)
	a.A, a.B = random[tensor.BFloat16](t, 4, 2, 2), random[tensor.BFloat16](t, 4, 2, 2)
	assert.ErrorIs(t, gemm()(x, a), opregistry.ErrUnsupported)
}
