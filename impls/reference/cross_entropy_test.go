package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestCrossEntropy(t *testing.T) {
	t.Parallel()
	// exp(logits) = [1 3], so lse = ln 4 and the softmax is [1/4 3/4].
	logits, targets := f64(t, []int{3, 2}, 0, ln3, 0, ln3, nan, nan), i32(t, 0, 1, -100)
	fwd := loss.CrossEntropyFwdArgs{
		Logits: logits, Targets: targets, Losses: out(t, tensor.F32, 3), LSE: out(t, tensor.F32, 3), IgnoreIndex: -100, Saved: new(opregistry.Saved),
	}
	run(t, loss.CrossEntropyFwd, fwd)
	want(t, fwd.Losses, math.Log(4), math.Log(4.0/3), 0)
	want(t, fwd.LSE, math.Log(4), math.Log(4), nan)

	dlogits := out(t, tensor.F64, 3, 2)
	run(t, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: logits, Targets: targets, LSE: fwd.LSE, DLosses: f32(t, 1, 2, 5), DLogits: dlogits, IgnoreIndex: -100, Saved: fwd.Saved,
	})
	tensortest.CloseTo(t, []float64{-0.75, 0.75, 0.5, -0.5, 0, 0}, dlogits, tensortest.Tolerance{Abs: 1e-6})
}

func TestCrossEntropyOfInfinities(t *testing.T) {
	t.Parallel()
	a := loss.CrossEntropyFwdArgs{
		Logits: f64(t, []int{4, 2}, -inf, 0, -inf, -inf, inf, 0, 1000, 1000), Targets: i32(t, 1, 0, 1, 0),
		Losses: out(t, tensor.F32, 4), LSE: out(t, tensor.F32, 4), Saved: new(opregistry.Saved), IgnoreIndex: -100,
	}
	run(t, loss.CrossEntropyFwd, a)
	want(t, a.LSE, 0, -inf, inf, 1000+math.Ln2)
	want(t, a.Losses, 0, nan, nan, math.Ln2)
	dlogits := out(t, tensor.F64, 4, 2)
	run(t, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: a.Logits, Targets: a.Targets, LSE: a.LSE, DLosses: f32(t, 1, 1, 1, 1), DLogits: dlogits, IgnoreIndex: -100, Saved: a.Saved,
	})
	tensortest.CloseTo(t, []float64{0, 0, nan, nan, nan, nan, -0.5, 0.5}, dlogits, tensortest.Tolerance{Abs: 1e-12})
}
