package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTransposeOfEverySmallShape(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 3))
		for rows := 1; rows <= 50; rows++ {
			for cols := 1; cols <= 21; cols++ {
				srcRow, dstRow := cols+rows%5, rows+cols%3
				src := kerneltest.NewOperand(r, rows%16, (rows-1)*srcRow+cols)
				dst := kerneltest.NewOperand(r, cols%16, (cols-1)*dstRow+rows)
				before := append([]float32(nil), dst.Data...)
				gemm.Transpose(dst.Data, dstRow, src.Data, srcRow, rows, cols)
				for i, got := range dst.Data {
					want := before[i]
					if c, row := i/dstRow, i%dstRow; row < rows {
						want = src.Data[row*srcRow+c]
					}
					require.Equal(t, want, got, "%d×%d at %d", rows, cols, i)
				}
				dst.RequireGuards(t)
			}
		}
	})
}

func TestTransposeOfNothing(t *testing.T) {
	assert.NotPanics(t, func() {
		gemm.Transpose(nil, 1, nil, 1, 0, 5)
		gemm.Transpose(nil, 1, nil, 1, 5, 0)
	})
	assert.Panics(t, func() { gemm.Transpose(make([]float32, 5), 2, make([]float32, 6), 3, 2, 3) })
}
