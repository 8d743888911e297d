package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
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
	NoopFlag       *tensor.Tensor     // i32 [1]; ignored here, so that infinities propagate
	TensorLists    [][]*tensor.Tensor // g, p, m, v, and optionally f32 master weights
	LR             float32
	Beta1, Beta2   float32
	Epsilon        float32
	Step           int // from 1
	Mode           AdamMode
	BiasCorrection bool
	WeightDecay    float32
}

// MultiTensorAdam performs one Adam step for each tensor of the lists [g, p, m, v]:
//
//	m = β₁·m + (1−β₁)·g      v = β₂·v + (1−β₂)·g²
//	u = (m/c₁) / (√(v/c₂) + ε)      c₁ = 1−β₁^step, c₂ = 1−β₂^step, or 1
//	AdamL2:    g += wd·p first;  p −= lr·u
//	AdamDecay: p −= lr·(u + wd·p)
//
// With a fifth list the f32 master weights are updated and p becomes their rounded copy. g is read;
// p, m, v and master are updated in place and share memory with no other operand. m and v may have
// any compute dtype; arithmetic is in f32 or better. Source: Kingma and Ba 2015, arXiv:1412.6980;
// Loshchilov and Hutter 2019, arXiv:1711.05101; TransformerEngine 2.14.
var MultiTensorAdam = opregistry.NewOp("multi_tensor_adam", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam or AdamW step over lists of tensors, in place",
	Validate: func(a MultiTensorAdamArgs) error {
		c := check.Call{Op: "multi_tensor_adam"}
		if len(a.TensorLists) != 4 && len(a.TensorLists) != 5 {
			c.Fail("tensor_lists", "4 lists (g, p, m, v) or 5 (and master)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag, check.Computes, check.Computes, check.Computes, check.Computes, check.OfF32)
		step(&c, a.Step)
		adam(&c, a.Mode, a.Beta1, a.Beta2)
		c.MultiTensorApart(a.TensorLists, check.AfterFirst, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Lead: func(a MultiTensorAdamArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorAdamArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessUpdate)
	},
})

// MultiTensorScaleArgs are the arguments of MultiTensorScale.
type MultiTensorScaleArgs struct {
	NoopFlag    *tensor.Tensor     // i32 [1], set to 1 when an input is not finite
	TensorLists [][]*tensor.Tensor // in, out
	Scale       float32
}

// MultiTensorScale multiplies each tensor of the first list by a scale and writes it to the second
// list:
//
//	out = in · scale
//
// in is read; out is written whether or not the flag is set. Each out may be its own in and shares
// memory with no other operand. The product is formed in f32 or better and rounded to out's dtype.
// The flag becomes 1 when an input is not finite and is never cleared. Source: TransformerEngine
// 2.14.
var MultiTensorScale = opregistry.NewOp("multi_tensor_scale", opregistry.Schema[MultiTensorScaleArgs]{
	Doc: "multiplies lists of tensors by a number",
	Validate: func(a MultiTensorScaleArgs) error {
		c := check.Call{Op: "multi_tensor_scale"}
		if len(a.TensorLists) != 2 {
			c.Fail("tensor_lists", "2 lists (in, out)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag)
		c.MultiTensorApart(a.TensorLists, check.OnlySecond, true, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: true})
		return c.Err
	},
	Lead: func(a MultiTensorScaleArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorScaleArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessWrite).Update("noop_flag", a.NoopFlag)
	},
})

// MultiTensorL2NormArgs are the arguments of MultiTensorL2Norm.
type MultiTensorL2NormArgs struct {
	NoopFlag    *tensor.Tensor     // i32 [1], set to 1 when a sum is not finite
	TensorLists [][]*tensor.Tensor // one list
	Norm        *tensor.Tensor     // f32 [1]
	PerTensor   *tensor.Tensor     // f32 [n], nil when not wanted
}

// MultiTensorL2Norm computes the Euclidean norm of all elements of a list, and
// of each tensor when PerTensor is given:
//
//	norm = √(Σ_t Σ_i t[i]²)
//
// The tensors are read, norm and per_tensor are written. Sums are f32 or better
// and run in a fixed order. The flag becomes 1 when a sum is not finite and is
// never cleared. An empty list has the norm 0. Source: TransformerEngine 2.14.
var MultiTensorL2Norm = opregistry.NewOp("multi_tensor_l2norm", opregistry.Schema[MultiTensorL2NormArgs]{
	Doc: "Euclidean norm over a list of tensors",
	Validate: func(a MultiTensorL2NormArgs) error {
		c := check.Call{Op: "multi_tensor_l2norm"}
		if len(a.TensorLists) != 1 {
			c.Fail("tensor_lists", "1 list", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag)
		c.Norms(a.TensorLists, a.NoopFlag, nil, a.Norm, a.PerTensor)
		return c.Err
	},
	Lead: func(a MultiTensorL2NormArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorL2NormArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead).Write("norm", a.Norm).Write("per_tensor", a.PerTensor).Update("noop_flag", a.NoopFlag)
	},
})

// MultiTensorScaleTensorArgs are the arguments of MultiTensorScaleTensor.
type MultiTensorScaleTensorArgs struct {
	NoopFlag    *tensor.Tensor     // i32 [1], set to 1 when an input is not finite
	TensorLists [][]*tensor.Tensor // in, out
	Scale       *tensor.Tensor     // f32 [1]
}

// firstOf returns the first tensor of the first list, nil when there is none.
func firstOf(lists [][]*tensor.Tensor) *tensor.Tensor {
	if len(lists) == 0 || len(lists[0]) == 0 {
		return nil
	}
	return lists[0][0]
}

// MultiTensorScaleTensor is MultiTensorScale with a tensor as the scale. The scale is read and
// shares memory with no operand that is written.
var MultiTensorScaleTensor = opregistry.NewOp("multi_tensor_scale_tensor", opregistry.Schema[MultiTensorScaleTensorArgs]{
	Doc: "multiplies lists of tensors by a number held in a tensor",
	Validate: func(a MultiTensorScaleTensorArgs) error {
		c := check.Call{Op: "multi_tensor_scale_tensor"}
		if len(a.TensorLists) != 2 {
			c.Fail("tensor_lists", "2 lists (in, out)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag)
		c.Scalar("scale", a.Scale)
		c.MultiTensorApart(a.TensorLists, check.OnlySecond, true, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: true}, check.Single{Name: "scale", Tensor: a.Scale, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorScaleTensorArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessWrite).
			Update("noop_flag", a.NoopFlag).Read("scale", a.Scale)
	},
})

// MultiTensorUnscaleL2NormArgs are the arguments of MultiTensorUnscaleL2Norm.
type MultiTensorUnscaleL2NormArgs struct {
	NoopFlag    *tensor.Tensor     // i32 [1], set to 1 when a sum is not finite
	TensorLists [][]*tensor.Tensor // one list
	InvScale    *tensor.Tensor     // f32 [1]
	Norm        *tensor.Tensor     // f32 [1]
	PerTensor   *tensor.Tensor     // f32 [n], nil when not wanted
}

// MultiTensorUnscaleL2Norm is MultiTensorL2Norm of the tensors multiplied by inv_scale. The tensors
// themselves do not change:
//
//	norm = √(Σ_t Σ_i (t[i]·inv_scale)²)
var MultiTensorUnscaleL2Norm = opregistry.NewOp("multi_tensor_unscale_l2norm", opregistry.Schema[MultiTensorUnscaleL2NormArgs]{
	Doc: "Euclidean norm over a list of tensors times a number",
	Validate: func(a MultiTensorUnscaleL2NormArgs) error {
		c := check.Call{Op: "multi_tensor_unscale_l2norm"}
		if len(a.TensorLists) != 1 {
			c.Fail("tensor_lists", "1 list", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag)
		c.Scalar("inv_scale", a.InvScale)
		c.Norms(a.TensorLists, a.NoopFlag, a.InvScale, a.Norm, a.PerTensor)
		return c.Err
	},
	Operands: func(a MultiTensorUnscaleL2NormArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead).Read("inv_scale", a.InvScale).
			Write("norm", a.Norm).Write("per_tensor", a.PerTensor).Update("noop_flag", a.NoopFlag)
	},
})
