package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// AdamMode says how weight decay enters multi_tensor_adam.
type AdamMode int

// The modes, with TransformerEngine's numbers.
const (
	AdamL2    AdamMode = 0 // wd·p is added to the gradient
	AdamDecay AdamMode = 1 // AdamW: wd·p is added to the update
)

// MultiTensorAdamArgs are the arguments of MultiTensorAdam.
type MultiTensorAdamArgs struct {
	NoopFlag       *tensor.Tensor     `op:"0 noop_flag read i32 (1)"` // ignored here, so that infinities propagate
	TensorLists    [][]*tensor.Tensor `op:"1 tensor_lists"`           // master: f32 weights, when there is a fifth list
	LR             float32            `op:"2 lr"`
	Beta1          float32            `op:"3 beta1 [0,1)"`
	Beta2          float32            `op:"4 beta2 [0,1)"`
	Epsilon        float32            `op:"5 epsilon"`
	Step           int                `op:"6 step >=1"` // from 1
	Mode           AdamMode           `op:"7 mode"`
	BiasCorrection bool               `op:"8 bias_correction"`
	WeightDecay    float32            `op:"9 weight_decay"`
}

// MultiTensorAdam performs one Adam step for each tensor of the lists [g, p, m, v].
var MultiTensorAdam = opregistry.NewOp("multi_tensor_adam", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam or AdamW step over lists of tensors, in place",
	Formula: `
		multi_tensor_adam performs one Adam step for each tensor of the lists [g, p, m, v]:

		  m = β₁·m + (1−β₁)·g      v = β₂·v + (1−β₂)·g²
		  u = (m/c₁) / (√(v/c₂) + ε)      c₁ = 1−β₁^step, c₂ = 1−β₂^step, both 1 without bias_correction
		  mode 0 (L2):     g += wd·p first;  p −= lr·u
		  mode 1 (AdamW):  p −= lr·(u + wd·p)

		With a fifth list the f32 master weights are updated and p becomes their rounded copy.
		Arithmetic is in f32 or better. Source: Kingma and Ba 2015, arXiv:1412.6980; Loshchilov and
		Hutter 2019, arXiv:1711.05101; TransformerEngine 2.14.

		Arguments:

		  noop_flag     ignored here, so that infinities propagate
		  tensor_lists  master: f32 weights, when there is a fifth list
		  step          from 1

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 -2] tensor_lists[1][0]=[1 1] tensor_lists[2][0]=[0
		    0.5] tensor_lists[3][0]=[0 1] lr=0.1 beta1=0.9 beta2=0.5 epsilon=1e-8 step=1 mode=1
		    bias_correction=1 weight_decay=0.01 → tensor_lists[1][0]=[0.899 0.8872]
		    tensor_lists[2][0]=[0.1 0.25] tensor_lists[3][0]=[0.5 2.5]
	`,
	Lists:     "g read compute lead; p update compute; m update compute; v update compute; master? update f32",
	Check:     adamMode,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "β^step in f32 loses 1e-6 relative in c₁ and c₂"),
})

// MultiTensorScaleArgs are the arguments of MultiTensorScale.
type MultiTensorScaleArgs struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag update i32 (1)"`
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists"`
	Scale       float32            `op:"2 scale"`
}

// MultiTensorScale multiplies each tensor of the first list by a scale and writes it to the second
// list.
var MultiTensorScale = opregistry.NewOp("multi_tensor_scale", opregistry.Schema[MultiTensorScaleArgs]{
	Doc: "multiplies lists of tensors by a number",
	Formula: `
		multi_tensor_scale multiplies each tensor of the first list by a scale and writes it to the
		second list:

		  out = in · scale

		out is written whether or not the flag is set. Each out may be its own in. The product is
		formed in f32 or better and rounded to out's dtype. The flag becomes 1 when an input is not
		finite and is never cleared. Source: TransformerEngine 2.14.

		Arguments:

		  noop_flag  set to 1 when an input is not finite

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 2] scale=0.5 → noop_flag=i32[0]
		    tensor_lists[1][0]=[0.5 1]
	`,
	Lists:     "in read compute lead; out write compute may=in",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one product; to narrow storage it may be rounded to f32 first"},
})

