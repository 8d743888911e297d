package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
)

// dropout returns y and the mask of n ones.
func dropout(t *testing.T, n int, p float32, seed, offset uint64) (y, mask []float64) {
	t.Helper()
	a := dropoutops.DropoutFwdArgs{
		Input: f64(t, []int{n}, ones(n)...), Out: out(t, tensor.F64, n), Mask: out(t, tensor.U8, (n+7)/8),
		DropoutProbability: p, Seed: seed, Offset: offset, Saved: new(opregistry.Saved),
	}
	run(t, dropoutops.DropoutFwd, a)
	return a.Out.Float64s(), a.Mask.Float64s()
}

func TestDropout(t *testing.T) {
	t.Parallel()
	// The first words for seed 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
	y, mask := dropout(t, 4, 0.5, 0, 0)
	assert.Equal(t, []float64{0, 2, 2, 2}, y)
	assert.Equal(t, []float64{0b1110}, mask)
	y, mask = dropout(t, 4, 0.75, 0, 0)
	assert.Equal(t, []float64{0, 4, 0, 0}, y)
	assert.Equal(t, []float64{0b0010}, mask)

	// These are the closest float32 bounds around the first word.
	_, mask = dropout(t, 1, 0x6627e8p-24, 0, 0)
	assert.Equal(t, []float64{1}, mask)
	_, mask = dropout(t, 1, 0x6627e9p-24, 0, 0)
	assert.Equal(t, []float64{0}, mask)

	// Counters continue from call to call, also across the end of their lower word.
	for _, offset := range []uint64{0, math.MaxUint32, math.MaxUint64} {
		whole, _ := dropout(t, 12, 0.5, 7, offset)
		first, _ := dropout(t, 4, 0.5, 7, offset)
		rest, _ := dropout(t, 8, 0.5, 7, offset+1)
		assert.Equal(t, whole, append(first, rest...))
	}
	one, _ := dropout(t, 64, 0.5, 1, 0)
	other, _ := dropout(t, 64, 0.5, 1<<32, 0)
	assert.NotEqual(t, one, other, "both halves of the seed count")

	dy := f64(t, []int{3}, 3, nan, 5)
	run(t, dropoutops.DropoutBwd, dropoutops.DropoutBwdArgs{
		GradOutput: dy, Mask: of(t, tensor.U8, []int{1}, 0b101), GradInput: dy, DropoutProbability: 0.5, Saved: new(opregistry.Saved),
	})
	want(t, dy, 6, 0, 10)
}

// The FlagOS plugin's reference does not write the output when p is 0.
func TestDropoutWithoutDrop_UpstreamLeavesOutUnwritten(t *testing.T) {
	t.Parallel()
	y, mask := dropout(t, 9, 0, 1, 2)
	assert.Equal(t, ones(9), y)
	assert.Equal(t, []float64{255, 1}, mask)
}

// The FlagOS plugin's reference writes one byte per element, which no other impl can read.
func TestDropoutMask_UpstreamWritesAByteAnElement(t *testing.T) {
	t.Parallel()
	y, mask := dropout(t, 21, 0.5, 3, 4)
	assert.Len(t, mask, 3)
	for i, v := range y {
		assert.Equal(t, v != 0, int(mask[i/8])>>(i%8)&1 == 1, "element %d", i)
	}
	assert.Zero(t, int(mask[2])>>5, "bits after the last element")
}

// TransformerEngine compares a byte with ⌊256·p⌋: a p below 1/256 drops nothing, and the mean of
// the output is wrong for every p that is not a multiple of 1/256.
func TestDropoutProbability_UpstreamHasEightBits(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	for _, p := range []float32{0.001, 0.1, 0.3, 0.9} {
		dropped := 0.0
		y, _ := dropout(t, n, p, 11, 12)
		for _, v := range y {
			if v == 0 {
				dropped++
			}
		}
		sigma := math.Sqrt(n * float64(p) * (1 - float64(p)))
		assert.InDelta(t, n*float64(p), dropped, 4*sigma, "p = %v", p)
	}
}
