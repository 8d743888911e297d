package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/random"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// uniform returns an attention call whose scores are all 0 and whose values are powers of two: O
// times the number of visible keys has a bit for each of these keys.
func uniform(t *testing.T, queries, keys int) attention.FusedAttnFwdArgs {
	t.Helper()
	values := make([]float64, keys)
	for i := range values {
		values[i] = math.Exp2(float64(i))
	}
	return attention.FusedAttnFwdArgs{
		Q: f64(t, []int{1, queries, 1, 1}, make([]float64, queries)...), K: f64(t, []int{1, keys, 1, 1}, make([]float64, keys)...),
		V: f64(t, []int{1, keys, 1, 1}, values...), O: out(t, tensor.F64, 1, queries, 1, 1), Stats: out(t, tensor.F32, 1, 1, queries, 1),
		QKVFormat: attention.BSHD, AttnMaskType: attention.NoMask, Saved: new(opregistry.Saved),
	}
}

// seen returns the keys that each query saw, first key first.
func seen(t *testing.T, a attention.FusedAttnFwdArgs) []string {
	t.Helper()
	run(t, attention.FusedAttnFwd, a)
	stats := a.Stats.Float64s()
	var rows []string
	for i, o := range a.O.Float64s() {
		bits := uint(math.Round(o * math.Exp(stats[i])))
		row := make([]byte, a.V.NumElements())
		for j := range row {
			row[j] = '0' + byte(bits>>j&1)
		}
		rows = append(rows, string(row))
	}
	return rows
}

func TestAttentionMasks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(a *attention.FusedAttnFwdArgs)
		want []string
	}{
		{"window", func(a *attention.FusedAttnFwdArgs) { a.WindowSize = attention.Window(1, 0) }, []string{"1000", "1100", "0110"}},
		{"window after", func(a *attention.FusedAttnFwdArgs) { a.WindowSize = attention.Window(-1, 1) }, []string{"1100", "1110", "1111"}},
		{"causal window", func(a *attention.FusedAttnFwdArgs) {
			a.AttnMaskType, a.WindowSize = attention.CausalMask, attention.Window(1, 9)
		}, []string{"1000", "1100", "0110"}},
		{"bottom right window", func(a *attention.FusedAttnFwdArgs) {
			a.BottomRightDiagonal, a.WindowSize = opregistry.Bool(true), attention.Window(0, 0)
		}, []string{"0100", "0010", "0001"}},
		{"causal bottom right window", func(a *attention.FusedAttnFwdArgs) {
			a.AttnMaskType, a.WindowSize = attention.CausalBottomRightMask, attention.Window(1, -1)
		}, []string{"1100", "0110", "0011"}},
		{"lengths", func(a *attention.FusedAttnFwdArgs) {
			a.AttnMaskType, a.CuSeqlensQ, a.CuSeqlensKV = attention.PaddingMask, i32(t, 0, 2), i32(t, 0, 3)
		}, []string{"1110", "1110", "0000"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := uniform(t, 3, 4)
			tt.edit(&a)
			assert.Equal(t, tt.want, seen(t, a))
		})
	}
}

// Upstream's PyTorch class applies no causal mask for these types, so that queries see later keys.
func TestCausalMasks_UpstreamAppliesNoneButCausal(t *testing.T) {
	t.Parallel()
	a := uniform(t, 3, 4)
	a.AttnMaskType = attention.CausalBottomRightMask
	assert.Equal(t, []string{"1100", "1110", "1111"}, seen(t, a))

	a.AttnMaskType, a.CuSeqlensQ, a.CuSeqlensKV = attention.PaddingCausalMask, i32(t, 0, 2), i32(t, 0, 4)
	assert.Equal(t, []string{"1000", "1100", "0000"}, seen(t, a))

	a.AttnMaskType = attention.PaddingCausalBottomRightMask
	assert.Equal(t, []string{"1110", "1111", "0000"}, seen(t, a))
}

// Upstream's PyTorch class takes true to mean that a key is visible.
func TestAttentionMask_UpstreamReadsItInverted(t *testing.T) {
	t.Parallel()
	a := uniform(t, 2, 4)
	a.AttnMaskType, a.AttentionMask = attention.ArbitraryMask, of(t, tensor.Bool, []int{1, 1, 2, 4}, 0, 1, 1, 0, 1, 1, 1, 1)
	assert.Equal(t, []string{"1001", "0000"}, seen(t, a))
}

