package gemm_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
)

// pairs returns n random pairs of bfloat16, with guards, and the numbers.
func pairs(r *rand.Rand, offset, n int) (operand kerneltest.Operand, values []float64) {
	operand = kerneltest.NewOperand(r, offset, n)
	for i := range operand.Data {
		low, high := math.Float32bits(float32(r.NormFloat64()))>>16, math.Float32bits(float32(r.NormFloat64()))>>16
		operand.Data[i] = math.Float32frombits(low | high<<16)
		values = append(values, float64(math.Float32frombits(low<<16)), float64(math.Float32frombits(high<<16)))
	}
	return operand, values
}

func TestPairKernelMatchesFloat64OnEveryEdge(t *testing.T) {
	kernel, ok := gemm.PairKernel()
	if !ok {
		t.Skip("this CPU has no instructions for bfloat16")
	}
	r := rand.New(rand.NewPCG(3, 3))
	for _, layout := range []struct{ row, step int }{{41, 1}, {1, kernel.MR + 3}} {
		for _, k := range []int{0, 1, 2, 3, 17, 40} {
			a, left := pairs(r, 1, (kernel.MR-1)*layout.row+max(k-1, 0)*layout.step+1)
			b, right := pairs(r, 0, k*kernel.NR)
			for rows := 1; rows <= kernel.MR; rows++ {
				for cols := 1; cols <= kernel.NR; cols++ {
					crow := cols + rows%3
					c := kerneltest.NewOperand(r, 5, (rows-1)*crow+cols)
					before := append([]float32(nil), c.Data...)
					kernel.Run(&gemm.Tile{
						A: a.Data, ARow: layout.row, AStep: layout.step, B: b.Data, BStep: kernel.NR, C: c.Data, CRow: crow,
						Ahead: b.Data[:cols%2*len(b.Data)], K: k, Rows: rows, Cols: cols, Alpha: 0.5, Beta: float32(rows%2) * -1.5,
					})
					for i, got := range c.Data {
						row, col := i/crow, i%crow
						want := float64(before[i])
						if col < cols {
							sum := 0.0
							for s := range 2 * k {
								sum += left[2*(row*layout.row+s/2*layout.step)+s%2] * right[2*(s/2*kernel.NR+col)+s%2]
							}
							want = 0.5*sum + float64(rows%2)*-1.5*want
						}
						require.InDelta(t, want, got, 1e-4, "k %d, tile %d×%d, row %d, column %d", k, rows, cols, row, col)
					}
					c.RequireGuards(t)
				}
			}
		}
	}
}

func TestInterleave(t *testing.T) {
	eachKernel(t, func(t *testing.T, _ gemm.Kernel) {
		for n := range 68 {
			a, b := make([]uint16, n), make([]uint16, n)
			for i := range n {
				a[i], b[i] = uint16(i*257+1), uint16(0xffff-i*3)
			}
			dst := kerneltest.NewOperand(rand.New(rand.NewPCG(1, 1)), 3, n)
			gemm.Interleave(dst.Data, a, b)
			for i, pair := range dst.Data {
				require.Equal(t, uint32(a[i])|uint32(b[i])<<16, math.Float32bits(pair))
			}
			dst.RequireGuards(t)
		}
	})
	assert.Panics(t, func() { gemm.Interleave(make([]float32, 3), make([]uint16, 2), make([]uint16, 3)) })
}
