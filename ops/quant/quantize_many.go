package quant

import (
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorQuantizeArgs are the arguments of MultiTensorQuantize.
type MultiTensorQuantizeArgs struct {
	TensorList    []*tensor.Tensor `op:"0 tensor_list read compute"`
	QuantizerList []Quantizer      `op:"- quantizer_list"`
	OutputList    []Quantized      `op:"- output_list depends"`
}

// MultiTensorQuantize applies Quantize to each tensor of a list, with the quantiser and the output
// of the same index.
var MultiTensorQuantize = opregistry.NewOp("multi_tensor_quantize", opregistry.Schema[MultiTensorQuantizeArgs]{
	Doc: "quantize of a list of tensors",
	Formula: `
		multi_tensor_quantize applies quantize to each tensor of a list, with the quantiser and the
		output of the same index.

		Example:

		  tensor_list[0]=[[1 -2]] quantizer_list[0].scaling=mxfp8 → output_list[0].data=f8e4m3[[128
		    -256]] output_list[0].scale_inv=u8[[120]]
	`,
	Check: func(c *opregistry.Check, a *MultiTensorQuantizeArgs) {
		n := len(a.TensorList)
		length(c, "quantizer_list", len(a.QuantizerList), n, "tensor_list")
		length(c, "output_list", len(a.OutputList), n, "tensor_list")
		for i, t := range a.TensorList {
			if !c.OK() {
				return
			}
			quantizing(c, a.QuantizerList[i])
			if c.MinRank("tensor", t, 1) {
				quantized(c, t, a.QuantizerList[i], a.OutputList[i])
			}
			inLists(c, i)
		}
	},
	Access: func(a *MultiTensorQuantizeArgs, operand string, i int) opregistry.Access {
		return outputAccess(a.QuantizerList[i], operand)
	},
	Tolerance: quantizeTolerance,
})

// SplitQuantizeArgs are the arguments of SplitQuantize.
type SplitQuantizeArgs struct {
	Tensor        *tensor.Tensor `op:"0 tensor read compute"`
	SplitSections []int          `op:"1 split_sections"`
	QuantizerList []Quantizer    `op:"- quantizer_list"`
	OutputList    []Quantized    `op:"- output_list depends"`
}

// SplitQuantize cuts a tensor along its first axis into sections, in order and without a
// remainder, and applies Quantize to each, with the quantiser and the output of the same index.
var SplitQuantize = opregistry.NewOp("split_quantize", opregistry.Schema[SplitQuantizeArgs]{
	Doc: "quantize of the sections of a tensor along its first axis",
	Formula: `
		split_quantize cuts a tensor along its first axis into sections, in order and without a
		remainder, and applies quantize to each, with the quantiser and the output of the same
		index. With quantizer.stochastic, the section that begins at element e of the tensor uses offset +
		⌈e/4⌉ as its offset. Sections may be empty.

		Arguments:

		  tensor          at least 2 axes
		  split_sections  lengths along the first axis

		Example:

		  tensor=[[1 -2] [0.3 3]] split_sections=(1 1) quantizer_list[0].scaling=mxfp8
		    quantizer_list[1].scaling=mxfp8 → output_list[0].data=f8e4m3[[128 -256]]
		    output_list[0].scale_inv=u8[[120]] output_list[1].data=f8e4m3[[40 384]]
		    output_list[1].scale_inv=u8[[120]]
	`,
	Check: func(c *opregistry.Check, a *SplitQuantizeArgs) {
		length(c, "quantizer_list", len(a.QuantizerList), len(a.SplitSections), "split_sections")
		for i, q := range a.QuantizerList {
			if c.OK() {
				quantizing(c, q)
				inLists(c, i)
			}
		}
		sections(c, a.Tensor, "split_sections", a.SplitSections, a.OutputList, func(i int) Quantizer { return a.QuantizerList[i] })
	},
	Access: func(a *SplitQuantizeArgs, operand string, i int) opregistry.Access {
		return outputAccess(a.QuantizerList[i], operand)
	},
	Tolerance: quantizeTolerance,
})

// GroupQuantizeArgs are the arguments of GroupQuantize.
type GroupQuantizeArgs struct {
	Tensor     *tensor.Tensor `op:"0 tensor read compute"`
	Quantizer  Quantizer      `op:"1 quantizer"`
	FirstDims  []int          `op:"8 first_dims"`
	OutputList []Quantized    `op:"- output_list depends"`
}

// GroupQuantize is SplitQuantize with one quantiser for all sections, such as the tokens of each
// expert.
var GroupQuantize = opregistry.NewOp("group_quantize", opregistry.Schema[GroupQuantizeArgs]{
	Doc: "quantize of the sections of a tensor with one quantiser",
	Formula: `
		group_quantize is split_quantize with one quantiser for all sections, such as the tokens of
		each expert.

		Arguments:

		  tensor       at least 2 axes
		  first_dims   lengths along the first axis
		  output_list  the grouped tensor: views of shared memory, or not

		Example:

		  tensor=[[1 -2] [0.3 3]] quantizer.scaling=mxfp8 first_dims=(1 1) →
		    output_list[0].data=f8e4m3[[128 -256]] output_list[0].scale_inv=u8[[120]]
		    output_list[1].data=f8e4m3[[40 384]] output_list[1].scale_inv=u8[[120]]
	`,
	Check: func(c *opregistry.Check, a *GroupQuantizeArgs) {
		quantizing(c, a.Quantizer)
		sections(c, a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer })
	},
	Access: func(a *GroupQuantizeArgs, operand string, _ int) opregistry.Access {
		return outputAccess(a.Quantizer, operand)
	},
	Tolerance: quantizeTolerance,
})

