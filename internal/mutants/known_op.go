package main

import (
	"errors"
	"math"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/embedding"
	gemmops "github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	ropeops "github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// opMutants returns mutants with mistakes in products, norms, attention, rotations, optimizers and
// losses.
func opMutants() []mutant {
	type (
		exec = opregistry.Exec
		gemm = gemmops.GenericGemmArgs
		norm = normops.RMSNormFwdArgs
		attn = attention.FusedAttnFwdArgs
		back = attention.FusedAttnBwdArgs
		rope = ropeops.FusedRopeArgs
		adam = optim.MultiTensorAdamArgs
		sum  = normops.ResidualAddArgs
	)
	return []mutant{
		mutate("alpha is ignored without bias", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			if a.Bias == nil {
				a.Alpha = opregistry.OptionalFloat{}
			}
			return right(x, a)
		}),
		mutate("beta is ignored", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			a.Beta = opregistry.OptionalFloat{}
			return right(x, a)
		}),
		mutate("D is read without accumulate", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			old := a.D.Float64s()
			if err := right(x, a); err != nil {
				return err
			}
			v := a.D.Float64s()
			for i := range v {
				v[i] += 0 * old[i]
			}
			return a.D.SetFloat64s(v)
		}),
		mutate("bias is added in grad mode", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			a.Grad = a.Grad && (a.Bias == nil || a.Gelu)
			return right(x, a)
		}),
		mutate("gelu of the error function", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			err := right(x, a)
			if err == nil && a.Gelu && !a.Grad && !a.Accumulate {
				pre := a.GeluIn.Float64s()
				for i, v := range pre {
					pre[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
				}
				return a.D.SetFloat64s(pre)
			}
			return err
		}),
		mutate("zeros are skipped", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			err := right(x, a)
			if err == nil && !a.TransB {
				k := a.B.Shape().Cols()
				for i := range a.B.Shape().Rows() {
					row, zero := a.B.Float64s()[i*k:(i+1)*k], k > 0
					for _, v := range row {
						zero = zero && v == 0
					}
					if zero {
						for j := range a.D.Shape().Cols() {
							a.D.Set(0, i, j)
						}
					}
				}
			}
			return err
		}),
		mutate("empty product is left alone", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			if _, _, k := a.Dims(); k == 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("strides are ignored", gemmops.GenericGemm, tensor.F32, func(right opregistry.Func[gemm], x *exec, a gemm) error {
			if !a.A.IsContiguous() {
				flat, err := a.A.AsStrided([]int{a.A.NumElements()}, []int{1}, a.A.Offset())
				if err != nil {
					return err
				}
				if a.A, err = flat.Reshape(a.A.Shape()...); err != nil {
					return err
				}
			}
			return right(x, a)
		}),
		mutate("sums are kept in bf16", embedding.EmbeddingBwd, tensor.BF16, func(right opregistry.Func[embedding.EmbeddingBwdArgs], x *exec, a embedding.EmbeddingBwdArgs) error {
			sums := make([]float64, a.DWeight.NumElements())
			if a.Accumulate {
				sums = a.DWeight.Float64s()
			}
			h, grad, err := a.DWeight.Shape().Cols(), a.Grad.Float64s(), error(nil)
			for i, v := range a.Indices.Float64s() {
				for j := range h {
					sums[int(v)*h+j] += grad[i*h+j]
				}
				if sums, err = rounded(a.DWeight, sums); err != nil {
					return err
				}
			}
			return a.DWeight.SetFloat64s(sums)
		}),
		mutate("accumulate is ignored", embedding.EmbeddingBwd, tensor.F32, func(right opregistry.Func[embedding.EmbeddingBwdArgs], x *exec, a embedding.EmbeddingBwdArgs) error {
			a.Accumulate = false
			return right(x, a)
		}),
		mutate("eps is squared", normops.RMSNormFwd, tensor.F32, func(right opregistry.Func[norm], x *exec, a norm) error {
			a.Eps *= a.Eps
			return right(x, a)
		}),
		mutate("gamma is never centred", normops.RMSNormFwd, tensor.F32, func(right opregistry.Func[norm], x *exec, a norm) error {
			a.ZeroCenteredGamma = false
			return right(x, a)
		}),
		mutate("rsigma has the precision of x", normops.RMSNormFwd, tensor.BF16, func(right opregistry.Func[norm], x *exec, a norm) error {
			err := right(x, a)
			if err == nil {
				return each(a.RSigma, func(v float64) float64 { return float64(tensor.ToBFloat16(float32(v)).Float32()) })
			}
			return err
		}),
		mutate("dgamma is added to", normops.RMSNormBwd, tensor.F32, func(right opregistry.Func[normops.RMSNormBwdArgs], x *exec, a normops.RMSNormBwdArgs) error {
			if a.X.Shape().Rows() == 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("halves are exchanged", activation.SwiGLU, tensor.F32, func(right opregistry.Func[activation.SwiGLUArgs], x *exec, a activation.SwiGLUArgs) error {
			v, h := a.Input.Float64s(), a.Output.Shape().Cols()
			y := make([]float64, a.Output.NumElements())
			for i := range y {
				p, q := v[i/h*2*h+i%h], v[i/h*2*h+i%h+h]
				y[i] = q / (1 + math.Exp(-q)) * p
			}
			return a.Output.SetFloat64s(y)
		}),
		mutate("x is read after dx is written", activation.DSwiGLU, tensor.F32, func(right opregistry.Func[activation.DSwiGLUArgs], x *exec, a activation.DSwiGLUArgs) error {
			if err := right(x, a); err != nil || a.Output != a.FwdInput {
				return err
			}
			return right(x, a)
		}),
		mutate("bottom right is top left", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if a.AttnMaskType == attention.CausalBottomRightMask {
				a.AttnMaskType = attention.CausalMask
			}
			return right(x, a)
		}),
		mutate("no mask but causal", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if a.AttnMaskType == attention.CausalBottomRightMask {
				a.AttnMaskType = attention.NoMask
			}
			return right(x, a)
		}),
		mutate("rows without a key are math.NaN()", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.Stats, func(v float64) float64 {
				if math.IsInf(v, -1) {
					return math.NaN()
				}
				return v
			})
		}),
		mutate("stats are off by a hundredth", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.Stats, func(v float64) float64 { return v - 0.01 })
		}),
		mutate("scale is ignored", attention.FusedAttnBwd, tensor.F32, func(right opregistry.Func[back], x *exec, a back) error {
			a.AttnScale = opregistry.OptionalFloat{}
			return right(x, a)
		}),
		mutate("backward is forward of the negative angle", ropeops.FusedRopeBackward, tensor.F32, func(_ opregistry.Func[rope], x *exec, a rope) error {
			freqs, err := tensor.FromSlice(make([]float32, a.Freqs.NumElements()), a.Freqs.Shape()...)
			if err != nil {
				return err
			}
			if err := freqs.CopyFrom(a.Freqs); err != nil {
				return err
			}
			a.Freqs = freqs
			if err := each(a.Freqs, func(v float64) float64 { return -v }); err != nil {
				return err
			}
			for _, impl := range reference.Source().Impls {
				if impl.Op == opregistry.Handle(ropeops.FusedRopeForward) {
					return impl.Run.(opregistry.Func[rope])(x, a)
				}
			}
			return errors.New("no impl")
		}),
		mutate("start positions are ignored", ropeops.FusedRopeForward, tensor.F32, func(right opregistry.Func[rope], x *exec, a rope) error {
			a.StartPositions = nil
			return right(x, a)
		}),
		mutate("context parallelism is ignored", ropeops.FusedRopeForward, tensor.F32, func(right opregistry.Func[rope], x *exec, a rope) error {
			a.CPSize = 1
			return right(x, a)
		}),
		mutate("step is always 1", optim.MultiTensorAdam, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			a.Step = 1
			return right(x, a)
		}),
		mutate("flag ends the step", optim.MultiTensorAdam, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			if a.NoopFlag.At(0) != 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("master is forgotten", optim.MultiTensorAdam, tensor.BF16, func(right opregistry.Func[adam], x *exec, a adam) error {
			a.TensorLists = a.TensorLists[:4]
			return right(x, a)
		}),
		mutate("decay is l2", optim.MultiTensorAdam, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			a.Mode = optim.AdamL2
			return right(x, a)
		}),
		mutate("flag is cleared", optim.MultiTensorL2Norm, tensor.F32, func(right opregistry.Func[optim.MultiTensorL2NormArgs], x *exec, a optim.MultiTensorL2NormArgs) error {
			a.NoopFlag.Set(0, 0)
			return right(x, a)
		}),
		mutate("norm of no tensors is left alone", optim.MultiTensorL2Norm, tensor.F32, func(right opregistry.Func[optim.MultiTensorL2NormArgs], x *exec, a optim.MultiTensorL2NormArgs) error {
			if len(a.TensorLists[0]) == 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("flag is set by outputs", optim.MultiTensorScale, tensor.F32, func(right opregistry.Func[optim.MultiTensorScaleArgs], x *exec, a optim.MultiTensorScaleArgs) error {
			err := right(x, a)
			for _, t := range a.TensorLists[1] {
				for _, v := range t.Float64s() {
					if math.IsInf(v, 0) || math.IsNaN(v) {
						a.NoopFlag.Set(1, 0)
					}
				}
			}
			return err
		}),
		mutate("ignore_index is -100", loss.CrossEntropyFwd, tensor.F32, func(right opregistry.Func[loss.CrossEntropyFwdArgs], x *exec, a loss.CrossEntropyFwdArgs) error {
			a.IgnoreIndex = -100
			return right(x, a)
		}),
		mutate("no maximum is subtracted", loss.CrossEntropyFwd, tensor.F32, func(right opregistry.Func[loss.CrossEntropyFwdArgs], x *exec, a loss.CrossEntropyFwdArgs) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.LSE, func(v float64) float64 { return math.Log(float64(float32(math.Exp(v)))) })
		}),
		mutate("probabilities beyond 0.9999 are 1", loss.CrossEntropyBwd, tensor.F32, func(right opregistry.Func[loss.CrossEntropyBwdArgs], x *exec, a loss.CrossEntropyBwdArgs) error {
			logits, cols := a.Logits.Float64s(), a.Logits.Shape().Cols()
			if err := right(x, a); err != nil {
				return err
			}
			targets, lse, dlosses, dlogits := a.Targets.Float64s(), a.LSE.Float64s(), a.DLosses.Float64s(), a.DLogits.Float64s()
			for i := range dlogits {
				row := i / cols
				if p := math.Exp(logits[i] - lse[row]); p > 0.9999 && targets[row] != float64(a.IgnoreIndex) {
					dlogits[i] = dlosses[row]
					if i%cols == int(targets[row]) {
						dlogits[i] = 0
					}
				}
			}
			return a.DLogits.SetFloat64s(dlogits)
		}),
		mutate("ignored rows have a gradient", loss.CrossEntropyBwd, tensor.F32, func(right opregistry.Func[loss.CrossEntropyBwdArgs], x *exec, a loss.CrossEntropyBwdArgs) error {
			err := right(x, a)
			if err == nil && a.DLosses.NumElements() > 0 && a.DLogits.Shape().Cols() > 0 {
				return each(a.DLogits, func(v float64) float64 { return v + 1e-4 })
			}
			return err
		}),
		mutate("output ends early", normops.ResidualAdd, tensor.F32, func(right opregistry.Func[sum], x *exec, a sum) error {
			if len(a.A.Shape()) != 2 || a.A.Shape()[0] < 4 {
				return right(x, a)
			}
			var err error
			rows := a.A.Shape()[0] - 1
			for _, v := range []**tensor.Tensor{&a.A, &a.B, &a.Output} {
				if *v, err = (*v).Slice(0, 0, rows); err != nil {
					return err
				}
			}
			return right(x, a)
		}),
	}
}
