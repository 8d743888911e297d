package ops_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

func benchmarkValidate[A any](b *testing.B, op *opregistry.Op[A], a A) {
	b.Run(op.Name(), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := op.ValidateAt(&a); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkValidate measures the check that precedes every call of an op.
func BenchmarkValidate(b *testing.B) {
	benchmarkValidate(b, norm.RMSNormFwd, norm.RMSNormFwdArgs{Input: checktest.F32(2, 3, 4), Weight: checktest.F32(4), Output: checktest.F32(2, 3, 4), RSigma: checktest.F32(6), Eps: 1e-5, Saved: new(opregistry.Saved)})
	benchmarkValidate(b, norm.ResidualAdd, norm.ResidualAddArgs{A: checktest.F32(2, 3, 4), B: checktest.F32(2, 3, 4), Output: checktest.F32(2, 3, 4)})
	benchmarkValidate(b, gemm.GenericGemm, gemm.GenericGemmArgs{A: checktest.F32(5, 3), TransA: true, B: checktest.F32(2, 4, 3), D: checktest.F32(2, 4, 5)})
	benchmarkValidate(b, gemm.GenericGemm, gemm.GenericGemmArgs{
		A: checktest.F32(5, 3), TransA: true, B: checktest.F32(2, 4, 3), D: checktest.F32(2, 4, 5), Bias: checktest.F32(5),
		Gelu: true, GeluIn: checktest.F32(2, 4, 5), Accumulate: true, Alpha: opregistry.Float(2), Beta: opregistry.Float(0.5),
	})
	benchmarkValidate(b, attention.FusedAttnFwd, attention.FusedAttnFwdArgs{
		Q: checktest.F32(2, 3, 4, 8), K: checktest.F32(2, 3, 2, 8), V: checktest.F32(2, 3, 2, 8), O: checktest.F32(2, 3, 4, 8), Stats: checktest.F32(2, 4, 3, 1),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalMask, Saved: new(opregistry.Saved),
	})
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkValidate(b, optim.MultiTensorAdam, adam(n)) })
	}
	out := []*tensor.Tensor{checktest.F32(4)}
	benchmarkValidate(b, optim.MultiTensorScale, optim.MultiTensorScaleArgs{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{out, out}, Scale: 1})
}

// adam returns a call for n parameters whose tensors lie in memory in no order.
func adam(n int) optim.MultiTensorAdamArgs {
	memory, order := checktest.F32(4*n*2), rand.New(rand.NewPCG(1, 2)).Perm(4*n)
	lists := make([][]*tensor.Tensor, 4)
	for i, at := range order {
		v, err := memory.Slice(0, 2*at, 2*at+2)
		if err != nil {
			panic(err)
		}
		lists[i/n] = append(lists[i/n], v)
	}
	return optim.MultiTensorAdamArgs{NoopFlag: checktest.I32(0), Step: 1, TensorLists: lists}
}
