package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorAdamParamRemainder is MultiTensorAdam over lists [g, p, m, v, rem] whose f32 master
// weights are stored in two halves.
var MultiTensorAdamParamRemainder = opregistry.NewOp("multi_tensor_adam_param_remainder", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam step with f32 master weights held as bf16 and a 16-bit remainder",
	Formula: `
		multi_tensor_adam_param_remainder is multi_tensor_adam over lists [g, p, m, v, rem] whose
		f32 master weights are stored in two halves: p holds them in bf16, rounded to nearest, and
		rem, i16, the lower 16 bits of their pattern.

		  bits = p<<16 + rem      rem is signed: a negative value undoes the rounding up

		The master weight is assembled, updated as in multi_tensor_adam, and split again: rem is its
		lower half and p its upper half, plus one where rem is negative. No bit is lost; ties of p
		round away from zero. Source: TransformerEngine 2.14.

		Arguments:

		  noop_flag     ignored here, so that infinities propagate
		  tensor_lists  master: f32 weights, when there is a fifth list
		  step          from 1

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 -2] tensor_lists[1][0]=bf16[1 1]
		    tensor_lists[2][0]=[0 0.5] tensor_lists[3][0]=[0 1] tensor_lists[4][0]=i16[0 0] lr=0.1
		    beta1=0.9 beta2=0.5 epsilon=1e-8 step=1 mode=1 bias_correction=1 →
		    tensor_lists[1][0]=bf16[0.8984 0.8867] tensor_lists[2][0]=[0.1 0.25]
		    tensor_lists[3][0]=[0.5 2.5] tensor_lists[4][0]=i16[26214 24800]
	`,
	Lists:     "g read compute lead; p update bf16; m update compute; v update compute; remainder update i16",
	Check:     adamMode,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "as multi_tensor_adam"),
})

// MultiTensorAdamFP8 is MultiTensorAdam over lists [g, p, m, v, master, scale, amax, scale_inv]
// with f32 master weights.
var MultiTensorAdamFP8 = opregistry.NewOp("multi_tensor_adam_fp8", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam step with f32 master weights and an fp8 copy of them",
	Formula: `
		multi_tensor_adam_fp8 is multi_tensor_adam over lists [g, p, m, v, master, scale, amax,
		scale_inv] with f32 master weights. p becomes their copy in an fp8 dtype, with one scale per
		tensor:

		  p = fp8(master·scale)      amax = max(amax, max|master|)      scale_inv = 1/scale

		Values beyond the range of p's dtype become its largest value, NaN stays NaN. NaNs are
		ignored in amax. Source: TransformerEngine 2.14.

		Arguments:

		  noop_flag     ignored here, so that infinities propagate
		  tensor_lists  master: f32 weights, when there is a fifth list
		  step          from 1

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 -2] tensor_lists[2][0]=[0 0.5]
		    tensor_lists[3][0]=[0 1] tensor_lists[4][0]=[1 1] tensor_lists[5][0]=[2]
		    tensor_lists[6][0]=[0.5] lr=0.1 beta1=0.9 beta2=0.5 epsilon=1e-8 step=1 mode=1
		    bias_correction=1 → tensor_lists[1][0]=f8e4m3[1.75 1.75] tensor_lists[2][0]=[0.1 0.25]
		    tensor_lists[3][0]=[0.5 2.5] tensor_lists[4][0]=[0.9 0.8882] tensor_lists[6][0]=[0.9]
		    tensor_lists[7][0]=[0.5]
	`,
	Lists: "g read compute lead; p write fp8; m update compute; v update compute; master update f32; " +
		"scale read f32 (1); amax update f32 (1); scale_inv write f32 (1)",
	Check:     adamMode,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "as multi_tensor_adam"),
})

