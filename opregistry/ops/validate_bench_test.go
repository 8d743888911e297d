package ops_test

import (
	"fmt"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func benchmarkValidate[A any](b *testing.B, op *opregistry.Op[A], a A) {
	b.Run(op.Name(), func(b *testing.B) {
		validate := op.Validator()
		b.ReportAllocs()
		for b.Loop() {
			if err := validate(a); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkValidate measures the check that precedes every call of an op.
func BenchmarkValidate(b *testing.B) {
	benchmarkValidate(b, ops.RMSNormFwd, ops.RMSNormFwdArgs{Input: f32(2, 3, 4), Weight: f32(4), Output: f32(2, 3, 4), RSigma: f32(6), Eps: 1e-5, Saved: new(opregistry.Saved)})
	benchmarkValidate(b, ops.ResidualAdd, ops.ResidualAddArgs{A: f32(2, 3, 4), B: f32(2, 3, 4), Output: f32(2, 3, 4)})
	benchmarkValidate(b, ops.GenericGemm, ops.GenericGemmArgs{A: f32(5, 3), TransA: true, B: f32(2, 4, 3), D: f32(2, 4, 5)})
	benchmarkValidate(b, ops.GenericGemm, fullGemm())
	benchmarkValidate(b, ops.FusedAttnFwd, ops.FusedAttnFwdArgs{
		Q: f32(2, 3, 4, 8), K: f32(2, 3, 2, 8), V: f32(2, 3, 2, 8), O: f32(2, 3, 4, 8), Stats: f32(2, 4, 3, 1),
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalMask, Saved: new(opregistry.Saved),
	})
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkValidate(b, ops.MultiTensorAdam, adamOf(n)) })
	}
	out := []*tensor.Tensor{f32(4)}
	benchmarkValidate(b, ops.MultiTensorScale, ops.MultiTensorScaleArgs{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{out, out}, Scale: 1})
}
