package ops

import (
	"github.com/primus-fl/primus/opregistry"
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
		c := check{op: "multi_tensor_quantize"}
		n := len(a.TensorList)
		c.length("quantizer_list", len(a.QuantizerList), n, "tensor_list")
		c.length("output_list", len(a.OutputList), n, "tensor_list")
		for i, t := range a.TensorList {
			if c.err != nil {
				return c.err
			}
			c.quantize(QuantizeArgs{Tensor: t, Quantizer: a.QuantizerList[i], Output: a.OutputList[i]})
			c.locate("_list", i)
		}
		if c.err != nil {
			return c.err
		}
		// An input counts as a seventh operand of its output.
		const fields = quantizedFields + 1
		c.allApart(n*fields, func(i int) (*tensor.Tensor, bool) {
			if at, field := i/fields, i%fields; field < quantizedFields {
				return a.OutputList[at].field(field, a.QuantizerList[at].Scaling)
			}
			return a.TensorList[i/fields], false
		}, func(i int) string {
			if at, field := i/fields, i%fields; field < quantizedFields {
				return quantizedNames("output_list", true)(at, field)
			}
			return indexed("tensor_list", i/fields)
		})
		return c.err
	},
	Operands: func(a MultiTensorQuantizeArgs) []opregistry.Operand {
		var o operands
		for i, t := range a.TensorList {
			o = o.read(indexed("tensor_list", i), t).quantized(indexed("output_list", i), a.OutputList[i], a.QuantizerList[i].Scaling, false)
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
		c := check{op: "split_quantize"}
		c.length("quantizer_list", len(a.QuantizerList), len(a.SplitSections), "split_sections")
		for i, q := range a.QuantizerList {
			if c.err == nil {
				c.quantizing(q)
				c.locate("_list", i)
			}
		}
		c.sections(a.Tensor, "split_sections", a.SplitSections, a.OutputList, func(i int) Quantizer { return a.QuantizerList[i] }, nil)
		return c.err
	},
	Operands: func(a SplitQuantizeArgs) []opregistry.Operand {
		o := operands{}.read("tensor", a.Tensor)
		for i, z := range a.OutputList {
			o = o.quantized(indexed("output_list", i), z, a.QuantizerList[i].Scaling, false)
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
		c := check{op: "group_quantize"}
		c.quantizing(a.Quantizer)
		c.sections(a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer }, nil)
		return c.err
	},
	Operands: func(a GroupQuantizeArgs) []opregistry.Operand {
		o := operands{}.read("tensor", a.Tensor)
		for i, z := range a.OutputList {
			o = o.quantized(indexed("output_list", i), z, a.Quantizer.Scaling, false)
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
		c := check{op: "bgrad_group_quantize"}
		c.quantizing(a.Quantizer)
		c.sections(a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer }, a.DBias)
		if c.compute("dbias", a.DBias) {
			c.sameDType("dbias", a.DBias, "tensor", a.Tensor)
			c.matrix("dbias", "", a.DBias, computes, len(a.FirstDims), a.Tensor.Shape().Cols(), false)
		}
		return c.err
	},
	Operands: func(a BgradGroupQuantizeArgs) []opregistry.Operand {
		o := operands{}.read("tensor", a.Tensor).write("dbias", a.DBias)
		for i, z := range a.OutputList {
			o = o.quantized(indexed("output_list", i), z, a.Quantizer.Scaling, false)
		}
		return o
	},
})

func (c *check) length(name string, got, want int, as string) {
	if c.err == nil && got != want {
		c.fail(name, itoa(want)+" elements, as "+as, "%d", got)
	}
}

// sections checks a tensor that is cut along its first axis and quantised.
func (c *check) sections(t *tensor.Tensor, lengthsName string, lengths []int, out []Quantized, quantizer func(i int) Quantizer, dbias *tensor.Tensor) {
	c.length("output_list", len(out), len(lengths), lengthsName)
	if !c.compute("tensor", t) || !c.minRank("tensor", t, 2) {
		return
	}
	total, first := 0, t.Shape()[0]
	for i, n := range lengths {
		if n < 0 || n > first-total {
			c.fail(indexed(lengthsName, i), "a length in [0, "+itoa(first-total)+"], what the first axis has left", "%d", n)
			return
		}
		total += n
	}
	if total != first {
		c.fail(lengthsName, "lengths that add up to "+itoa(first)+", the first axis", "%d", total)
		return
	}
	perRow := t.Shape()[1:].Rows()
	for i, n := range lengths {
		c.quantized("output", out[i], quantizer(i), n*perRow, t.Shape().Cols(), true)
		if c.err != nil {
			c.locate("_list", i)
			return
		}
	}
	c.quantizedApart(len(out), func(i int) (Quantized, Scaling) { return out[i], quantizer(i).Scaling },
		quantizedNames("output_list", true), single{"tensor", t, false}, single{"dbias", dbias, true})
}
