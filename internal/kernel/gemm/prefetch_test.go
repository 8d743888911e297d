package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
)

func TestPrefetchChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for rows := range 4 {
		for cols := range 40 {
			src := kerneltest.NewOperand(r, cols%16, max(rows*(cols+3), 1))
			want := append([]float32(nil), src.Data...)
			gemm.Prefetch(src.Data, cols+3, rows, cols)
			require.Equal(t, want, src.Data, "%d×%d", rows, cols)
			src.RequireGuards(t)
		}
	}
}

func TestPrefetchOfTooLittle(t *testing.T) {
	assert.NotPanics(t, func() { gemm.Prefetch(nil, 1, 0, 3) })
	assert.Panics(t, func() { gemm.Prefetch(make([]float32, 8), 5, 2, 4) })
	assert.Panics(t, func() { gemm.Prefetch(make([]float32, 8), -1, 2, 4) })
}