// BgradGroupQuantizeArgs are the arguments of BgradGroupQuantize.
type BgradGroupQuantizeArgs struct {
	Tensor     *tensor.Tensor `op:"0 tensor read compute"`
	Quantizer  Quantizer      `op:"1 quantizer"`
	FirstDims  []int          `op:"8 first_dims"`
	OutputList []Quantized    `op:"- output_list depends"`
	DBias      *tensor.Tensor `op:"9 dbias write =tensor"`
}

// BgradGroupQuantize is GroupQuantize and also sums the rows of each section.
var BgradGroupQuantize = opregistry.NewOp("bgrad_group_quantize", opregistry.Schema[BgradGroupQuantizeArgs]{
	Doc: "group_quantize and the sums over the rows of each section",
	Formula: `
		bgrad_group_quantize is group_quantize and also sums the rows of each section:

		  dbias[i,j] = Σ_{r in section i} tensor[r,j]

		Sums are f32 or better and run in a fixed order. An empty section has a dbias of 0.

		Arguments:

		  tensor  at least 2 axes
		  dbias   [n, cols]

		Example:

		  tensor=[[1 -2] [0.3 3]] quantizer.scaling=mxfp8 first_dims=(2) →
		    output_list[0].data=f8e4m3[[128 -256] [40 384]] output_list[0].scale_inv=u8[[120] [120]]
		    dbias=[[1.3 1]]
	`,
	Check: func(c *opregistry.Check, a *BgradGroupQuantizeArgs) {
		quantizing(c, a.Quantizer)
		sections(c, a.Tensor, "first_dims", a.FirstDims, a.OutputList, func(int) Quantizer { return a.Quantizer })
		if c.OK() {
			matrix(c, "dbias", "", a.DBias, opregistry.Compute, len(a.FirstDims), a.Tensor.Shape().Cols(), false)
		}
	},
	Access: func(a *BgradGroupQuantizeArgs, operand string, _ int) opregistry.Access {
		return outputAccess(a.Quantizer, operand)
	},
	Tolerance: opregistry.Arithmetic(0, 1e-5, "as quantize, and sums of up to 36 positive numbers"),
})

func length(c *opregistry.Check, name string, got, want int, as string) {
	if got != want {
		c.Fail(name, check.Itoa(want)+" elements, as "+as, "%d", got)
	}
}

// inLists adds the index to the name of the argument in the fault that was just found, if there is
// one: "output.data" of element 2 is "output_list[2].data".
func inLists(c *opregistry.Check, i int) {
	c.Rename(func(name string) string {
		head, tail, nested := strings.Cut(name, ".")
		name = check.Indexed(head+"_list", i)
		if nested {
			name += "." + tail
		}
		return name
	})
}

// sections checks a tensor that is cut along its first axis and quantised.
func sections(c *opregistry.Check, t *tensor.Tensor, lengthsName string, lengths []int, out []Quantized, quantizer func(i int) Quantizer) {
	length(c, "output_list", len(out), len(lengths), lengthsName)
	if !c.MinRank("tensor", t, 2) {
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
		if !c.OK() {
			inLists(c, i)
			return
		}
	}
}
