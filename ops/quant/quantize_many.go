package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorQuantizeArgs are the arguments of MultiTensorQuantize.
type MultiTensorQuantizeArgs struct {
	TensorList    []*tensor.Tensor
	QuantizerList []Quantizer
	OutputList    []Quantized
}

// MultiTensorQuantize applies Quantize to each tensor of a list, with the quantiser and the output
// of the same index. Operands that are written share memory with no other operand of the call.
var MultiTensorQuantize = opregistry.NewOp("multi_tensor_quantize", opregistry.Schema[MultiTensorQuantizeArgs]{
	Doc: "quantize of a list of tensors",
	Validate: func(a MultiTensorQuantizeArgs) error {
		c := check.Call{Op: "multi_tensor_quantize"}
		n := len(a.TensorList)
		Length(&c, "quantizer_list", len(a.QuantizerList), n, "tensor_list")
		Length(&c, "output_list", len(a.OutputList), n, "tensor_list")
		for i, t := range a.TensorList {
			if c.Err != nil {
				return c.Err
			}
			quantize(&c, QuantizeArgs{Tensor: t, Quantizer: a.QuantizerList[i], Output: a.OutputList[i]})
			Locate(&c, "_list", i)
		}
		if c.Err != nil {
			return c.Err
		}
		// An input counts as a seventh operand of its output.
		const fields = quantizedFields + 1
		c.AllApart(n*fields, func(i int) (*tensor.Tensor, bool) {
			if at, field := i/fields, i%fields; field < quantizedFields {
				return a.OutputList[at].field(field, a.QuantizerList[at].Scaling)
			}
			return a.TensorList[i/fields], false
		}, func(i int) string {
			if at, field := i/fields, i%fields; field < quantizedFields {
				return quantizedNames("output_list", true)(at, field)
			}
			return check.Indexed("tensor_list", i/fields)
		})
		return c.Err
	},
	Operands: func(a MultiTensorQuantizeArgs) []opregistry.Operand {
		var o check.Operands
		for i, t := range a.TensorList {
			o = quantized(o.Read(check.Indexed("tensor_list", i), t), check.Indexed("output_list", i), a.OutputList[i], a.QuantizerList[i].Scaling, false)
		}
		return o
	},
})

// SplitQuantizeArgs are the arguments of SplitQuantize.
type SplitQuantizeArgs struct {
	Tensor        *tensor.Tensor // at least 2 axes
	SplitSections []int          // lengths along the first axis
	QuantizerList []Quantizer
	OutputList    []Quantized
}

// SplitQuantize cuts a tensor along its first axis into sections, in order and without a remainder,
// and applies Quantize to each, with the quantiser and the output of the same index. Operands that
// are written share memory with no other operand. With Stochastic, the section that begins at
// element e of the tensor uses Offset + ⌈e/4⌉ as its offset. Sections may be empty.
var SplitQuantize = opregistry.NewOp("split_quantize", opregistry.Schema[SplitQuantizeArgs]{
	Doc: "quantize of the sections of a tensor along its first axis",
	Validate: func(a SplitQuantizeArgs) error {
		c := check.Call{Op: "split_quantize"}
		Length(&c, "quantizer_list", len(a.QuantizerList), len(a.SplitSections), "split_sections")
		for i, q := range a.QuantizerList {
			if c.Err == nil {
				quantizing(&c, q)
				Locate(&c, "_list", i)
			}
		}
		sections(&c, a.Tensor, "split_sections", a.SplitSections, a.OutputList, func(i int) Quantizer { return a.QuantizerList[i] }, nil)
		return c.Err
	},
	Operands: func(a SplitQuantizeArgs) []opregistry.Operand {
		o := check.Operands{}.Read("tensor", a.Tensor)
		for i, z := range a.OutputList {
			o = quantized(o, check.Indexed("output_list", i), z, a.QuantizerList[i].Scaling, false)
		}
		return o
	},
})

// GroupQuantizeArgs are the arguments of GroupQuantize.
type GroupQuantizeArgs struct {
	Tensor     *tensor.Tensor // at least 2 axes
	Quantizer  Quantizer
	FirstDims  []int       // lengths along the first axis
	OutputList []Quantized // the grouped tensor: views of shared memory, or not
}

