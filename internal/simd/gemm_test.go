package simd_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat/cpufeattest"
	"github.com/primus-fl/primus/internal/simd"
)

// eachKernel runs f with every kernel of this machine.
func eachKernel(t *testing.T, f func(t *testing.T, kernel simd.Kernel)) {
	t.Helper()
	cpufeattest.Each(t, func(t *testing.T) {
		widest, dividing := simd.BestKernel(0), simd.BestKernel(32)
		require.Zero(t, 32%dividing.NR)
		f(t, widest)
		if dividing != widest {
			f(t, dividing)
		}
	})
}

func TestKernelMatchesFloat64OnEveryEdge(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel simd.Kernel) {
		require.LessOrEqual(t, kernel.MR, simd.MaxMR)
		require.LessOrEqual(t, kernel.NR, simd.MaxNR)
		r := rand.New(rand.NewPCG(1, 1))
		for _, layout := range []struct{ row, step int }{{41, 1}, {1, kernel.MR + 3}} {
			for _, k := range []int{0, 1, 2, 3, 17, 40} {
				a := newOperand(r, 1, (kernel.MR-1)*layout.row+max(k-1, 0)*layout.step+1)
				b := newOperand(r, 0, k*kernel.NR)
				for rows := 1; rows <= kernel.MR; rows++ {
					for cols := 1; cols <= kernel.NR; cols++ {
						alpha, beta := float32(1), float32(0)
						if (rows+cols)%2 == 0 {
							alpha, beta = 0.5, -1.5
						}
						crow := cols + rows%3
						c := newOperand(r, 5, (rows-1)*crow+cols)
						before := append([]float32(nil), c.data...)
						kernel.Run(&simd.Tile{
							A: a.data, ARow: layout.row, AStep: layout.step, B: b.data, C: c.data, CRow: crow,
							Ahead: b.data[:cols%2*len(b.data)], K: k, Rows: rows, Cols: cols, Alpha: alpha, Beta: beta,
						})
						for i, got := range c.data {
							row, col := i/crow, i%crow
							want := float64(before[i])
							if col < cols {
								sum := 0.0
								for s := range k {
									sum += float64(a.data[row*layout.row+s*layout.step]) * float64(b.data[s*kernel.NR+col])
								}
								want = float64(alpha)*sum + float64(beta)*want
							}
							require.InDelta(t, want, got, 1e-5, "k %d, tile %d×%d, row %d, column %d", k, rows, cols, row, col)
						}
						c.requireGuards(t)
					}
				}
			}
		}
	})
}

func TestKernelGivesEachElementTheSameBitsAnywhereInTheTile(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel simd.Kernel) {
		r := rand.New(rand.NewPCG(2, 2))
		const k = 37
		a, b := newOperand(r, 0, kernel.MR*k), newOperand(r, 0, kernel.NR*k)
		run := func(rows, cols int, beta float32) []float32 {
			c := make([]float32, kernel.MR*kernel.NR)
			for i := range c {
				c[i] = float32(i)
			}
			kernel.Run(&simd.Tile{
				A: a.data, ARow: k, AStep: 1, B: b.data, C: c, CRow: kernel.NR,
				K: k, Rows: rows, Cols: cols, Alpha: 1, Beta: beta,
			})
			return c
		}
		whole := run(kernel.MR, kernel.NR, 0)
		for rows := 1; rows <= kernel.MR; rows++ {
			for cols := 1; cols <= kernel.NR; cols++ {
				part := run(rows, cols, 0)
				for row := range rows {
					require.Equal(t, whole[row*kernel.NR:][:cols], part[row*kernel.NR:][:cols])
				}
			}
		}
	})
}

func TestKernelPanicsOnWrongTiles(t *testing.T) {
	kernel := simd.BestKernel(0)
	whole := func() simd.Tile {
		return simd.Tile{
			A: make([]float32, kernel.MR*8), ARow: 8, AStep: 1, B: make([]float32, 8*kernel.NR),
			C: make([]float32, kernel.MR*kernel.NR), CRow: kernel.NR,
			K: 8, Rows: kernel.MR, Cols: kernel.NR, Alpha: 1,
		}
	}
	ok := whole()
	kernel.Run(&ok)
	for name, spoil := range map[string]func(*simd.Tile){
		"a":    func(t *simd.Tile) { t.A = t.A[1:] },
		"b":    func(t *simd.Tile) { t.B = t.B[1:] },
		"c":    func(t *simd.Tile) { t.C = t.C[1:] },
		"step": func(t *simd.Tile) { t.A, t.AStep = make([]float32, 1000), 2 },
		"rows": func(t *simd.Tile) { t.Rows = kernel.MR + 1 },
		"cols": func(t *simd.Tile) { t.Cols = 0 },
	} {
		tile := whole()
		spoil(&tile)
		assert.Panics(t, func() { kernel.Run(&tile) }, name)
	}
}

func TestKernelAllocatesNothing(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel simd.Kernel) {
		a, b, c := make([]float32, kernel.MR*8), make([]float32, 8*kernel.NR), make([]float32, kernel.MR*kernel.NR)
		rows := 1
		assert.Zero(t, testing.AllocsPerRun(20, func() {
			kernel.Run(&simd.Tile{A: a, ARow: 8, AStep: 1, B: b, C: c, CRow: kernel.NR, K: 8, Rows: rows, Cols: kernel.NR, Alpha: 1})
			rows = rows%kernel.MR + 1
		}))
	})
}

func BenchmarkKernel(b *testing.B) {
	kernel := simd.BestKernel(0)
	for _, k := range []int{32, 64, 192, 256, 384} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			tile := simd.Tile{
				A: make([]float32, kernel.MR*(k+16)), ARow: k + 16, AStep: 1, B: make([]float32, k*kernel.NR),
				C: make([]float32, kernel.MR*kernel.NR), CRow: kernel.NR,
				K: k, Rows: kernel.MR, Cols: kernel.NR, Alpha: 1,
			}
			for b.Loop() {
				kernel.Run(&tile)
			}
			flop := 2 * float64(k*kernel.MR*kernel.NR)
			b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}
