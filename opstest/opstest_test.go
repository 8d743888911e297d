package opstest

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Package opscases tests that every op has cases; package reference, where the oracle is, that
// mistakes are found.

func TestTolerance(t *testing.T) {
	t.Parallel()
	c := newConfig([]Option{WithTolerance(tensor.F16, tensortest.Tolerance{ULP: 7})})
	assert.Equal(t, tensortest.Tolerance{Abs: 2e-6}, c.tolerance(rope.FusedRopeForward, tensor.F32))
	assert.Equal(t, c.tolerance(rope.FusedRopeForward, tensor.F32), c.tolerance(rope.FusedRopeForward, tensor.F64))
	assert.Equal(t, tensortest.Tolerance{Abs: 4e-6, ULP: 1}, c.tolerance(rope.FusedRopeForward, tensor.BF16))
	assert.Equal(t, tensortest.Tolerance{ULP: 7}, c.tolerance(rope.FusedRopeForward, tensor.F16))
	assert.Equal(t, tensortest.Tolerance{}, c.tolerance(optim.MultiTensorScale, tensor.I32), "flags are exact")
}

func TestStage(t *testing.T) {
	t.Parallel()
	one, other := &Stage{T: t}, &Stage{T: t}
	for _, l := range []Layout{Dense, Padded, Turned} {
		x, y := one.In(l, tensor.F32, 2, 3, 4), other.In(l, tensor.F32, 2, 3, 4)
		assert.Equal(t, x.Float64s(), y.Float64s(), "equal requests, equal operands")
		assert.Equal(t, l == Dense, x.IsContiguous(), "%v: %v", l, x)
		assert.NotEqual(t, x.Float64s(), one.In(l, tensor.F32, 2, 3, 4).Float64s(), "the next one differs")
		other.In(l, tensor.F32, 2, 3, 4)
	}
	assert.Equal(t, []int{12, 1, 3}, one.Out(Turned, tensor.F32, 2, 3, 4).Strides())
	assert.Greater(t, one.Out(Padded, tensor.F32, 3, 4).Strides()[0], 4)
	for _, v := range one.Indexes(tensor.I64, 200, 7).Float64s() {
		assert.True(t, v >= 0 && v < 7, "%v", v)
	}
	p := one.Parts(true, tensor.F32, []int{2, 0, 3}, 1, 4, 1)
	assert.Equal(t, tensor.Shape{2, 4, 3}, p[0].Shape())
	assert.Equal(t, tensor.Shape{2, 1, 3}, p[1].Shape())
	assert.Same(t, p[0].Storage(), p[1].Storage())
	assert.False(t, tensor.Overlap(p[0], p[1]))
	one.intact(t)
}

type taskFunc func(part int)

func (f taskFunc) Do(part int) { f(part) }

func TestScatteredPool(t *testing.T) {
	t.Parallel()
	var runs [50]atomic.Int32
	scattered{}.Run(len(runs), taskFunc(func(part int) { runs[part].Add(1) }))
	for i := range runs {
		assert.Equal(t, int32(1), runs[i].Load())
	}
	assert.PanicsWithValue(t, "part 3", func() {
		scattered{}.Run(5, taskFunc(func(part int) {
			if part == 3 {
				panic("part 3")
			}
		}))
	})
}

// Which of NaN and an infinity a formula gives is its own affair; that the result is neither the
// other infinity nor finite is not.
func TestUndetermined(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		want, got float64
		accepted  bool
	}{
		{nan, inf, true}, {nan, -inf, true}, {inf, nan, true}, {-inf, nan, true}, {nan, nan, true}, {inf, inf, true}, {2, 2, true},
		{inf, -inf, false}, {inf, math.MaxFloat32, false}, {nan, 0, false}, {0, nan, false}, {1, inf, false},
	} {
		want := []float64{c.want}
		got := tensortest.Random(t, 1, tensor.F32, 1)
		require.NoError(t, got.SetFloat64s([]float64{c.got}))
		undetermined(want, got.Float64s())
		d, err := tensor.Compare(want, got, tensor.Tolerance{})
		require.NoError(t, err)
		assert.Equal(t, c.accepted, d.Beyond == 0, "got %v, want %v", c.got, c.want)
	}
}