// GroupQuantize is SplitQuantize with one quantiser for all sections, such as the
// tokens of each expert.
var GroupQuantize = opregistry.NewOp("group_quantize", opregistry.Schema[GroupQuantizeArgs]{
	Doc: "quantize of the sections of a tensor with one quantiser",
	Validate: func(a GroupQuantizeArgs) error {
		c := check.Call{Op: "group_quantize"}
		quantizing(&c, a.Quantizer)
		sections(&c, a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer }, nil)
		return c.Err
	},
	Operands: func(a GroupQuantizeArgs) []opregistry.Operand {
		o := check.Operands{}.Read("tensor", a.Tensor)
		for i, z := range a.OutputList {
			o = quantized(o, check.Indexed("output_list", i), z, a.Quantizer.Scaling, false)
		}
		return o
	},
})

// BgradGroupQuantizeArgs are the arguments of BgradGroupQuantize.
type BgradGroupQuantizeArgs struct {
	Tensor     *tensor.Tensor // at least 2 axes
	Quantizer  Quantizer
	FirstDims  []int
	OutputList []Quantized
	DBias      *tensor.Tensor // [n, cols], dtype of the tensor
}

// BgradGroupQuantize is GroupQuantize and also sums the rows of each section:
//
//	dbias[i,j] = Σ_{r in section i} tensor[r,j]
//
// Sums are f32 or better and run in a fixed order; dbias is written and shares memory with no other
// operand. An empty section has a dbias of 0.
var BgradGroupQuantize = opregistry.NewOp("bgrad_group_quantize", opregistry.Schema[BgradGroupQuantizeArgs]{
	Doc: "group_quantize and the sums over the rows of each section",
	Validate: func(a BgradGroupQuantizeArgs) error {
		c := check.Call{Op: "bgrad_group_quantize"}
		quantizing(&c, a.Quantizer)
		sections(&c, a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer }, a.DBias)
		if c.Compute("dbias", a.DBias) {
			c.SameDType("dbias", a.DBias, "tensor", a.Tensor)
			matrix(&c, "dbias", "", a.DBias, check.Computes, len(a.FirstDims), a.Tensor.Shape().Cols(), false)
		}
		return c.Err
	},
	Operands: func(a BgradGroupQuantizeArgs) []opregistry.Operand {
		o := check.Operands{}.Read("tensor", a.Tensor).Write("dbias", a.DBias)
		for i, z := range a.OutputList {
			o = quantized(o, check.Indexed("output_list", i), z, a.Quantizer.Scaling, false)
		}
		return o
	},
})

func Length(c *check.Call, name string, got, want int, as string) {
	if c.Err == nil && got != want {
		c.Fail(name, check.Itoa(want)+" elements, as "+as, "%d", got)
	}
}

// sections checks a tensor that is cut along its first axis and quantised.
func sections(c *check.Call, t *tensor.Tensor, lengthsName string, lengths []int, out []Quantized, quantizer func(i int) Quantizer, dbias *tensor.Tensor) {
	Length(c, "output_list", len(out), len(lengths), lengthsName)
	if !c.Compute("tensor", t) || !c.MinRank("tensor", t, 2) {
		return
	}
	total, first := 0, t.Shape()[0]
	for i, n := range lengths {
		if n < 0 || n > first-total {
			c.Fail(check.Indexed(lengthsName, i), "a length in [0, "+check.Itoa(first-total)+"], what the first axis has left", "%d", n)
			return
		}
		total += n
	}
	if total != first {
		c.Fail(lengthsName, "lengths that add up to "+check.Itoa(first)+", the first axis", "%d", total)
		return
	}
	perRow := t.Shape()[1:].Rows()
	for i, n := range lengths {
		checkQuantized(c, "output", out[i], quantizer(i), n*perRow, t.Shape().Cols(), true)
		if c.Err != nil {
			Locate(c, "_list", i)
			return
		}
	}
	quantizedApart(c, len(out), func(i int) (Quantized, Scaling) { return out[i], quantizer(i).Scaling },
		quantizedNames("output_list", true), check.Single{Name: "tensor", Tensor: t, Written: false}, check.Single{Name: "dbias", Tensor: dbias, Written: true})
}
