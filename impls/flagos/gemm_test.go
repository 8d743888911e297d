package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// flagosRun returns the function of the impl of an op.
func flagosRun[A any](t testing.TB, op *opregistry.Op[A]) opregistry.Func[A] {
	t.Helper()
	for _, i := range flagos.Source().Impls {
		if i.Op == opregistry.Handle(op) {
			return i.Run.(opregistry.Func[A])
		}
	}
	t.Fatalf("no impl of %s", op.Name())
	return nil
}

// matrixCase is a view of a 2-D tensor inside a block whose other elements are NaN.
type matrixCase struct {
	block  []float32
	tensor *tensor.Tensor
}

func newMatrix(t testing.TB, r *rand.Rand, layout string, shape ...int) matrixCase {
	t.Helper()
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
		switch {
		case layout == "pitch" && i == len(shape)-1:
			step += 5
		case layout == "columns":
			step++
		}
	}
	if layout == "columns" && len(shape) == 2 {
		strides[0], strides[1] = 1, shape[0]+3
	}
	if layout == "sparse" {
		for i := range strides {
			strides[i] *= 2
		}
	}
	const before = 7
	span := 1
	for i, n := range shape {
		span += (max(n, 1) - 1) * strides[i]
	}
	block := make([]float32, before+span+9)
	for i := range block {
		block[i] = float32(math.NaN())
	}
	flat, err := tensor.FromSlice(block)
	require.NoError(t, err)
	view, err := flat.AsStrided(shape, strides, before)
	require.NoError(t, err)
	values := make([]float64, view.NumElements())
	for i := range values {
		values[i] = float64(float32(r.NormFloat64()))
	}
	require.NoError(t, view.SetFloat64s(values))
	return matrixCase{block: block, tensor: view}
}

// requireGuards fails when an element outside the view is no longer NaN.
func (m matrixCase) requireGuards(t *testing.T) {
	t.Helper()
	nan := 0
	for _, v := range m.block {
		if v != v {
			nan++
		}
	}
	require.Equal(t, len(m.block)-m.tensor.NumElements(), nan, "elements that are NaN around %v", m.tensor)
}

func naiveGelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// naiveGemm computes the op in float64, as its documentation specifies.
func naiveGemm(a gemm.GenericGemmArgs) (d, geluIn, bias []float64) {
	m, n, k := a.Dims()
	av, bv := a.A.Float64s(), a.B.Float64s()
	var added []float64
	if a.Bias != nil && !a.Grad {
		added = a.Bias.Float64s()
	}
	d = make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				bi, ai := i*k+l, l*n+j
				if a.TransB {
					bi = l*m + i
				}
				if a.TransA {
					ai = j*k + l
				}
				d[i*n+j] += bv[bi] * av[ai]
			}
			d[i*n+j] *= float64(a.Alpha.Or(1))
			if added != nil {
				d[i*n+j] += added[j]
			}
		}
	}
	if a.Gelu {
		geluIn = append([]float64(nil), d...)
		if a.Grad {
			geluIn = a.GeluIn.Float64s()
		}
		for i, x := range geluIn {
			if a.Grad {
				const h = 1e-5
				d[i] *= (naiveGelu(x+h) - naiveGelu(x-h)) / (2 * h)
			} else {
				d[i] = naiveGelu(x)
			}
		}
	}
	if beta := float64(a.Beta.Or(1)); a.Accumulate && beta != 0 {
		for i, old := range a.D.Float64s() {
			d[i] += beta * old
		}
	}
	if a.Bias != nil && a.Grad {
		cols := a.B.Shape().Cols()
		bias = make([]float64, cols)
		for i, v := range bv {
			bias[i%cols] += v
		}
	}
	return d, geluIn, bias
}

func requireClose(t *testing.T, want []float64, got *tensor.Tensor, tolerance float64, what string) {
	t.Helper()
	for i, v := range got.Float64s() {
		if math.Abs(v-want[i]) > tolerance*(1+math.Abs(want[i])) || v != v {
			require.Failf(t, "not equal", "%s: element %d of %v is %v, want %v", what, i, got, v, want[i])
		}
	}
}

