package ops

import (
	"fmt"

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
	NoopFlag       *tensor.Tensor     // i32 [1], read by no plain Adam: infinities propagate
	TensorLists    [][]*tensor.Tensor // g, p, m, v, and optionally f32 master weights
	LR             float32
	Beta1, Beta2   float32
	Epsilon        float32
	Step           int // from 1
	Mode           AdamMode
	BiasCorrection bool
	WeightDecay    float32
}

// MultiTensorAdam makes one Adam step for each tensor of the lists [g, p, m, v]:
//
//	m = β₁·m + (1−β₁)·g      v = β₂·v + (1−β₂)·g²
//	u = (m/c₁) / (√(v/c₂) + ε)      c₁ = 1−β₁^step, c₂ = 1−β₂^step, or 1
//	AdamL2:    g += wd·p first;  p −= lr·u
//	AdamDecay: p −= lr·(u + wd·p)
//
// With a fifth list the f32 master weights are updated and p becomes their
// rounded copy. g is read; p, m, v and master are updated in place. m and v have
// any compute dtype; arithmetic in f32 or better. Source: Kingma and Ba 2015,
// arXiv:1412.6980; Loshchilov and Hutter 2019, arXiv:1711.05101;
// TransformerEngine 2.14.
var MultiTensorAdam = opregistry.NewOp("multi_tensor_adam", opregistry.Schema[MultiTensorAdamArgs]{
	Doc: "Adam or AdamW step over lists of tensors, in place",
	Validate: func(a MultiTensorAdamArgs) error {
		c := check{op: "multi_tensor_adam"}
		if len(a.TensorLists) != 4 && len(a.TensorLists) != 5 {
			c.fail("tensor_lists", "4 lists (g, p, m, v) or 5 (and master)", "%d lists", len(a.TensorLists))
			return c.err
		}
		c.lists(a.TensorLists, a.NoopFlag)
		if len(a.TensorLists) == 5 {
			for i, t := range a.TensorLists[4] {
				if c.err == nil && t.DType() != tensor.F32 {
					c.fail(listName(4, i), "dtype f32", "%v", t)
				}
			}
		}
		if c.err == nil && a.Step < 1 {
			c.fail("step", "a step >= 1", "%d", a.Step)
		}
		if c.err == nil && a.Mode != AdamL2 && a.Mode != AdamDecay {
			c.fail("mode", "0 (L2) or 1 (AdamW)", "%d", a.Mode)
		}
		if c.err == nil && !(a.Beta1 >= 0 && a.Beta1 < 1 && a.Beta2 >= 0 && a.Beta2 < 1) {
			c.fail("beta1, beta2", "numbers in [0, 1)", "%v, %v", a.Beta1, a.Beta2)
		}
		return c.err
	},
	Lead: func(a MultiTensorAdamArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorAdamArgs) []opregistry.Operand {
		var o operands
		for l, list := range a.TensorLists {
			for i, t := range list {
				access := opregistry.Update
				if l == 0 {
					access = opregistry.Read
				}
				o = o.add(listName(l, i), t, access)
			}
		}
		return o
	},
})

// MultiTensorScaleArgs are the arguments of MultiTensorScale.
type MultiTensorScaleArgs struct {
	NoopFlag    *tensor.Tensor     // i32 [1], set to 1 when an input is not finite
	TensorLists [][]*tensor.Tensor // in, out
	Scale       float32
}

// MultiTensorScale multiplies each tensor of the first list into the second:
//
//	out = in · scale
//
// in is read, out is written also when the flag is set; out may be in. The
// product is formed in f32 or better and rounded to out's dtype. The flag becomes
// 1 when an input is not finite and is never cleared. Source: TransformerEngine
// 2.14.
var MultiTensorScale = opregistry.NewOp("multi_tensor_scale", opregistry.Schema[MultiTensorScaleArgs]{
	Doc: "multiplies lists of tensors by a number",
	Validate: func(a MultiTensorScaleArgs) error {
		c := check{op: "multi_tensor_scale"}
		if len(a.TensorLists) != 2 {
			c.fail("tensor_lists", "2 lists (in, out)", "%d lists", len(a.TensorLists))
			return c.err
		}
		c.lists(a.TensorLists, a.NoopFlag)
		if c.err == nil {
			for i, in := range a.TensorLists[0] {
				if out := a.TensorLists[1][i]; tensor.Overlap(in, out) && !tensor.SameView(in, out) {
					c.fail(listName(1, i), "its input or memory apart from it", "a view that overlaps it in part")
				}
			}
		}
		return c.err
	},
	Lead: func(a MultiTensorScaleArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorScaleArgs) []opregistry.Operand {
		var o operands
		for i := range a.TensorLists[0] {
			o = o.read(listName(0, i), a.TensorLists[0][i]).write(listName(1, i), a.TensorLists[1][i])
		}
		return o.update("noop_flag", a.NoopFlag)
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
		c := check{op: "multi_tensor_l2norm"}
		if len(a.TensorLists) != 1 {
			c.fail("tensor_lists", "1 list", "%d lists", len(a.TensorLists))
			return c.err
		}
		c.lists(a.TensorLists, a.NoopFlag)
		if c.dtype("norm", a.Norm, tensor.F32) {
			c.elements("norm", a.Norm, 1, "the norm")
		}
		if a.PerTensor != nil && c.dtype("per_tensor", a.PerTensor, tensor.F32) {
			c.elements("per_tensor", a.PerTensor, len(a.TensorLists[0]), "one a tensor")
		}
		return c.err
	},
	Lead: func(a MultiTensorL2NormArgs) *tensor.Tensor { return firstOf(a.TensorLists) },
	Operands: func(a MultiTensorL2NormArgs) []opregistry.Operand {
		var o operands
		for i, t := range a.TensorLists[0] {
			o = o.read(listName(0, i), t)
		}
		return o.write("norm", a.Norm).write("per_tensor", a.PerTensor).update("noop_flag", a.NoopFlag)
	},
})

func listName(list, i int) string { return fmt.Sprintf("tensor_lists[%d][%d]", list, i) }

// lists checks that all lists are as long as the first and that their tensors
// have compute dtypes and equal shapes index by index. Names are formed only for
// a fault, to keep the good case free of allocations.
func (c *check) lists(lists [][]*tensor.Tensor, noop *tensor.Tensor) {
	if c.dtype("noop_flag", noop, tensor.I32) {
		c.elements("noop_flag", noop, 1, "the flag")
	}
	for l, list := range lists {
		if c.err == nil && len(list) != len(lists[0]) {
			c.fail(fmt.Sprintf("tensor_lists[%d]", l), itoa(len(lists[0]))+" tensors, as list 0", "%d", len(list))
		}
		for i, t := range list {
			if c.err != nil {
				return
			}
			if t == nil || t.DType() > tensor.F16 {
				c.compute(listName(l, i), t)
			} else if !t.Shape().Equal(lists[0][i].Shape()) {
				c.sameShape(listName(l, i), t, listName(0, i), lists[0][i])
			}
		}
	}
}

// firstOf returns the first tensor of the first list, nil when there is none.
func firstOf(lists [][]*tensor.Tensor) *tensor.Tensor {
	if len(lists) == 0 || len(lists[0]) == 0 {
		return nil
	}
	return lists[0][0]
}
