package main

import (
	"errors"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

func optimizerMutants() []mutant {
	type (
		exec       = opregistry.Exec
		capturable = optim.MultiTensorAdamCapturableArgs
		adam       = optim.MultiTensorAdamArgs
		sgd        = optim.MultiTensorSGDArgs
	)
	one := func() *tensor.Tensor {
		x, err := tensor.FromSlice([]float32{1})
		if err != nil {
			panic(err)
		}
		return x
	}
	return []mutant{
		mutate("inv_scale is ignored", optim.MultiTensorAdamCapturable, tensor.F32, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			a.InvScale = one()
			return right(x, a)
		}),
		mutate("any flag ends the step", optim.MultiTensorAdamCapturableMaster, tensor.F32, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			if a.NoopFlag.At(0) != 0 {
				return nil
			}
			return right(x, a)
		}),
		mutate("gradients stay scaled", optim.MultiTensorAdamCapturable, tensor.BF16, func(right opregistry.Func[capturable], x *exec, a capturable) error {
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
		mutate("moments are not corrected after 1,000 steps", optim.MultiTensorAdam, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			a.BiasCorrection = a.BiasCorrection && a.Step <= 1000
			return right(x, a)
		}),
		mutate("moments are not corrected after 10,000 steps", optim.MultiTensorAdamCapturable, tensor.F32, func(right opregistry.Func[capturable], x *exec, a capturable) error {
			if a.Step.At(0) > 10_000 {
				a.BiasCorrection = false
			}
			return right(x, a)
		}),
		mutate("remainder is lost", optim.MultiTensorAdamParamRemainder, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			for _, rem := range a.TensorLists[4] {
				if err := each(rem, func(float64) float64 { return 0 }); err != nil {
					return err
				}
			}
			return right(x, a)
		}),
		mutate("weights are rounded down", optim.MultiTensorAdamParamRemainder, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
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
		mutate("amax is overwritten", optim.MultiTensorAdamFP8, tensor.F32, func(right opregistry.Func[adam], x *exec, a adam) error {
			for _, amax := range a.TensorLists[6] {
				amax.Set(0, 0)
			}
			return right(x, a)
		}),
		mutate("decay is always before the momentum", optim.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
			a.WDAfterMomentum = false
			return right(x, a)
		}),
		mutate("first run reads the momentum", optim.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
			a.FirstRun = false
			return right(x, a)
		}),
		mutate("only a flag of 1 ends the step", optim.MultiTensorSGD, tensor.F32, func(right opregistry.Func[sgd], x *exec, a sgd) error {
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
		scale    = quant.MultiTensorComputeScaleAndScaleInvArgs
		quantize = quant.QuantizeArgs
		cast     = quant.NVFP42DPartialCastArgs
	)
	return []mutant{
		mutate("powers of two are rounded to nearest", quant.MultiTensorComputeScaleAndScaleInv, tensor.F32, func(right opregistry.Func[scale], x *exec, a scale) error {
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
		mutate("448 is forgotten", quant.MultiTensorComputeScaleInvE8M0, tensor.F32, func(_ opregistry.Func[quant.MultiTensorComputeScaleInvE8M0Args], _ *exec, a quant.MultiTensorComputeScaleInvE8M0Args) error {
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
		mutate("nan counts", quant.ComputeAmax, tensor.F32, func(right opregistry.Func[quant.ComputeAmaxArgs], x *exec, a quant.ComputeAmaxArgs) error {
			err := right(x, a)
			for _, v := range a.Input.Float64s() {
				if math.IsNaN(v) {
					a.Amax.Set(v, 0)
				}
			}
			return err
		}),
		mutate("history is rolled without an amax", quant.FusedAmaxAndScaleUpdateAfterReduction, tensor.F32, func(right opregistry.Func[quant.FusedAmaxAndScaleUpdateArgs], x *exec, a quant.FusedAmaxAndScaleUpdateArgs) error {
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
		mutate("noop is ignored", quant.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Noop = nil
			return right(x, a)
		}),
		mutate("nearest instead of stochastic", quant.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Quantizer.Stochastic = false
			return right(x, a)
		}),
		mutate("epsilon is ignored", quant.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			a.Quantizer.AmaxEpsilon = 0
			if a.Quantizer.ForcePow2Scales && a.Quantizer.Scaling == quant.CurrentScaling {
				return each(a.Output.ScaleInv, func(float64) float64 { return 1 })
			}
			return right(x, a)
		}),
		mutate("columns have the scales of rows", quant.Quantize, tensor.F32, func(right opregistry.Func[quantize], x *exec, a quantize) error {
			err := right(x, a)
			if s := a.Output.ColumnwiseScaleInv; a.Quantizer.Scaling == quant.MXFP8Scaling && s != nil && s.NumElements() > 0 && a.Output.ScaleInv != nil {
				s.Set(a.Output.ScaleInv.At(0, 0)+1, 0, 0)
			}
			return err
		}),
		mutate("the amax is forgotten", quant.Dequantize, tensor.F32, func(right opregistry.Func[quant.DequantizeArgs], x *exec, a quant.DequantizeArgs) error {
			err := right(x, a)
			if a.Scaling == quant.NVFP4Scaling {
				return errors.Join(err, each(a.Output, func(v float64) float64 { return v / 3 }))
			}
			return err
		}),
		mutate("bias of the quantised gradient", quant.BgradQuantize, tensor.F32, func(right opregistry.Func[quant.BgradQuantizeArgs], x *exec, a quant.BgradQuantizeArgs) error {
			return errors.Join(right(x, a), each(a.DBias, func(v float64) float64 { return v * 1.001 }))
		}),
		mutate("the shard begins at 0", quant.FP8BlockScalingPartialCast, tensor.F32, func(right opregistry.Func[quant.PartialCastArgs], x *exec, a quant.PartialCastArgs) error {
			a.StartOffset = 0
			return right(x, a)
		}),
		mutate("the last half byte is cleared", quant.NVFP42DPartialCast, tensor.F32, func(right opregistry.Func[cast], x *exec, a cast) error {
			err := right(x, a)
			if n := a.Out.NumElements(); a.Inp.NumElements()%2 == 1 {
				a.Out.Set(float64(uint8(a.Out.At(n-1))&15), n-1)
			}
			return err
		}),
		mutate("patterns of NaN are not kept", quant.FP8Transpose, tensor.F32, func(right opregistry.Func[quant.FP8TransposeArgs], x *exec, a quant.FP8TransposeArgs) error {
			return errors.Join(right(x, a), each(a.Out, func(v float64) float64 { return v }))
		}),
	}
}