// Two sequences of one and two queries lie among four tokens, with a gap after each.
func TestAttentionPacked(t *testing.T) {
	t.Parallel()
	a := attention.FusedAttnFwdArgs{
		Q: f64(t, []int{4, 1, 1}, 0, 0, 0, 0), K: f64(t, []int{5, 1, 1}, 0, 0, 0, 0, 0), V: f64(t, []int{5, 1, 1}, 1, 100, 3, 5, 100),
		O: out(t, tensor.F64, 4, 1, 1), Stats: out(t, tensor.F32, 4, 1, 1), MaxLogit: out(t, tensor.F32, 1),
		QKVFormat: attention.THD, AttnMaskType: attention.PaddingCausalMask, Saved: new(opregistry.Saved),
		AttnOptions: attention.AttnOptions{
			CuSeqlensQ: i32(t, 0, 1, 3), CuSeqlensKV: i32(t, 0, 1, 3), CuSeqlensQPadded: i32(t, 0, 2, 4), CuSeqlensKVPadded: i32(t, 0, 2, 5),
		},
	}
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, 1, 0, 3, 4)
	want(t, a.Stats, 0, -inf, 0, math.Log(2))
	want(t, a.MaxLogit, 0)
}

func TestAttentionBias(t *testing.T) {
	t.Parallel()
	give := func() attention.FusedAttnFwdArgs {
		a := uniform(t, 1, 2) // values 1 and 2
		a.AttnScale = opregistry.Float(0.5)
		return a
	}
	a := give()
	a.BiasType, a.Bias = attention.PostScaleBias, f64(t, []int{1, 1, 1, 2}, 0, ln3)
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, 0.25+0.75*2)
	want(t, a.Stats, math.Log(4))

	a = give()
	a.BiasType, a.Bias, a.MaxLogit = attention.PreScaleBias, f64(t, []int{1, 1, 1, 2}, 0, 2*ln3), out(t, tensor.F32, 1)
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, 0.25+0.75*2)
	want(t, a.MaxLogit, ln3)

	// The slope of one head is 2⁻⁸; the only query lies at the first key, or at
	// the last with a bottom right diagonal.
	a = give()
	a.BiasType = attention.ALiBi
	run(t, attention.FusedAttnFwd, a)
	far := math.Exp(-1.0 / 256)
	want(t, a.O, (1+2*far)/(1+far))
	a.BottomRightDiagonal = opregistry.Bool(true)
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, (far+2)/(1+far))
	a.AlibiSlopes = f32(t, ln3)
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, (1.0/3+2)/(1+1.0/3))
}

func TestAttentionSoftmaxTypes(t *testing.T) {
	t.Parallel()
	a := uniform(t, 1, 2)
	a.SoftmaxType = attention.OffByOneSoftmax
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, 1) // (1 + 2)/3
	want(t, a.Stats, ln3)

	a.SoftmaxType, a.SoftmaxOffset = attention.LearnableSoftmax, f32(t, math.Log(4))
	run(t, attention.FusedAttnFwd, a)
	want(t, a.O, 0.5) // (1 + 2)/6
	want(t, a.Stats, math.Log(6))
	b := attention.FusedAttnBwdArgs{
		Q: a.Q, K: a.K, V: a.V, O: a.O, DO: f64(t, []int{1, 1, 1, 1}, 3), Stats: a.Stats, DSoftmaxOffset: out(t, tensor.F32, 1),
		DQ: out(t, tensor.F64, 1, 1, 1, 1), DK: out(t, tensor.F64, 1, 2, 1, 1), DV: out(t, tensor.F64, 1, 2, 1, 1),
		QKVFormat: a.QKVFormat, AttnMaskType: a.AttnMaskType, AttnOptions: a.AttnOptions, Saved: a.Saved,
	}
	run(t, attention.FusedAttnBwd, b)
	want(t, b.DSoftmaxOffset, -4.0/6*3*0.5)
	want(t, b.DV, 0.5, 0.5)
}

// Half of the probabilities are dropped, the others are doubled; the generator's words decide
// which.
func TestAttentionDropout(t *testing.T) {
	t.Parallel()
	const keys = 16
	a := uniform(t, 1, keys)
	a.PDropout, a.RNGSeed, a.RNGOffset = 0.5, 42, 7
	run(t, attention.FusedAttnFwd, a)
	sum := 0.0
	for n := range uint64(keys) {
		words := random.Philox4x32([4]uint32{7 + uint32(n/4)}, [2]uint32{42})
		if words[n%4] >= 1<<31 {
			sum += math.Exp2(float64(n)) * 2 / keys
		}
	}
	assert.NotZero(t, sum)
	want(t, a.O, sum)
	want(t, a.Stats, math.Log(keys)) // of all keys
}