// MultiTensorAdamCapturableArgs are the arguments of MultiTensorAdamCapturable
// and MultiTensorAdamCapturableMaster.
type MultiTensorAdamCapturableArgs struct {
	NoopFlag       *tensor.Tensor     `op:"0 noop_flag read i32 (1)"` // a call with a value of 1 does nothing
	TensorLists    [][]*tensor.Tensor `op:"1 tensor_lists"`
	LR             *tensor.Tensor     `op:"2 lr read f32 (1)"`
	Beta1          float32            `op:"3 beta1 [0,1)"`
	Beta2          float32            `op:"4 beta2 [0,1)"`
	Epsilon        float32            `op:"5 epsilon"`
	Step           *tensor.Tensor     `op:"6 step read i32 (1)"` // from 1
	Mode           AdamMode           `op:"7 mode"`
	BiasCorrection bool               `op:"8 bias_correction"`
	WeightDecay    float32            `op:"9 weight_decay"`
	InvScale       *tensor.Tensor     `op:"10 inv_scale read f32 (1)"` // factor of the gradients
}

// MultiTensorAdamCapturable is MultiTensorAdam over lists [g, p, m, v] whose learning rate, step
// and gradient scale are tensors, so that a recorded sequence of calls can run again with other
// values.
var MultiTensorAdamCapturable = opregistry.NewOp("multi_tensor_adam_capturable", opregistry.Schema[MultiTensorAdamCapturableArgs]{
	Doc: "Adam step whose learning rate, step and gradient scale are tensors",
	Formula: `
		multi_tensor_adam_capturable is multi_tensor_adam over lists [g, p, m, v] whose learning
		rate, step and gradient scale are tensors, so that a recorded sequence of calls can run
		again with other values.

		  g = g·inv_scale, then as multi_tensor_adam

		The unscaled gradient is rounded where it is stored and used unrounded. A flag of 1 ends the
		call before anything is written; other values have no effect. Validation does not read step;
		with bias_correction a step of 0 divides by zero. Source: TransformerEngine 2.14.

		Arguments:

		  noop_flag  a call with a value of 1 does nothing
		  step       from 1
		  inv_scale  factor of the gradients

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[2 -4] tensor_lists[1][0]=[1 1] tensor_lists[2][0]=[0
		    0.5] tensor_lists[3][0]=[0 1] lr=[0.1] beta1=0.9 beta2=0.5 epsilon=1e-8 step=i32[1]
		    mode=1 bias_correction=1 inv_scale=[0.5] → tensor_lists[0][0]=[1 -2]
		    tensor_lists[1][0]=[0.9 0.8882] tensor_lists[2][0]=[0.1 0.25] tensor_lists[3][0]=[0.5
		    2.5]
	`,
	Lists:     "g update compute lead; p update compute; m update compute; v update compute",
	Check:     capturableMode,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "as multi_tensor_adam"),
})

// MultiTensorAdamCapturableMaster is MultiTensorAdamCapturable over lists [g, p, m, v, master].
var MultiTensorAdamCapturableMaster = opregistry.NewOp("multi_tensor_adam_capturable_master", opregistry.Schema[MultiTensorAdamCapturableArgs]{
	Doc: "multi_tensor_adam_capturable with f32 master weights",
	Formula: `
		multi_tensor_adam_capturable_master is multi_tensor_adam_capturable over lists [g, p, m, v,
		master]: the f32 master weights are updated and p becomes their rounded copy.

		Arguments:

		  noop_flag  a call with a value of 1 does nothing
		  step       from 1
		  inv_scale  factor of the gradients

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[2 -4] tensor_lists[1][0]=bf16[1 1]
		    tensor_lists[2][0]=[0 0.5] tensor_lists[3][0]=[0 1] tensor_lists[4][0]=[1 1] lr=[0.1]
		    beta1=0.9 beta2=0.5 epsilon=1e-8 step=i32[1] mode=1 bias_correction=1 inv_scale=[0.5] →
		    tensor_lists[0][0]=[1 -2] tensor_lists[1][0]=bf16[0.8984 0.8867] tensor_lists[2][0]=[0.1
		    0.25] tensor_lists[3][0]=[0.5 2.5] tensor_lists[4][0]=[0.9 0.8882]
	`,
	Lists:     "g update compute lead; p update compute; m update compute; v update compute; master update f32",
	Check:     capturableMode,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "as multi_tensor_adam"),
})

func capturableMode(c *opregistry.Check, a *MultiTensorAdamCapturableArgs) { a.Mode.check(c) }
