package blastest

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// Gemm is an implementation of generic_gemm.
type Gemm = opregistry.Func[gemm.GenericGemmArgs]

// Differential compares gemm with float64 loops in random calls whose sizes are at least minSize.
// gemm must not decline any of them.
func Differential(t *testing.T, gemm Gemm, cases, minSize int) {
	t.Helper()
	differential(t, gemm, cases, func(r *rand.Rand) *problem { return newProblem(t, r, minSize) })
}

// DifferentialBF16 is Differential with A and B in bf16.
func DifferentialBF16(t *testing.T, gemm Gemm, cases, minSize int) {
	t.Helper()
	differential(t, gemm, cases, func(r *rand.Rand) *problem {
		p := newProblem(t, r, minSize)
		p.narrow(t)
		return p
	})
}

func differential(t *testing.T, gemm Gemm, cases int, next func(*rand.Rand) *problem) {
	t.Helper()
	r := rand.New(rand.NewPCG(2, 14))
	exec := []*opregistry.Exec{opregistry.NewExec(nil, 0), opregistry.NewExec(spread{}, 0)}
	for i := range cases {
		p := next(r)
		require.NoError(t, gemm(exec[i%2], p.args), p)
		p.compare(t)
	}
}

// unit is the relative rounding error of one f32 operation.
const unit = 1.0 / (1 << 24)

// compare checks what was written against float64 sums, and that everything else is unchanged.
func (p *problem) compare(t *testing.T) {
	t.Helper()
	a := p.args
	opA, opB := viewOf(p.before[0], a.A.Strides(), a.TransA), viewOf(p.before[1], a.B.Strides(), a.TransB)
	pitch := a.D.Strides()[0]
	forward := a.Bias != nil && !a.Grad
	written := map[int]bool{}
	for i := range p.m {
		for j := range p.n {
			sum, size := dot(opB, i, opA, j, p.k)
			sum, size = p.alpha*sum, math.Abs(p.alpha)*size
			if forward {
				bias := float64(p.before[3][3+j])
				sum, size = sum+bias, size+math.Abs(bias)
			}
			where := 3 + i*pitch + j
			if p.beta != 0 {
				old := p.beta * float64(p.before[2][where])
				sum, size = sum+old, size+math.Abs(old)
			}
			written[where] = true
			within(t, p, "D", i, j, p.buffers[2][where], sum, float64(p.k+6)*unit*size)
		}
	}
	p.untouched(t, 2, written)
	p.untouched(t, 0, nil)
	p.untouched(t, 1, nil)

	written = map[int]bool{}
	if a.Bias != nil && a.Grad {
		raw := viewOf(p.before[1], a.B.Strides(), false)
		for j := range a.B.Shape().Cols() {
			var sum, size float64
			for i := range a.B.Shape().Rows() {
				sum += raw.at(i, j)
				size += math.Abs(raw.at(i, j))
			}
			written[3+j] = true
			within(t, p, "bias", 0, j, p.buffers[3][3+j], sum, 70*unit*size)
		}
	}
	p.untouched(t, 3, written)
}

// view is op(X) for a matrix X that operand made.
type view struct {
	buf      []float32
	row, col int // strides
}

func viewOf(buf []float32, strides []int, transposed bool) view {
	pitch := strides[len(strides)-2]
	if transposed {
		return view{buf[3:], 1, pitch}
	}
	return view{buf[3:], pitch, 1}
}

func (v view) at(i, j int) float64 { return float64(v.buf[i*v.row+j*v.col]) }

// dot returns Σ_l x[i,l]·y[l,j] and the sum of the magnitudes of its terms. The race detector has
// nothing to find here and would take most of a test's time.
//
//go:norace
func dot(x view, i int, y view, j, k int) (sum, size float64) {
	for l := range k {
		term := float64(x.buf[i*x.row+l*x.col]) * float64(y.buf[l*y.row+j*y.col])
		sum += term
		size += math.Abs(term)
	}
	return sum, size
}

func within(t *testing.T, p *problem, name string, i, j int, got float32, want, bound float64) {
	t.Helper()
	if diff := math.Abs(float64(got) - want); !(diff <= bound) {
		t.Fatalf("%s[%d,%d]: got %v, want %v within %v\n%v", name, i, j, got, want, bound, p)
	}
}

// untouched checks the elements of a buffer that are not written.
func (p *problem) untouched(t *testing.T, buffer int, written map[int]bool) {
	t.Helper()
	for i, v := range p.buffers[buffer] {
		if !written[i] && math.Float32bits(v) != math.Float32bits(p.before[buffer][i]) {
			t.Fatalf("buffer %d: element %d changed from %v to %v\n%v", buffer, i, p.before[buffer][i], v, p)
		}
	}
}

// spread is a pool that runs every part on its own goroutine.
type spread struct{}

func (spread) Workers() int { return 4 }

func (spread) Run(parts int, task opregistry.Task) {
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() { task.Do(part) })
	}
	wg.Wait()
}
