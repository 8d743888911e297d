package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpreadOfEverySmallShape(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 4))
		for _, width := range []int{1, 4, 6, 12, 16, 17, 32, 40} {
			for rows := 1; rows <= 19; rows += 1 + rows/4 {
				for cols := 1; cols <= 3*width+1; cols += 1 + cols/7 {
					srcRow, panel := cols+rows%5, rows*width+cols%3
					panels := (cols + width - 1) / width
					src := kerneltest.NewOperand(r, rows%16, (rows-1)*srcRow+cols)
					dst := kerneltest.NewOperand(r, cols%16, (panels-1)*panel+rows*width)
					want := append([]float32(nil), dst.Data...)
					for p := range panels {
						for i := range rows * width {
							want[p*panel+i] = 0
							if c := p*width + i%width; c < cols {
								want[p*panel+i] = src.Data[i/width*srcRow+c]
							}
						}
					}
					gemm.Spread(dst.Data, panel, width, src.Data, srcRow, rows, cols)
					require.Equal(t, want, dst.Data, "%d×%d to panels of %d", rows, cols, width)
					dst.RequireGuards(t)
				}
			}
		}
	})
}

func TestSpreadOfNothing(t *testing.T) {
	assert.NotPanics(t, func() {
		gemm.Spread(nil, 1, 4, nil, 1, 0, 5)
		gemm.Spread(nil, 1, 4, nil, 1, 5, 0)
	})
	assert.Panics(t, func() { gemm.Spread(make([]float32, 7), 4, 4, make([]float32, 5), 5, 1, 5) })
	assert.Panics(t, func() { gemm.Spread(make([]float32, 8), 4, 4, make([]float32, 4), 5, 1, 5) })
}
