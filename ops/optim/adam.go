package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorAdamParamRemainder is MultiTensorAdam over lists [g, p, m, v, rem] whose f32 master
// weights are stored in two halves: p holds them in bf16, rounded to nearest, and rem, i16, the
// lower 16 bits of their pattern.
//
//	bits = p<<16 + rem      rem is signed: a negative value undoes the rounding up
//
// The master weight is assembled, updated as in MultiTensorAdam, and split again: rem is its lower
// half and p its upper half, plus one where rem is negative. No bit is lost; ties of p round away
// from zero. g is read, the others are updated in place and share memory with no other operand.
// Source: TransformerEngine 2.14.
var MultiTensorAdamParamRemainder = opregistry.NewOp("multi_tensor_adam_param_remainder", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam step with f32 master weights held as bf16 and a 16-bit remainder",
	Validate: func(a MultiTensorAdamArgs) error {
		c := check.Call{Op: "multi_tensor_adam_param_remainder"}
		if len(a.TensorLists) != 5 {
			c.Fail("tensor_lists", "5 lists (g, p, m, v, remainder)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag, check.Computes, check.OfBF16, check.Computes, check.Computes, check.OfI16)
		step(&c, a.Step)
		adam(&c, a.Mode, a.Beta1, a.Beta2)
		c.MultiTensorApart(a.TensorLists, check.AfterFirst, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorAdamArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessUpdate)
	},
})

// MultiTensorAdamFP8 is MultiTensorAdam over lists [g, p, m, v, master, scale, amax, scale_inv]
// with f32 master weights. p becomes their copy in an fp8 dtype, with one scale per tensor:
//
//	p = fp8(master·scale)      amax = max(amax, max|master|)      scale_inv = 1/scale
//
// Values beyond the range of p's dtype become its largest value, NaN stays NaN. NaNs are ignored in
// amax. scale, amax and scale_inv are f32 with one element per tensor. g and scale are read, p and
// scale_inv are written, the others are updated; operands that are written or updated share memory
// with no other operand. Source: TransformerEngine 2.14.
var MultiTensorAdamFP8 = opregistry.NewOp("multi_tensor_adam_fp8", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam step with f32 master weights and an fp8 copy of them",
	Validate: func(a MultiTensorAdamArgs) error {
		c := check.Call{Op: "multi_tensor_adam_fp8"}
		if len(a.TensorLists) != 8 {
			c.Fail("tensor_lists", "8 lists (g, p, m, v, master, scale, amax, scale_inv)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		number := check.OfF32 | check.OfOneElement
		c.Lists(a.TensorLists, a.NoopFlag, check.Computes, check.OfFP8, check.Computes, check.Computes, check.OfF32, number, number, number)
		step(&c, a.Step)
		adam(&c, a.Mode, a.Beta1, a.Beta2)
		c.MultiTensorApart(a.TensorLists, func(list int) bool { return list != 0 && list != 5 }, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorAdamArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessWrite, opregistry.AccessUpdate, opregistry.AccessUpdate,
			opregistry.AccessUpdate, opregistry.AccessRead, opregistry.AccessUpdate, opregistry.AccessWrite)
	},
})

// MultiTensorAdamCapturableArgs are the arguments of MultiTensorAdamCapturable
// and MultiTensorAdamCapturableMaster.
type MultiTensorAdamCapturableArgs struct {
	NoopFlag       *tensor.Tensor     // i32 [1]: a call with a value of 1 does nothing
	TensorLists    [][]*tensor.Tensor // g, p, m, v; with master also its f32 weights
	LR             *tensor.Tensor     // f32 [1]
	Beta1, Beta2   float32
	Epsilon        float32
	Step           *tensor.Tensor // i32 [1], from 1
	Mode           AdamMode
	BiasCorrection bool
	WeightDecay    float32
	InvScale       *tensor.Tensor // f32 [1], factor of the gradients
}

// MultiTensorAdamCapturable is MultiTensorAdam over lists [g, p, m, v] whose learning rate, step
// and gradient scale are tensors, so that a recorded sequence of calls can run again with other
// values.
//
//	g = g·inv_scale, then as MultiTensorAdam
//
// The unscaled gradient is rounded where it is stored and used unrounded. A flag of 1 ends the call
// before anything is written; other values have no effect. All lists are updated in place and share
// memory with no other operand. Validation does not read step; with BiasCorrection a step of 0
// divides by zero. Source: TransformerEngine 2.14.
var MultiTensorAdamCapturable = opregistry.NewOp("multi_tensor_adam_capturable", opregistry.Schema[MultiTensorAdamCapturableArgs]{
	Doc: "Adam step whose learning rate, step and gradient scale are tensors",
	Validate: func(a MultiTensorAdamCapturableArgs) error {
		return a.validate("multi_tensor_adam_capturable", 4, "4 lists (g, p, m, v)")
	},
	Operands: MultiTensorAdamCapturableArgs.operands,
})

// MultiTensorAdamCapturableMaster is MultiTensorAdamCapturable over lists [g, p, m, v, master]: the
// f32 master weights are updated and p becomes their rounded copy.
var MultiTensorAdamCapturableMaster = opregistry.NewOp("multi_tensor_adam_capturable_master", opregistry.Schema[MultiTensorAdamCapturableArgs]{
	Doc: "multi_tensor_adam_capturable with f32 master weights",
	Validate: func(a MultiTensorAdamCapturableArgs) error {
		return a.validate("multi_tensor_adam_capturable_master", 5, "5 lists (g, p, m, v, master)")
	},
	Operands: MultiTensorAdamCapturableArgs.operands,
})

func (a MultiTensorAdamCapturableArgs) validate(op string, lists int, want string) error {
	c := check.Call{Op: op}
	if len(a.TensorLists) != lists {
		c.Fail("tensor_lists", want, "%d lists", len(a.TensorLists))
		return c.Err
	}
	c.Lists(a.TensorLists, a.NoopFlag, check.Computes, check.Computes, check.Computes, check.Computes, check.OfF32)
	c.Scalar("lr", a.LR)
	if c.DType("step", a.Step, tensor.I32) {
		c.Elements("step", a.Step, 1, "a number")
	}
	c.Scalar("inv_scale", a.InvScale)
	adam(&c, a.Mode, a.Beta1, a.Beta2)
	c.MultiTensorApart(a.TensorLists, check.AllLists, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false}, check.Single{Name: "lr", Tensor: a.LR, Written: false},
		check.Single{Name: "step", Tensor: a.Step, Written: false}, check.Single{Name: "inv_scale", Tensor: a.InvScale, Written: false})
	return c.Err
}

func (a MultiTensorAdamCapturableArgs) operands() []opregistry.Operand {
	return check.Operands{}.Lists(a.TensorLists, opregistry.AccessUpdate).Read("noop_flag", a.NoopFlag).
		Read("lr", a.LR).Read("step", a.Step).Read("inv_scale", a.InvScale)
}

func step(c *check.Call, step int) {
	if c.Err == nil && step < 1 {
		c.Fail("step", "a step >= 1", "%d", step)
	}
}

// adam checks the numbers that all Adam ops have.
func adam(c *check.Call, mode AdamMode, beta1, beta2 float32) {
	if c.Err == nil && mode != AdamL2 && mode != AdamDecay {
		c.Fail("mode", "0 (L2) or 1 (AdamW)", "%d", mode)
	}
	if c.Err == nil && !(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1) {
		c.Fail("beta1, beta2", "numbers in [0, 1)", "%v, %v", beta1, beta2)
	}
}
