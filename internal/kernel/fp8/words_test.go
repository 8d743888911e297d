package fp8_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/kerneltest"
)

func TestTransposeWords(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 200 {
			rows, cols := r.IntN(20), r.IntN(20)
			srcPitch, dstPitch := 8*cols+r.IntN(10), 8*rows+r.IntN(10)
			src, got := make([]byte, rows*srcPitch), make([]byte, cols*dstPitch)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			want := make([]byte, len(got))
			for row := range rows {
				for col := range cols {
					copy(want[col*dstPitch+8*row:][:8], src[row*srcPitch+8*col:])
				}
			}
			fp8.TransposeWords(got, dstPitch, src, srcPitch, rows, cols)
			require.Equal(t, want, got, "%d rows of %d", rows, cols)
		}
	})
	assert.Panics(t, func() { fp8.TransposeWords(make([]byte, 127), 64, make([]byte, 128), 16, 8, 2) })
	assert.Panics(t, func() { fp8.TransposeWords(make([]byte, 128), 64, make([]byte, 127), 16, 8, 2) })
}

func TestCopy(t *testing.T) {
	kerneltest.EachFeature(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for range 200 {
			rows, n := r.IntN(5), r.IntN(200)
			srcPitch, dstPitch := n+r.IntN(10), n+r.IntN(10)
			src, got := make([]byte, rows*srcPitch), make([]byte, rows*dstPitch)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			want := make([]byte, len(got))
			for row := range rows {
				copy(want[row*dstPitch:][:n], src[row*srcPitch:])
			}
			fp8.Copy(got, dstPitch, src, srcPitch, rows, n)
			require.Equal(t, want, got, "%d rows of %d", rows, n)
		}
	})
	assert.Panics(t, func() { fp8.Copy(make([]byte, 127), 64, make([]byte, 128), 64, 2, 64) })
	assert.Panics(t, func() { fp8.Copy(make([]byte, 128), 64, make([]byte, 127), 64, 2, 64) })
}