func TestGemmMatchesFloat64(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	layouts := []string{"dense", "pitch", "columns", "sparse"}
	type result struct{ d, geluIn, bias []float64 }
	wants := map[int]result{} // of the cases, which are the same with all kernels
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		pool := parallel.New(3)
		defer pool.Close()
		e := opregistry.NewExec(pool, 0)
		pick := func(from []int) int { return from[r.IntN(len(from))] }
		edges := []int{0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 31, 32, 33, 64, 65, 96}
		for i := range primustest.Cases(300, 600) {
			m, n, k := 1+r.IntN(130), 1+r.IntN(130), 1+r.IntN(130)
			if i%3 == 0 {
				m, n, k = pick(edges), pick(edges), pick(edges)
			}
			if i%50 == 0 {
				k += 500
			}
			a := gemm.GenericGemmArgs{TransA: i&1 != 0, TransB: i&2 != 0, Accumulate: i&4 != 0, Grad: i&8 != 0, Gelu: r.IntN(3) == 0}
			if r.IntN(2) == 0 {
				a.Alpha = opregistry.Float(-0.75)
			}
			if a.Accumulate && r.IntN(2) == 0 {
				a.Beta = opregistry.Float([]float32{0, 0.5, 1}[r.IntN(3)])
			}
			aShape, bShape := []int{k, n}, []int{m, k}
			if a.TransA {
				aShape = []int{n, k}
			}
			if a.TransB {
				bShape = []int{k, m}
			}
			ac, bc := newMatrix(t, r, layouts[r.IntN(4)], aShape...), newMatrix(t, r, layouts[r.IntN(4)], bShape...)
			dc := newMatrix(t, r, layouts[r.IntN(2)], m, n)
			a.A, a.B, a.D = ac.tensor, bc.tensor, dc.tensor
			written := []matrixCase{dc}
			if a.Gelu {
				gc := newMatrix(t, r, layouts[r.IntN(2)], m, n)
				a.GeluIn = gc.tensor
				written = append(written, gc)
			}
			if r.IntN(2) == 0 {
				length := n
				if a.Grad {
					length = bShape[1]
				}
				bias := newMatrix(t, r, "dense", length)
				a.Bias = bias.tensor
				written = append(written, bias)
			}
			require.NoError(t, gemm.GenericGemm.Validate(a))
			want, known := wants[i]
			if !known {
				want.d, want.geluIn, want.bias = naiveGemm(a)
				wants[i] = want
			}
			what := fmt.Sprintf("case %d: m %d, n %d, k %d, %+v", i, m, n, k, a)
			require.NoError(t, run(e, a), what)
			tolerance := 2e-6 * (4 + math.Sqrt(float64(k)))
			requireClose(t, want.d, a.D, tolerance, what)
			if a.Gelu && !a.Grad {
				requireClose(t, want.geluIn, a.GeluIn, tolerance, what+" gelu_in")
			}
			if want.bias != nil {
				requireClose(t, want.bias, a.Bias, 1e-5*math.Sqrt(float64(bShape[0]+1)), what+" bias")
			}
			for _, w := range written {
				w.requireGuards(t)
			}
		}
	})
}

func TestGemmInSeveralPasses(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	pool := parallel.New(3)
	defer pool.Close()
	for _, tt := range []struct {
		name             string
		m, n, k          int
		transposed, gelu bool
	}{
		{"blocks of the inner axis", 20, 700, 1100, false, false},
		{"blocks of the inner axis, transposed", 20, 700, 1100, true, false},
		{"blocks of the inner axis, both operands in place", 20, 704, 1100, true, false},
		{"and of columns", 4, 8200, 1024, true, false},
		{"columns alone", 4, 1100, 4096, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 9))
			a := gemmArgs(t, r, tt.m, tt.n, tt.k, !tt.transposed, tt.transposed)
			a.Accumulate, a.Bias = true, newMatrix(t, r, "dense", tt.n).tensor
			if a.Gelu = tt.gelu; a.Gelu {
				a.GeluIn = newMatrix(t, r, "dense", tt.m, tt.n).tensor
			}
			require.NoError(t, gemm.GenericGemm.Validate(a))
			want, geluIn, _ := naiveGemm(a)
			require.NoError(t, run(opregistry.NewExec(pool, 0), a))
			tolerance := 2e-6 * (4 + math.Sqrt(float64(tt.k)))
			requireClose(t, want, a.D, tolerance, "D")
			if a.Gelu {
				requireClose(t, geluIn, a.GeluIn, tolerance, "gelu_in")
			}
		})
	}
}

func TestGemmIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	for _, s := range []struct{ m, n, k int }{{300, 200, 700}, {2048, 96, 64}, {97, 333, 513}, {96, 700, 1100}, {1, 512, 512}} {
		for _, transposed := range []bool{false, true} {
			var first []float32
			for _, workers := range []int{1, 2, 3} {
				r := rand.New(rand.NewPCG(4, 4))
				pool := parallel.New(workers)
				a := gemmArgs(t, r, s.m, s.n, s.k, !transposed, transposed)
				bias := newMatrix(t, r, "dense", a.B.Shape().Cols())
				a.Bias, a.Grad = bias.tensor, true
				require.NoError(t, run(opregistry.NewExec(pool, 0), a))
				pool.Close()
				got := append(append([]float32(nil), tensor.Data[float32](a.D)...), tensor.Data[float32](a.Bias)...)
				if first == nil {
					first = got
				}
				assert.Equal(t, first, got, "%v, %d workers", s, workers)
			}
		}
	}
}

// Operands with dense columns are read in place, or packed where their rows lie 4 KiB apart.
func TestGemmGivesTheSameBitsInPlaceAndPacked(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	pool := parallel.New(2)
	defer pool.Close()
	const m, n, k = 45, 112, 600
	apart := func(x *tensor.Tensor) *tensor.Tensor {
		rows, cols := x.Shape()[0], x.Shape()[1]
		flat, err := tensor.FromSlice(make([]float32, rows*1024))
		require.NoError(t, err)
		view, err := flat.AsStrided([]int{rows, cols}, []int{1024, 1}, 0)
		require.NoError(t, err)
		require.NoError(t, view.SetFloat64s(x.Float64s()))
		return view
	}
	a := gemmArgs(t, rand.New(rand.NewPCG(6, 6)), m, n, k, false, true)
	e := opregistry.NewExec(pool, 0)
	require.NoError(t, run(e, a))
	want := append([]float32(nil), tensor.Data[float32](a.D)...)
	right, left := a.A, a.B
	for name, operands := range map[string][2]*tensor.Tensor{
		"right":          {apart(right), left},
		"left":           {right, apart(left)},
		"right and left": {apart(right), apart(left)},
	} {
		a.A, a.B = operands[0], operands[1]
		clear(tensor.Data[float32](a.D))
		require.NoError(t, run(e, a))
		assert.Equal(t, want, tensor.Data[float32](a.D), "%s packed", name)
	}
}

func gemmArgs(t testing.TB, r *rand.Rand, m, n, k int, transA, transB bool) gemm.GenericGemmArgs {
	t.Helper()
	fill := func(rows, cols int) *tensor.Tensor {
		data := make([]float32, rows*cols)
		for i := range data {
			data[i] = float32(r.NormFloat64())
		}
		x, err := tensor.FromSlice(data, rows, cols)
		require.NoError(t, err)
		return x
	}
	a := gemm.GenericGemmArgs{TransA: transA, TransB: transB, D: fill(m, n)}
	if transA {
		a.A = fill(n, k)
	} else {
		a.A = fill(k, n)
	}
	if transB {
		a.B = fill(k, m)
	} else {
		a.B = fill(m, k)
	}
	return a
}