// MultiTensorL2NormArgs are the arguments of MultiTensorL2Norm.
type MultiTensorL2NormArgs struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag update i32 (1)"`
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists len=n"`
	Norm        *tensor.Tensor     `op:"2 norm write f32 (1)"`
	PerTensor   *tensor.Tensor     `op:"3 per_tensor write f32 (n) ?"`
}

// MultiTensorL2Norm computes the Euclidean norm of all elements of a list, and of each tensor when
// PerTensor is given.
var MultiTensorL2Norm = opregistry.NewOp("multi_tensor_l2norm", opregistry.Schema[MultiTensorL2NormArgs]{
	Doc: "Euclidean norm over a list of tensors",
	Formula: `
		multi_tensor_l2norm computes the Euclidean norm of all elements of a list, and of each
		tensor when per_tensor is given:

		  norm = √(Σ_t Σ_i t[i]²)

		Sums are f32 or better and run in a fixed order. The flag becomes 1 when a sum is not finite
		and is never cleared. An empty list has the norm 0. Source: TransformerEngine 2.14.

		Arguments:

		  noop_flag   set to 1 when a sum is not finite
		  per_tensor  nil when not wanted

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[3] tensor_lists[0][1]=[0 4] → noop_flag=i32[0]
		    norm=[5] per_tensor=[3 4]
	`,
	Lists:     "t read compute lead",
	Tolerance: opregistry.Arithmetic(0, 2e-5, "a sum of up to 5000 squares"),
})

// MultiTensorScaleTensorArgs are the arguments of MultiTensorScaleTensor.
type MultiTensorScaleTensorArgs struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag update i32 (1)"`
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists"`
	Scale       *tensor.Tensor     `op:"2 scale read f32 (1)"`
}

// MultiTensorScaleTensor is MultiTensorScale with a tensor as the scale.
var MultiTensorScaleTensor = opregistry.NewOp("multi_tensor_scale_tensor", opregistry.Schema[MultiTensorScaleTensorArgs]{
	Doc: "multiplies lists of tensors by a number held in a tensor",
	Formula: `
		multi_tensor_scale_tensor is multi_tensor_scale with a tensor as the scale.

		Arguments:

		  noop_flag  set to 1 when an input is not finite

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 2] scale=[0.5] → noop_flag=i32[0]
		    tensor_lists[1][0]=[0.5 1]
	`,
	Lists:     "in read compute lead; out write compute may=in",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "as multi_tensor_scale"},
})

// MultiTensorUnscaleL2NormArgs are the arguments of MultiTensorUnscaleL2Norm.
type MultiTensorUnscaleL2NormArgs struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag update i32 (1)"`
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists len=n"`
	InvScale    *tensor.Tensor     `op:"2 inv_scale read f32 (1)"`
	Norm        *tensor.Tensor     `op:"3 norm write f32 (1)"`
	PerTensor   *tensor.Tensor     `op:"4 per_tensor write f32 (n) ?"`
}

// MultiTensorUnscaleL2Norm is MultiTensorL2Norm of the tensors multiplied by inv_scale.
var MultiTensorUnscaleL2Norm = opregistry.NewOp("multi_tensor_unscale_l2norm", opregistry.Schema[MultiTensorUnscaleL2NormArgs]{
	Doc: "Euclidean norm over a list of tensors times a number",
	Formula: `
		multi_tensor_unscale_l2norm is multi_tensor_l2norm of the tensors multiplied by inv_scale.
		The tensors themselves do not change:

		  norm = √(Σ_t Σ_i (t[i]·inv_scale)²)

		Arguments:

		  noop_flag   set to 1 when a sum is not finite
		  per_tensor  nil when not wanted

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[3] tensor_lists[0][1]=[0 4] inv_scale=[0.5] →
		    noop_flag=i32[0] norm=[2.5] per_tensor=[1.5 2]
	`,
	Lists:     "t read compute lead",
	Tolerance: opregistry.Arithmetic(0, 2e-5, "as multi_tensor_l2norm"),
})

// adamMode checks the mode, which all Adam ops have.
func adamMode(c *opregistry.Check, a *MultiTensorAdamArgs) { a.Mode.check(c) }

func (m AdamMode) check(c *opregistry.Check) {
	if m != AdamL2 && m != AdamDecay {
		c.Fail("mode", "0 (L2) or 1 (AdamW)", "%d", m)
	}
}
