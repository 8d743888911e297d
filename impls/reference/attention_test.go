package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// B25: both causal masks hide the right keys.
func TestAttention(t *testing.T) {
	t.Parallel()
	// One query with the scores 0 and ln 3: weights 1/4 and 3/4.
	one := []int{1, 1, 1, 1}
	two := []int{1, 2, 1, 1}
	fwd := attention.FusedAttnFwdArgs{
		Q: f64(t, one, 1), K: f64(t, two, 0, ln3), V: f64(t, two, 4, 8), O: out(t, tensor.F64, one...), Stats: out(t, tensor.F32, one...),
		AttnScale: opregistry.Float(1), QKVFormat: attention.BSHD, AttnMaskType: attention.NoMask, Saved: new(opregistry.Saved),
	}
	run(t, attention.FusedAttnFwd, fwd)
	want(t, fwd.O, 7)
	want(t, fwd.Stats, math.Log(4))

	bwd := attention.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, DO: f64(t, one, 2), Stats: fwd.Stats,
		DQ: out(t, tensor.F64, one...), DK: out(t, tensor.F64, two...), DV: out(t, tensor.F64, two...),
		AttnScale: opregistry.Float(1), QKVFormat: attention.BSHD, AttnMaskType: attention.NoMask, Saved: fwd.Saved,
	}
	run(t, attention.FusedAttnBwd, bwd)
	want(t, bwd.DV, 0.5, 1.5)  // P·dO
	want(t, bwd.DK, -1.5, 1.5) // P∘(dO·V − 14)
	want(t, bwd.DQ, 1.5*ln3)   // of the second key only
	run(t, attention.FusedAttnFwd, causal(fwd, attention.CausalMask))
	want(t, fwd.O, 4) // the first key only
	want(t, fwd.Stats, 0)
	run(t, attention.FusedAttnFwd, causal(fwd, attention.CausalBottomRightMask))
	want(t, fwd.O, 7) // both
}

func causal(a attention.FusedAttnFwdArgs, m attention.MaskType) attention.FusedAttnFwdArgs {
	a.AttnMaskType = m
	return a
}

func TestAttentionWithoutKeys(t *testing.T) {
	t.Parallel()
	two, one := []int{1, 2, 1, 1}, []int{1, 1, 1, 1}
	fwd := attention.FusedAttnFwdArgs{
		Q: f64(t, two, 1, 2), K: f64(t, one, 3), V: f64(t, one, 5), O: out(t, tensor.F64, two...), Stats: out(t, tensor.F32, two...),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalBottomRightMask, Saved: new(opregistry.Saved),
	}
	run(t, attention.FusedAttnFwd, fwd)
	want(t, fwd.O, 0, 5)
	want(t, fwd.Stats, -inf, 6)
	bwd := attention.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, DO: f64(t, two, 1, 1), Stats: fwd.Stats,
		DQ: out(t, tensor.F64, two...), DK: out(t, tensor.F64, one...), DV: out(t, tensor.F64, one...),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalBottomRightMask, Saved: fwd.Saved,
	}
	run(t, attention.FusedAttnBwd, bwd)
	want(t, bwd.DQ, 0, 0)
	want(t, bwd.DK, 0)
	want(t, bwd.DV, 1)
}

// Head h of Q reads head h/(heads/groups) of K and V, in either format.
func TestAttentionGroups(t *testing.T) {
	t.Parallel()
	for _, f := range []attention.QKVFormat{attention.BSHD, attention.SBHD} {
		shape := func(h int) []int { return []int{1, 1, h, 1} }
		o := out(t, tensor.F64, shape(4)...)
		run(t, attention.FusedAttnFwd, attention.FusedAttnFwdArgs{
			Q: f64(t, shape(4), 1, 1, 1, 1), K: f64(t, shape(2), 1, 1), V: f64(t, shape(2), 5, 9), O: o, Stats: out(t, tensor.F32, 1, 4, 1, 1),
			QKVFormat: f, AttnMaskType: attention.CausalMask, Saved: new(opregistry.Saved),
		})
		want(t, o, 5, 5, 9, 9)
	}
	// There are two sequences of two positions: in SBHD the sequences lie side by side.
	o := out(t, tensor.F64, 2, 2, 1, 1)
	run(t, attention.FusedAttnFwd, attention.FusedAttnFwdArgs{
		Q: f64(t, []int{2, 2, 1, 1}, 0, 0, 0, 0), K: f64(t, []int{2, 2, 1, 1}, 0, 0, 0, 0), V: f64(t, []int{2, 2, 1, 1}, 1, 10, 3, 30),
		O: o, Stats: out(t, tensor.F32, 2, 1, 2, 1), QKVFormat: attention.SBHD, AttnMaskType: attention.CausalMask, Saved: new(opregistry.Saved),
	})
	want(t, o, 1, 10, 2, 20)
}