func TestGemmFlattensLeadingAxes(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	r := rand.New(rand.NewPCG(5, 5))
	e := opregistry.NewExec(nil, 0)
	weight, x, y := newMatrix(t, r, "dense", 9, 7), newMatrix(t, r, "pitch", 3, 5, 7), newMatrix(t, r, "pitch", 3, 5, 9)
	a := gemm.GenericGemmArgs{A: weight.tensor, TransA: true, B: x.tensor, D: y.tensor}
	require.NoError(t, gemm.GenericGemm.Validate(a))
	want, _, _ := naiveGemm(a)
	require.NoError(t, run(e, a))
	requireClose(t, want, y.tensor, 1e-5, "3-D operands")
	y.requireGuards(t)
}

func TestGemmDeclinesBeforeWriting(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	r := rand.New(rand.NewPCG(6, 6))
	e := opregistry.NewExec(nil, 0)
	double, err := tensor.FromSlice(make([]float64, 16), 4, 4)
	require.NoError(t, err)
	wide := func(layout string, shape ...int) *tensor.Tensor { return newMatrix(t, r, layout, shape...).tensor }
	tests := []struct {
		name string
		give func(*gemm.GenericGemmArgs)
	}{
		{"double operands", func(a *gemm.GenericGemmArgs) { a.A, a.B = double, double }},
		{"double result", func(a *gemm.GenericGemmArgs) { a.D = double }},
		{"double bias", func(a *gemm.GenericGemmArgs) { a.Bias, _ = tensor.FromSlice(make([]float64, 4)) }},
		{"sparse result", func(a *gemm.GenericGemmArgs) { a.D = wide("sparse", 4, 4) }},
		{"sparse bias", func(a *gemm.GenericGemmArgs) { a.Bias = wide("sparse", 4) }},
		{"uneven rows", func(a *gemm.GenericGemmArgs) { a.B = wide("columns", 2, 2, 4) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := gemm.GenericGemmArgs{A: wide("dense", 4, 4), B: wide("dense", 4, 4), D: wide("dense", 4, 4)}
			tt.give(&a)
			require.NoError(t, gemm.GenericGemm.Validate(a))
			before := a.D.Float64s()
			assert.ErrorIs(t, run(e, a), opregistry.ErrUnsupported)
			assert.Equal(t, before, a.D.Float64s())
		})
	}
}

func TestGemmDoesNotReadWhatItOverwrites(t *testing.T) {
	run := flagosRun(t, gemm.GenericGemm)
	kerneltest.EachFeature(t, func(t *testing.T) {
		for _, n := range []int{3, 64} {
			a := gemmArgs(t, rand.New(rand.NewPCG(7, 7)), n, n, n, false, false)
			want, _, _ := naiveGemm(a)
			d := tensor.Data[float32](a.D)
			for i := range d {
				d[i] = float32(math.NaN())
			}
			require.NoError(t, run(opregistry.NewExec(nil, 0), a))
			requireClose(t, want, a.D, 1e-5, "over NaN")
		}
	})
}

func TestGemmAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	run := flagosRun(t, gemm.GenericGemm)
	for _, workers := range []int{1, 2} {
		pool := parallel.New(workers)
		defer pool.Close()
		e := opregistry.NewExec(pool, 0)
		for _, s := range []struct{ m, n, k int }{{5, 3, 4}, {256, 192, 300}} {
			r := rand.New(rand.NewPCG(8, 8))
			a := gemmArgs(t, r, s.m, s.n, s.k, true, false)
			a.Gelu, a.GeluIn, a.Accumulate = true, newMatrix(t, r, "dense", s.m, s.n).tensor, true
			a.Bias = newMatrix(t, r, "dense", s.n).tensor
			assert.Zero(t, testing.AllocsPerRun(20, func() { _ = run(e, a) }), "%+v, %d workers", s, workers)
			a.Grad, a.Bias = true, newMatrix(t, r, "dense", s.k).tensor
			assert.Zero(t, testing.AllocsPerRun(20, func() { _ = run(e, a) }), "%+v grad, %d workers", s, workers)
		}
	}
}
