package blastest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// canary fills the memory between rows, which must not change.
const canary = float32(-12345.5)

// problem is one call with copies of its operands.
type problem struct {
	args          gemm.GenericGemmArgs
	buffers       [4][]float32 // A, B, D and bias, with the memory between rows
	before        [4][]float32
	m, n, k, lead int
	alpha, beta   float64
}

// newProblem makes a random call; the product has at least this size.
func newProblem(t *testing.T, r *rand.Rand, minSize int) *problem {
	p := &problem{
		m: minSize + r.IntN(70), n: minSize + r.IntN(70), k: minSize + r.IntN(70),
		lead: 1, alpha: 1,
	}
	if r.IntN(4) == 0 {
		p.lead = 1 + r.IntN(3)
	}
	a := &p.args
	a.TransA, a.TransB = r.IntN(2) == 0, r.IntN(2) == 0
	if a.TransB {
		p.k *= p.lead // rows of B
	} else {
		p.m *= p.lead
	}
	a.A, p.buffers[0] = operand(t, r, 1, p.k, p.n, a.TransA)
	a.B, p.buffers[1] = operand(t, r, p.lead, p.m, p.k, a.TransB)
	a.D, p.buffers[2] = operand(t, r, 1, p.m, p.n, false)
	if r.IntN(2) == 0 {
		p.alpha = r.Float64()*4 - 2
		a.Alpha = opregistry.Float(float32(p.alpha))
		p.alpha = float64(float32(p.alpha))
	}
	if r.IntN(2) == 0 {
		a.Accumulate, p.beta = true, 1
		switch r.IntN(3) {
		case 0:
			p.beta = 0.5
		case 1:
			p.beta = 0
		}
		if p.beta != 1 {
			a.Beta = opregistry.Float(float32(p.beta))
		}
	}
	if p.beta == 0 {
		for i, v := range p.buffers[2] {
			if v != canary {
				p.buffers[2][i] = float32(math.NaN()) // D is not read
			}
		}
	}
	if r.IntN(2) == 0 {
		a.Grad = r.IntN(2) == 0
		size := p.n
		if a.Grad {
			size = a.B.Shape().Cols()
		}
		a.Bias, p.buffers[3] = operand(t, r, 1, 1, size, false)
		if !a.Bias.IsContiguous() {
			t.Fatalf("BUG: bias %v", a.Bias)
		}
	}
	require.NoError(t, gemm.GenericGemm.Validate(*a))
	for i, b := range p.buffers {
		p.before[i] = append([]float32(nil), b...)
	}
	return p
}

// operand makes a matrix of rows×cols, or its transpose, in a buffer with canaries around it and,
// by chance, between the rows. The rows are split into lead blocks along one more axis.
func operand(t *testing.T, r *rand.Rand, lead, rows, cols int, transposed bool) (*tensor.Tensor, []float32) {
	if transposed {
		rows, cols = cols, rows
	}
	pitch, offset := cols, 3
	if rows > 1 && r.IntN(2) == 0 {
		pitch += 1 + r.IntN(9)
	}
	buf := make([]float32, offset+rows*pitch+5)
	for i := range buf {
		buf[i] = canary
	}
	for i := range rows {
		for j := range cols {
			buf[offset+i*pitch+j] = float32(r.NormFloat64())
		}
	}
	all, err := tensor.FromSlice(buf)
	require.NoError(t, err)
	shape, strides := []int{rows, cols}, []int{pitch, 1}
	if lead > 1 {
		shape, strides = []int{lead, rows / lead, cols}, []int{rows / lead * pitch, pitch, 1}
	}
	view, err := all.AsStrided(shape, strides, offset)
	require.NoError(t, err)
	return view, buf
}

// narrow makes A and B bf16; the buffers keep their values in f32.
func (p *problem) narrow(t *testing.T) {
	for i, x := range []**tensor.Tensor{&p.args.A, &p.args.B} {
		elements := make([]tensor.BFloat16, len(p.buffers[i]))
		for k, v := range p.buffers[i] {
			elements[k] = tensor.ToBFloat16(v)
			p.buffers[i][k] = elements[k].Float32()
		}
		p.before[i] = append([]float32(nil), p.buffers[i]...)
		all, err := tensor.FromSlice(elements)
		require.NoError(t, err)
		*x, err = all.AsStrided((*x).Shape(), (*x).Strides(), 3)
		require.NoError(t, err)
	}
	require.NoError(t, gemm.GenericGemm.Validate(p.args))
}

// String describes the call.
func (p *problem) String() string {
	a := p.args
	return fmt.Sprintf("%d×%d×%d A=%v transposed=%t B=%v transposed=%t D=%v bias=%v grad=%t accumulate=%t alpha=%v beta=%v",
		p.m, p.n, p.k, a.A, a.TransA, a.B, a.TransB, a.D, a.Bias, a.Grad, a.Accumulate, p.alpha, p.beta)
}
