package main

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/dropout"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// functionMutants returns the mutants of activations, softmaxes, dropout and related ops.
func functionMutants() []mutant {
	type (
		exec    = opregistry.Exec
		act     = activation.ActivationArgs
		dact    = activation.DActivationArgs
		dbias   = activation.DBiasDActivationArgs
		clamped = activation.ClampedDSwiGLUArgs
		soft    = softmax.SoftmaxArgs
		masked  = softmax.ScaledMaskedSoftmaxForwardArgs
		norm    = normops.LayerNormFwdArgs
		add     = normops.RMSNormBwdAddArgs
		qkv     = rope.FusedQKVRopeArgs
		drop    = dropout.DropoutFwdArgs
	)
	return []mutant{
		mutate("error function", activation.GELU, tensor.F32, func(right opregistry.Func[act], x *exec, a act) error {
			y := a.Input.Float64s()
			for i, v := range y {
				y[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
			}
			return a.Output.SetFloat64s(y)
		}),
		mutate("nan becomes 0", activation.ReLU, tensor.F32, func(right opregistry.Func[act], x *exec, a act) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.Output, func(v float64) float64 {
				if math.IsNaN(v) {
					return 0
				}
				return v
			})
		}),
		mutate("gradient is chosen, not multiplied", activation.DReLU, tensor.F32, func(_ opregistry.Func[dact], x *exec, a dact) error {
			dx := a.Grad.Float64s()
			for i, v := range a.FwdInput.Float64s() {
				if v <= 0 {
					dx[i] = 0
				}
			}
			return a.Output.SetFloat64s(dx)
		}),
		mutate("sum of grad", activation.DBiasDGELU, tensor.F32, func(right opregistry.Func[dbias], x *exec, a dbias) error {
			sums, grad := make([]float64, a.DBias.NumElements()), a.Grad.Float64s()
			for i, v := range grad {
				sums[i%len(sums)] += v
			}
			if err := right(x, a); err != nil {
				return err
			}
			return a.DBias.SetFloat64s(sums)
		}),
		mutate("limit is open", activation.ClampedDSwiGLU, tensor.F32, func(right opregistry.Func[clamped], x *exec, a clamped) error {
			limit := a.Limit.Or(7)
			a.Limit = opregistry.Float(math.Nextafter32(limit, -1))
			if limit == 0 {
				a.Limit = opregistry.Float(0)
			}
			return right(x, a)
		}),
		mutate("logits are rounded", softmax.ScaledSoftmaxForward, tensor.BF16, func(right opregistry.Func[soft], x *exec, a soft) error {
			z := a.Input.Float64s()
			for i := range z {
				z[i] *= float64(a.ScaleFactor)
			}
			if _, err := rounded(a.Output, z); err != nil {
				return err
			}
			return right(x, soft{Input: a.Output, Output: a.Output, ScaleFactor: 1})
		}),
		mutate("no maximum is subtracted", softmax.ScaledSoftmaxForward, tensor.F32, func(_ opregistry.Func[soft], x *exec, a soft) error {
			y := a.Input.Float64s()
			for i, v := range y {
				y[i] = float64(float32(math.Exp(float64(a.ScaleFactor) * v)))
			}
			return a.Output.SetFloat64s(shares(y, a.Output.Shape().Cols()))
		}),
		mutate("aligned to the top left", softmax.ScaledAlignedCausalMaskedSoftmaxForward, tensor.F32, func(right opregistry.Func[soft], x *exec, a soft) error {
			if err := right(x, a); err != nil {
				return err
			}
			y, rows, cols := a.Output.Float64s(), a.Output.Shape()[2], a.Output.Shape()[3]
			for i := range y {
				if i%cols > i/cols%rows {
					y[i] = 0
				}
			}
			return a.Output.SetFloat64s(shares(y, cols))
		}),
		mutate("every byte but 0 masks", softmax.ScaledMaskedSoftmaxForward, tensor.F32, func(right opregistry.Func[masked], x *exec, a masked) error {
			if a.Mask.DType() == tensor.U8 {
				bits, err := tensor.FromSlice(make([]bool, a.Mask.NumElements()), a.Mask.Shape()...)
				if err != nil {
					return err
				}
				if err := bits.SetFloat64s(a.Mask.Float64s()); err != nil {
					return err
				}
				a.Mask = bits
			}
			return right(x, a)
		}),
		mutate("all heads have the first batch's mask", softmax.ScaledMaskedSoftmaxForward, tensor.F32, func(right opregistry.Func[masked], x *exec, a masked) error {
			if a.Mask.Shape()[0] > 1 {
				var err error
				if a.Mask, err = a.Mask.Slice(0, 0, 1); err != nil {
					return err
				}
			}
			return right(x, a)
		}),
		mutate("mean is kept in bf16", normops.LayerNormFwd, tensor.BF16, func(right opregistry.Func[norm], x *exec, a norm) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.Mu, func(v float64) float64 { return float64(tensor.ToBFloat16(float32(v)).Float32()) })
		}),
		mutate("bias is forgotten", normops.LayerNormFwd, tensor.F32, func(right opregistry.Func[norm], x *exec, a norm) error {
			a.Bias = nil
			return right(x, a)
		}),
		mutate("added after rounding", normops.RMSNormBwdAdd, tensor.BF16, func(right opregistry.Func[add], x *exec, a add) error {
			more := a.Add.Float64s()
			if err := right(x, a); err != nil {
				return err
			}
			dx := a.DX.Float64s()
			for i := range dx {
				dx[i] -= more[i]
			}
			dx, err := rounded(a.DX, dx)
			if err != nil {
				return err
			}
			for i := range dx {
				dx[i] += more[i]
			}
			return a.DX.SetFloat64s(dx)
		}),
		mutate("keys turn like queries", rope.FusedQKVRopeForward, tensor.F32, func(right opregistry.Func[qkv], x *exec, a qkv) error {
			if a.QFreqs.Shape().Equal(a.KFreqs.Shape()) {
				a.KFreqs = a.QFreqs
			}
			return right(x, a)
		}),
		mutate("highest bit first", dropout.DropoutFwd, tensor.F32, func(right opregistry.Func[drop], x *exec, a drop) error {
			if err := right(x, a); err != nil {
				return err
			}
			return each(a.Mask, func(v float64) float64 {
				flipped := 0
				for bit := range 8 {
					flipped |= int(v) >> bit & 1 << (7 - bit)
				}
				return float64(flipped)
			})
		}),
		mutate("24 of 32 random bits are compared", dropout.DropoutFwd, tensor.F32, func(right opregistry.Func[drop], x *exec, a drop) error {
			limit := uint64(float64(a.DropoutProbability) * 0x1p32)
			a.DropoutProbability = float32(limit>>8) * 0x1p-24
			return right(x, a)
		}),
		mutate("upper half of the offset is lost", dropout.DropoutFwd, tensor.F32, func(right opregistry.Func[drop], x *exec, a drop) error {
			a.Offset = uint64(uint32(a.Offset))
			if a.Offset+uint64(a.Input.NumElements()) > 1<<32 {
				a.Offset += 1 << 40
			}
			return right(x, a)
		}),
	}
}

// shares divides rows by their sums.
func shares(v []float64, cols int) []float64 {
	for r := 0; r < len(v); r += cols {
		sum := 0.0
		for _, x := range v[r : r+cols] {
			sum += x
		}
		for j := r; j < r+cols && sum != 0; j++ {
			v[j] /= sum
		}
	}
	return v
}
