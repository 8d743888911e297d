package finite_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/internal/finite"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type args struct {
	In     *tensor.Tensor `op:"0 in read any"`
	Out    *tensor.Tensor `op:"1 out write any"`
	Scores *tensor.Tensor `op:"2 scores write any masked ?"`
}

var op = opregistry.NewOp("some", opregistry.Schema[args]{})

func TestFirst(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64, tensor.I32} {
		for _, n := range []int{1, 3, 255, 256, 257, 1000} {
			for _, at := range []int{0, n / 2, n - 1} {
				for _, v := range []float64{1, math.NaN(), math.Inf(1), math.Inf(-1)} {
					values := make([]float64, n)
					for i := range values {
						values[i] = float64(i%7) - 3
					}
					if d.IsFloat() {
						values[at] = v
					}
					out := fill(t, d, values)
					found := finite.First(op.At(&args{In: fill(t, d, values), Out: out}), opregistry.Serial{})
					if !d.IsFloat() || v == 1 {
						assert.Nil(t, found)
						continue
					}
					require.NotNil(t, found, "%v of %d: %v at %d", d, n, v, at)
					assert.Equal(t, at, found.Index)
					assert.Equal(t, "out", found.Operand)
				}
			}
		}
	}
}

// The first of several elements is found, whichever worker sees its part first.
func TestFirstOfLargeOperands(t *testing.T) {
	pool := parallel.New(4)
	t.Cleanup(pool.Close)
	const n = 5<<15 + 7
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		for first := range 6 {
			values := make([]float64, n)
			for at := first<<15 + 3; at < n; at += 1 << 14 {
				values[at] = math.NaN()
			}
			out := fill(t, d, values)
			found := finite.First(op.At(&args{In: out, Out: out}), pool)
			require.NotNil(t, found)
			assert.Equal(t, first<<15+3, found.Index, "%v", d)
		}
		out := fill(t, d, make([]float64, n))
		assert.Nil(t, finite.First(op.At(&args{In: out, Out: out}), pool))

		// heads that lie in rows of positions, of which every seventh element is left out
		values := make([]float64, 500*11*21)
		for i := range values {
			if i%7 == 6 {
				values[i] = math.NaN()
			}
		}
		find := func() *finite.Found {
			heads, err := fill(t, d, values).AsStrided([]int{11, 500, 3, 6}, []int{21, 11 * 21, 7, 1}, 0)
			require.NoError(t, err)
			return finite.First(op.At(&args{In: out, Out: heads}), pool)
		}
		assert.Nil(t, find())
		for _, at := range [][4]int{{10, 499, 2, 5}, {9, 17, 1, 3}, {3, 350, 0, 2}, {0, 0, 0, 0}} { // backwards
			values[at[0]*21+at[1]*11*21+at[2]*7+at[3]] = math.Inf(1)
			found := find()
			require.NotNil(t, found)
			assert.Equal(t, ((at[0]*500+at[1])*3+at[2])*6+at[3], found.Index)
		}
	}
}

func TestMaskedMayHoldMinusInfinity(t *testing.T) {
	out := fill(t, tensor.F32, []float64{1})
	call := func(values ...float64) *finite.Found {
		return finite.First(op.At(&args{In: out, Out: out, Scores: fill(t, tensor.F32, values)}), opregistry.Serial{})
	}
	assert.Nil(t, call(1, math.Inf(-1)))
	assert.Equal(t, &finite.Found{Operand: "scores", Index: 1, Value: math.Inf(1)}, call(math.Inf(-1), math.Inf(1)))
	assert.NotNil(t, call(math.Inf(-1), math.NaN()))
}

func TestStridedOperandsAreLookedAt(t *testing.T) {
	whole := fill(t, tensor.F32, []float64{1, math.NaN(), 2, 3})
	even, err := whole.AsStrided([]int{2}, []int{2}, 0)
	require.NoError(t, err)
	odd, err := whole.AsStrided([]int{2}, []int{2}, 1)
	require.NoError(t, err)
	assert.Nil(t, finite.First(op.At(&args{In: whole, Out: even}), opregistry.Serial{}))
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
		values := make([]float64, 4*6*10)
		for i := range values {
			values[i] = math.NaN()
		}
		block := fill(t, d, values)
		view, err := block.AsStrided([]int{3, 4, 1, 5}, []int{60, 10, 7, 1}, 2)
		require.NoError(t, err)
		for i := range 3 {
			for j := range 4 {
				for k := range 5 {
					values[2+60*i+10*j+k] = 1
				}
			}
		}
		require.NoError(t, block.CopyFrom(fill(t, d, values)))
		assert.Nil(t, finite.First(op.At(&args{In: whole, Out: view}), opregistry.Serial{}), "%v: what lies between the runs does not count", d)
		values[2+60*2+10*1+3] = math.Inf(1)
		require.NoError(t, block.CopyFrom(fill(t, d, values)))
		found := finite.First(op.At(&args{In: whole, Out: view}), opregistry.Serial{})
		require.NotNil(t, found, d)
		assert.Equal(t, 2*20+1*5+3, found.Index, d)
	}
	assert.NotNil(t, finite.First(op.At(&args{In: whole, Out: odd}), opregistry.Serial{}))
}

func fill(t *testing.T, d tensor.DType, values []float64) *tensor.Tensor {
	t.Helper()
	made, err := tensor.FromBytes(make([]byte, len(values)*d.Size()), d, len(values))
	require.NoError(t, err)
	require.NoError(t, made.SetFloat64s(values))
	return made
}
