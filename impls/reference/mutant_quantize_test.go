package reference_test

import (
	"errors"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func optimizerMutants() []mutant {
	type (
		exec       = opregistry.Exec
		capturable = ops.MultiTensorAdamCapturableArgs
		adam       = ops.MultiTensorAdamArgs
		sgd        = ops.MultiTensorSGDArgs
	)
	one := func() *tensor.Tensor {
		x, err := tensor.FromSlice([]float32{1})
		if err != nil {
			panic(err)
		}
		return x
	}
	return []mutant{
		mutate("inv_scale is ignored", ops.MultiTensorAdamCapturable, tensor.F32, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			a.InvScale = one()
			return right(x, a)
		}),
		mutate("any flag ends the step", ops.MultiTensorAdamCapturableMaster, tensor.F32, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			if a.NoopFlag.At(0) != 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("gradients stay scaled", ops.MultiTensorAdamCapturable, tensor.BF16, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			var old [][]float64
			for _, g := range a.TensorLists[0] {
				old = append(old, g.Float64s())
			}
			err := right(x, a)
			for i, g := range a.TensorLists[0] {
				err = errors.Join(err, g.SetFloat64s(old[i]))
			}
			return err
		}),
		mutate("remainder is lost", ops.MultiTensorAdamParamRemainder, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			for _, rem := range a.TensorLists[4] {
				if err := each(rem, func(float64) float64 { return 0 }); err != nil {
					return err
				}
			}
			return right(x, a)
		}),
		mutate("weights are rounded down", ops.MultiTensorAdamParamRemainder, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			err := right(x, a)
			for i, p := range a.TensorLists[1] {
				rem := a.TensorLists[4][i].Float64s()
				v := p.Float64s()
				for j := range v {
					if rem[j] < 0 {
						v[j] *= 1 - 0x1p-8
					}
				}
				err = errors.Join(err, p.SetFloat64s(v))
			}
			return err
		}),
		mutate("amax is overwritten", ops.MultiTensorAdamFP8, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			for _, amax := range a.TensorLists[6] {
				amax.Set(0, 0)
			}
			return right(x, a)
		}),
		mutate("decay is always before the momentum", ops.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
			a.WDAfterMomentum = false
			return right(x, a)
		}),
		mutate("first run reads the momentum", ops.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
			a.FirstRun = false
			return right(x, a)
		}),
		mutate("only a flag of 1 ends the step", ops.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
			if a.NoopFlag.At(0) != 1 {
				a.NoopFlag.Set(0, 0)
			}
			return right(x, a)
		}),
	}
}

func quantizeMutants() []mutant {
	type (
		exec     = opregistry.Exec
		scale    = ops.MultiTensorComputeScaleAndScaleInvArgs
		quantize = ops.QuantizeArgs
		cast     = ops.NVFP42DPartialCastArgs
	)
	return []mutant{
		mutate("powers of two are rounded to nearest", ops.MultiTensorComputeScaleAndScaleInv, tensor.F32, func(right opregistry.Func[scale], x *exec, a scale) error {
			pow2 := a.ForcePow2Scales
			a.ForcePow2Scales = false
			err := right(x, a)
			for _, s := range a.TensorLists[1] {
				if pow2 {
					err = errors.Join(err, each(s, func(v float64) float64 { return math.Exp2(math.Round(math.Log2(v))) }))
				}
			}
			return err
		}),
		mutate("448 is forgotten", ops.MultiTensorComputeScaleInvE8M0, tensor.F32, func(_ opregistry.Func[ops.MultiTensorComputeScaleInvE8M0Args], _ *exec, a ops.MultiTensorComputeScaleInvE8M0Args) error {
			for i, amax := range a.TensorLists[0] {
				v := amax.Float64s()
				for j := range v {
					v[j] = float64(tensor.CeilFloat8E8M0(v[j]))
				}
				if err := a.TensorLists[1][i].SetFloat64s(v); err != nil {
					return err
				}
			}
			return nil
		}),
		mutate("nan counts", ops.ComputeAmax, tensor.F32, func(right opregistry.Func[ops.ComputeAmaxArgs], x *exec, a ops.ComputeAmaxArgs) error {
			err := right(x, a)
			for _, v := range a.Input.Float64s() {
				if math.IsNaN(v) {
					a.Amax.Set(v, 0)
				}
			}
			return err
		}),
		mutate("history is rolled without an amax", ops.FusedAmaxAndScaleUpdateAfterReduction, tensor.F32, func(right opregistry.Func[ops.FusedAmaxAndScaleUpdateArgs], x *exec, a ops.FusedAmaxAndScaleUpdateArgs) error {
			err := right(x, a)
			for i, h := range a.AmaxHistories {
				for col := range h.Shape()[1] {
					if i == 0 && a.AmaxReductionBuffer.At(col) == 0 && h.Shape()[0] > 2 {
						h.Set(h.At(2, col), 1, col)
					}
				}
			}
			return err
		}),
		mutate("noop is ignored", ops.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Noop = nil
			return right(x, a)
		}),
		mutate("nearest instead of stochastic", ops.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Quantizer.Stochastic = false
			return right(x, a)
		}),
		mutate("epsilon is ignored", ops.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Quantizer.AmaxEpsilon = 0
			if a.Quantizer.ForcePow2Scales && a.Quantizer.Scaling == ops.CurrentScaling {
				return each(a.Output.ScaleInv, func(float64) float64 { return 1 })
			}
			return right(x, a)
		}),
		mutate("columns have the scales of rows", ops.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			err := right(x, a)
			if s := a.Output.ColumnwiseScaleInv; a.Quantizer.Scaling == ops.MXFP8Scaling && s != nil && s.NumElements() > 0 && a.Output.ScaleInv != nil {
				s.Set(a.Output.ScaleInv.At(0, 0)+1, 0, 0)
			}
			return err
		}),
		mutate("the amax is forgotten", ops.Dequantize, tensor.F32, func(right opregistry.Func[ops.DequantizeArgs], x *exec, a ops.DequantizeArgs) error {
			err := right(x, a)
			if a.Scaling == ops.NVFP4Scaling {
				return errors.Join(err, each(a.Output, func(v float64) float64 { return v / 3 }))
			}
			return err
		}),
		mutate("bias of the quantised gradient", ops.BgradQuantize, tensor.F32, func(right opregistry.Func[ops.BgradQuantizeArgs], x *exec, a ops.BgradQuantizeArgs) error {
			return errors.Join(right(x, a), each(a.DBias, func(v float64) float64 { return v * 1.001 }))
		}),
		mutate("the shard begins at 0", ops.FP8BlockScalingPartialCast, tensor.F32, func(right opregistry.Func[ops.PartialCastArgs], x *exec, a ops.PartialCastArgs) error {
			a.StartOffset = 0
			return right(x, a)
		}),
		mutate("the last half byte is cleared", ops.NVFP42DPartialCast, tensor.F32, func(right opregistry.Func[cast], x *exec, a cast) error {
			err := right(x, a)
			if n := a.Out.NumElements(); a.Inp.NumElements()%2 == 1 {
				a.Out.Set(float64(uint8(a.Out.At(n-1))&15), n-1)
			}
			return err
		}),
		mutate("patterns of NaN are not kept", ops.FP8Transpose, tensor.F32, func(right opregistry.Func[ops.FP8TransposeArgs], x *exec, a ops.FP8TransposeArgs) error {
			return errors.Join(right(x, a), each(a.Out, func(v float64) float64 { return v }))
		}),
	}
}
