package flagos_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/kernel/kerneltest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// A NaN or an infinity of one position reaches those that see it, as in the reference, and no
// other.
func TestAttentionKeepsWhatIsHiddenApart(t *testing.T) {
	fast, slow := runOf(t, fastSource, attention.FusedAttnFwd), runOf(t, slowSource, attention.FusedAttnFwd)
	fastBwd, slowBwd := runOf(t, fastSource, attention.FusedAttnBwd), runOf(t, slowSource, attention.FusedAttnBwd)
	x := opregistry.NewExec(nil, 0)
	kerneltest.EachFeature(t, func(t *testing.T) {
		for i := range primustest.Cases(30, 60) {
			make := func() (r *random, a attention.FusedAttnFwdArgs, b attention.FusedAttnBwdArgs) {
				r = &random{Rand: rand.New(rand.NewPCG(uint64(i), 5)), t: t, dtype: tensor.F32, next: uint64(i) << 8}
				if i%3 == 0 {
					r.dtype = tensor.BF16
				}
				d := attention.AttnDims{Batch: 1, SeqQ: r.between(1, 330), SeqKV: r.between(1, 700), Groups: 1, Heads: r.between(1, 2), DimQK: r.between(1, 5), DimV: r.between(1, 60)}
				a = r.forward(d, []attention.MaskType{attention.NoMask, attention.CausalMask, attention.CausalBottomRightMask}[r.IntN(3)])
				if r.IntN(2) == 0 {
					a.WindowSize = attention.Window(r.IntN(60), r.IntN(60))
				}
				b = r.gradient(a)
				odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
				switch r.IntN(4) {
				case 0:
					a.V.Set(odd, 0, r.IntN(d.SeqKV), 0, r.IntN(d.DimV))
				case 1:
					a.K.Set(odd, 0, r.IntN(d.SeqKV), 0, r.IntN(d.DimQK))
				case 2:
					a.Q.Set(odd, 0, r.IntN(d.SeqQ), d.Heads-1, r.IntN(d.DimQK))
				case 3:
					b.DO.Set(odd, 0, r.IntN(d.SeqQ), d.Heads-1, r.IntN(d.DimV))
				}
				return r, a, b
			}
			_, want, wantBwd := make()
			_, got, gotBwd := make()
			what := fmt.Sprintf("case %d: %v, %+v", i, got.AttnMaskType, got.WindowSize)
			require.NoError(t, slow(x, want), what)
			require.NoError(t, fast(x, got), what)
			requireNear(t, attention.FusedAttnFwd, want, got, what)
			require.NoError(t, slowBwd(x, wantBwd), what)
			require.NoError(t, got.O.CopyFrom(want.O))
			require.NoError(t, got.Stats.CopyFrom(want.Stats))
			require.NoError(t, fastBwd(x, gotBwd), what)
			requireNear(t, attention.FusedAttnBwd, wantBwd, gotBwd, what)
		}
	})
}

// requireNear compares results, which must be finite in the same places, to within a hundredth.
func requireNear[A any](t *testing.T, op *opregistry.Op[A], want, got A, what string) {
	t.Helper()
	expected := op.Operands(want)
	for k, o := range op.Operands(got) {
		if o.Access == opregistry.AccessRead {
			continue
		}
		values := expected[k].Tensor.Float64s()
		for i, v := range o.Tensor.Float64s() {
			w := values[i]
			lost := math.IsNaN(w) || math.IsInf(w, 0)
			require.True(t, lost && (math.IsNaN(v) || math.IsInf(v, 0)) || math.Abs(w-v) <= 0.01*max(math.Abs(w), 1),
				"%s: element %d of %s %v: got %v, want %v", what, i, o.Name, o.Tensor.Shape(), v, w)
		}
	}
}
