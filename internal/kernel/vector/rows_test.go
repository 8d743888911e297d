package vector_test

import (
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDotRowsHasTheBitsOfDot(t *testing.T) {
	const rows, nan16 = 3, 0x7fff // in both forms
	for _, c := range conversions {
		t.Run(c.name, func(t *testing.T) {
			narrowRows := vector.DotRowsBF16
			if c.name == "f16" {
				narrowRows = vector.DotRowsF16
			}
			kerneltest.EachFeature(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(6, 7))
				kerneltest.EachShape(func(n, offset int) {
					pitch := n + offset%3
					x, dst := kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*5+1)%16, rows)
					wide, narrow := make([]float32, offset+rows*pitch)[offset:], make([]uint16, offset+rows*pitch+1)[offset:]
					for i := range narrow {
						narrow[i] = nan16 // between rows and after them
					}
					want := make([]float32, rows)
					for i := range rows {
						row := kerneltest.NewOperand(r, 0, n).Data
						c.narrow(narrow[i*pitch:], row)
						c.widen(wide[i*pitch:], narrow[i*pitch:][:n])
						want[i] = vector.Dot(x.Data, wide[i*pitch:][:n])
					}
					vector.DotRows(dst.Data, x.Data, wide, pitch)
					require.Equal(t, want, dst.Data, "f32, rows of %d at %d", n, offset)
					clear(dst.Data)
					narrowRows(dst.Data, x.Data, narrow, pitch)
					require.Equal(t, want, dst.Data, "rows of %d at %d", n, offset)
					dst.RequireGuards(t)
					narrowRows(nil, x.Data, nil, pitch)
				})
			})
		})
	}
	assert.Panics(t, func() { vector.DotRows(make([]float32, 2), make([]float32, 4), make([]float32, 8), 5) })
	assert.Panics(t, func() { vector.DotRowsBF16(make([]float32, 2), make([]float32, 4), make([]uint16, 7), 4) })
}

func TestDotTileHasTheBitsOfDot(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		vectors := vector.TileVector()
		if vectors == 0 {
			t.Skip("the CPU has no instructions for tiles")
		}
		r := rand.New(rand.NewPCG(12, 13))
		for n := 0; n <= 11*vectors; n += vectors {
			for offset := range 3 {
				xPitch, yPitch := n+offset, n+5*offset
				x, y := kerneltest.NewOperand(r, offset, vector.TileX*xPitch), kerneltest.NewOperand(r, offset+1, vector.TileY*yPitch)
				var dst, want vector.TileProducts
				for i := range vector.TileX {
					for j := range vector.TileY {
						want[vector.TileX*j+i] = vector.Dot(x.Data[i*xPitch:][:n], y.Data[j*yPitch:][:n])
					}
				}
				vector.DotTile(&dst, new(vector.TileSums), x.Data, xPitch, y.Data, yPitch, n)
				require.Equal(t, want, dst, "rows of %d at %d", n, offset)
			}
		}
		assert.Panics(t, func() {
			vector.DotTile(new(vector.TileProducts), new(vector.TileSums), make([]float32, 99), 33, make([]float32, 132), 33, 33)
		})
		assert.Panics(t, func() {
			vector.DotTile(new(vector.TileProducts), new(vector.TileSums), make([]float32, 95), 32, make([]float32, 128), 32, 32)
		})
	})
}

func TestAxpyRowsHasTheBitsOfAxpy(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 9))
		kerneltest.EachShape(func(n, offset int) {
			for _, rows := range []int{0, 1, 5} {
				pitch := n + offset%3
				dst, a, y := kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, (offset*5+1)%16, rows), kerneltest.NewOperand(r, 3, rows*pitch)
				want := append([]float32(nil), dst.Data...)
				for i, v := range a.Data {
					vector.Axpy(v, y.Data[i*pitch:][:n], want)
				}
				vector.AxpyRows(dst.Data, a.Data, y.Data, pitch)
				if n > 0 {
					require.Equal(t, want, dst.Data, "%d rows of %d at %d", rows, n, offset)
				}
				dst.RequireGuards(t)
			}
		})
	})
	assert.Panics(t, func() { vector.AxpyRows(make([]float32, 4), make([]float32, 2), make([]float32, 8), 5) })
}

func TestSumRowsHasTheBitsOfAxpy(t *testing.T) {
	const all = 7
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 11))
		kerneltest.EachShape(func(n, offset int) {
			n *= 1 + offset%4 // up to some blocks of columns
			for _, rows := range [][]int32{nil, {3}, {6, 0, 6, 2, 5}} {
				for _, weights := range []int{1, len(rows)} {
					pitch := n + offset%3
					dst, w, y := kerneltest.NewOperand(r, offset, n), kerneltest.NewOperand(r, 1, weights), kerneltest.NewOperand(r, 3, all*pitch)
					want := make([]float32, n)
					for i, row := range rows {
						weight := w.Data[i%weights]
						if from := y.Data[int(row)*pitch:][:n]; i == 0 {
							vector.Scale(weight, want, from)
						} else {
							vector.Axpy(weight, from, want)
						}
					}
					vector.SumRows(dst.Data, w.Data, y.Data, pitch, rows)
					if n > 0 {
						require.Equal(t, want, dst.Data, "%d rows of %d at %d", len(rows), n, offset)
					}
					dst.RequireGuards(t)
				}
			}
		})
	})
	one, y := []float32{1}, make([]float32, 8)
	for _, rows := range [][]int32{{2}, {-1}} {
		assert.Panics(t, func() { vector.SumRows(make([]float32, 4), one, y, 4, rows) }, "rows %d", rows)
	}
	assert.Panics(t, func() { vector.SumRows(make([]float32, 4), make([]float32, 2), y, 4, []int32{0, 1, 1}) })
}
