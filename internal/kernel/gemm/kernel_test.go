package gemm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachKernel runs f with every kernel of this machine.
func eachKernel(t *testing.T, f func(t *testing.T, kernel gemm.Kernel)) {
	t.Helper()
	kerneltest.EachFeature(t, func(t *testing.T) {
		widest, dividing := gemm.BestKernel(0), gemm.BestKernel(32)
		require.Zero(t, 32%dividing.NR)
		f(t, widest)
		if dividing != widest {
			f(t, dividing)
		}
	})
}

func TestKernelMatchesFloat64OnEveryEdge(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel gemm.Kernel) {
		require.LessOrEqual(t, kernel.MR, gemm.MaxMR)
		require.LessOrEqual(t, kernel.NR, gemm.MaxNR)
		r := rand.New(rand.NewPCG(1, 1))
		for _, layout := range []struct{ row, step, bStep int }{{41, 1, kernel.NR}, {1, kernel.MR + 3, kernel.NR}, {41, 1, kernel.NR + 5}} {
			for _, k := range []int{0, 1, 2, 3, 17, 40} {
				a := kerneltest.NewOperand(r, 1, (kernel.MR-1)*layout.row+max(k-1, 0)*layout.step+1)
				b := kerneltest.NewOperand(r, 0, max((k-1)*layout.bStep, 0)+kernel.NR)
				for rows := 1; rows <= kernel.MR; rows++ {
					for cols := 1; cols <= kernel.NR; cols++ {
						alpha, beta := float32(1), float32(0)
						if (rows+cols)%2 == 0 {
							alpha, beta = 0.5, -1.5
						}
						crow := cols + rows%3
						c := kerneltest.NewOperand(r, 5, (rows-1)*crow+cols)
						before := append([]float32(nil), c.Data...)
						kernel.Run(&gemm.Tile{
							A: a.Data, ARow: layout.row, AStep: layout.step, B: b.Data, BStep: layout.bStep, C: c.Data, CRow: crow,
							Ahead: b.Data[:cols%2*len(b.Data)], K: k, Rows: rows, Cols: cols, Alpha: alpha, Beta: beta,
						})
						for i, got := range c.Data {
							row, col := i/crow, i%crow
							want := float64(before[i])
							if col < cols {
								sum := 0.0
								for s := range k {
									sum += float64(a.Data[row*layout.row+s*layout.step]) * float64(b.Data[s*layout.bStep+col])
								}
								want = float64(alpha)*sum + float64(beta)*want
							}
							require.InDelta(t, want, got, 1e-5, "k %d, tile %d×%d, row %d, column %d", k, rows, cols, row, col)
						}
						c.RequireGuards(t)
					}
				}
			}
		}
	})
}

func TestKernelGivesEachElementTheSameBitsAnywhereInTheTile(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel gemm.Kernel) {
		r := rand.New(rand.NewPCG(2, 2))
		const k = 37
		a, b := kerneltest.NewOperand(r, 0, kernel.MR*k), kerneltest.NewOperand(r, 0, kernel.NR*k)
		run := func(rows, cols int, beta float32) []float32 {
			c := make([]float32, kernel.MR*kernel.NR)
			for i := range c {
				c[i] = float32(i)
			}
			kernel.Run(&gemm.Tile{
				A: a.Data, ARow: k, AStep: 1, B: b.Data, BStep: kernel.NR, C: c, CRow: kernel.NR,
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

// A tile at the end of an operand that is not packed has nothing after its last step but the
// columns up to the next multiple of ReadCols.
func TestKernelReadsNoColumnsFromTheNextMultipleOn(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel gemm.Kernel) {
		const k = 5
		a := kerneltest.NewOperand(rand.New(rand.NewPCG(4, 4)), 0, kernel.MR*k)
		for cols := 1; cols <= kernel.NR; cols++ {
			read := min((cols+gemm.ReadCols-1)/gemm.ReadCols*gemm.ReadCols, kernel.NR)
			tile := gemm.Tile{
				A: a.Data, ARow: k, AStep: 1, B: make([]float32, (k-1)*100+read), BStep: 100,
				C: make([]float32, kernel.MR*kernel.NR), CRow: kernel.NR, K: k, Rows: kernel.MR, Cols: cols, Alpha: 1,
			}
			assert.NotPanics(t, func() { kernel.Run(&tile) }, "%d columns", cols)
			tile.B = tile.B[1:]
			assert.Panics(t, func() { kernel.Run(&tile) }, "%d columns", cols)
		}
	})
}

func TestKernelPanicsOnWrongTiles(t *testing.T) {
	kernel := gemm.BestKernel(0)
	whole := func() gemm.Tile {
		return gemm.Tile{
			A: make([]float32, kernel.MR*8), ARow: 8, AStep: 1, B: make([]float32, 8*kernel.NR), BStep: kernel.NR,
			C: make([]float32, kernel.MR*kernel.NR), CRow: kernel.NR,
			K: 8, Rows: kernel.MR, Cols: kernel.NR, Alpha: 1,
		}
	}
	ok := whole()
	kernel.Run(&ok)
	for name, spoil := range map[string]func(*gemm.Tile){
		"a":    func(t *gemm.Tile) { t.A = t.A[1:] },
		"b":    func(t *gemm.Tile) { t.B = t.B[1:] },
		"c":    func(t *gemm.Tile) { t.C = t.C[1:] },
		"step": func(t *gemm.Tile) { t.A, t.AStep = make([]float32, 1000), 2 },
		"back": func(t *gemm.Tile) { t.BStep = -1 },
		"rows": func(t *gemm.Tile) { t.Rows = kernel.MR + 1 },
		"cols": func(t *gemm.Tile) { t.Cols = 0 },
	} {
		tile := whole()
		spoil(&tile)
		assert.Panics(t, func() { kernel.Run(&tile) }, name)
	}
}

func TestKernelAllocatesNothing(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel gemm.Kernel) {
		a, b, c := make([]float32, kernel.MR*8), make([]float32, 8*kernel.NR), make([]float32, kernel.MR*kernel.NR)
		rows := 1
		assert.Zero(t, testing.AllocsPerRun(20, func() {
			kernel.Run(&gemm.Tile{A: a, ARow: 8, AStep: 1, B: b, BStep: kernel.NR, C: c, CRow: kernel.NR, K: 8, Rows: rows, Cols: kernel.NR, Alpha: 1})
			rows = rows%kernel.MR + 1
		}))
	})
}

func BenchmarkKernel(b *testing.B) {
	kernel := gemm.BestKernel(0)
	for _, k := range []int{32, 64, 192, 256, 384} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			tile := gemm.Tile{
				A: make([]float32, kernel.MR*(k+16)), ARow: k + 16, AStep: 1, B: make([]float32, k*kernel.NR), BStep: kernel.NR,
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
