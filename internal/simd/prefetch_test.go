package simd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/simd"
)

func TestPrefetchChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for rows := range 4 {
		for cols := range 40 {
			src := newOperand(r, cols%16, max(rows*(cols+3), 1))
			want := append([]float32(nil), src.data...)
			simd.Prefetch(src.data, cols+3, rows, cols)
			require.Equal(t, want, src.data, "%d×%d", rows, cols)
			src.requireGuards(t)
		}
	}
}

func TestPrefetchOfTooLittle(t *testing.T) {
	assert.NotPanics(t, func() { simd.Prefetch(nil, 1, 0, 3) })
	assert.Panics(t, func() { simd.Prefetch(make([]float32, 8), 5, 2, 4) })
	assert.Panics(t, func() { simd.Prefetch(make([]float32, 8), -1, 2, 4) })
}
