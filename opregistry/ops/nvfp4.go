package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// NVFP4ComputeGlobalScaleArgs are the arguments of NVFP4ComputeGlobalScale.
type NVFP4ComputeGlobalScaleArgs struct {
	GlobalAmaxes      *tensor.Tensor // f32 [n]
	GlobalScaleTensor *tensor.Tensor // f32 [n]
}

// NVFP4ComputeGlobalScale computes the encoding scale of whole tensors, element by element:
//
//	S = min(2688/amax, largest f32) where amax > 0, otherwise 1      2688 = 448·6
//
// S is rounded to f32; it is 0 for an infinite amax and 1 for NaN. The amaxes are read, the scales
// written; they are disjoint or the same. Source: TransformerEngine 2.14.
var NVFP4ComputeGlobalScale = opregistry.NewOp("nvfp4_compute_global_scale", opregistry.Schema[NVFP4ComputeGlobalScaleArgs]{
	Doc: "encoding scales of whole nvfp4 tensors",
	Validate: func(a NVFP4ComputeGlobalScaleArgs) error {
		c := check{op: "nvfp4_compute_global_scale"}
		if c.dtype("global_amaxes", a.GlobalAmaxes, tensor.F32) && c.dtype("global_scale_tensor", a.GlobalScaleTensor, tensor.F32) {
			c.sameShape("global_scale_tensor", a.GlobalScaleTensor, "global_amaxes", a.GlobalAmaxes)
			c.disjointOrSame("global_scale_tensor", a.GlobalScaleTensor, "global_amaxes", a.GlobalAmaxes)
		}
		return c.err
	},
	Operands: func(a NVFP4ComputeGlobalScaleArgs) []opregistry.Operand {
		return operands{}.read("global_amaxes", a.GlobalAmaxes).write("global_scale_tensor", a.GlobalScaleTensor)
	},
})

// NVFP4ComputePerBlockScaleArgs are the arguments of NVFP4ComputePerBlockScale.
type NVFP4ComputePerBlockScaleArgs struct {
	BlockAmax  *tensor.Tensor // f32, any shape
	Scale      *tensor.Tensor // f32, shape of block_amax
	GlobalAmax *tensor.Tensor // f32 [1]
}

// NVFP4ComputePerBlockScale computes the decoding scales of blocks before they are rounded to E4M3:
//
//	scale = min(block_amax/6 · S, largest f32)      S of NVFP4ComputeGlobalScale
//
// which is block_amax·448/global_amax. The amaxes are read, the scales written; scale may be
// block_amax and is disjoint from global_amax. Source: TransformerEngine 2.14.
var NVFP4ComputePerBlockScale = opregistry.NewOp("nvfp4_compute_per_block_scale", opregistry.Schema[NVFP4ComputePerBlockScaleArgs]{
	Doc: "decoding scales of nvfp4 blocks in f32",
	Validate: func(a NVFP4ComputePerBlockScaleArgs) error {
		c := check{op: "nvfp4_compute_per_block_scale"}
		if c.dtype("block_amax", a.BlockAmax, tensor.F32) && c.dtype("scale", a.Scale, tensor.F32) && c.scalar("global_amax", a.GlobalAmax) {
			c.sameShape("scale", a.Scale, "block_amax", a.BlockAmax)
			c.disjointOrSame("scale", a.Scale, "block_amax", a.BlockAmax)
			c.disjoint("scale", a.Scale, "global_amax", a.GlobalAmax)
		}
		return c.err
	},
	Operands: func(a NVFP4ComputePerBlockScaleArgs) []opregistry.Operand {
		return operands{}.read("block_amax", a.BlockAmax).read("global_amax", a.GlobalAmax).write("scale", a.Scale)
	},
})

// NVFP4ExpandScaleToFP8Args are the arguments of NVFP4ExpandScaleToFP8.
type NVFP4ExpandScaleToFP8Args struct {
	Input    *tensor.Tensor // f32 [tile rows, tile cols]
	Output   *tensor.Tensor // f8e4m3 [padded rows, tile cols]
	BlockLen int            // rows of a tile
}

// NVFP4ExpandScaleToFP8 rounds the scales of tiles to E4M3 and repeats each for the rows of its
// tile:
//
//	output[r,j] = E4M3(input[⌊r/block_len⌋, j]), 0 for rows after the last tile
//
// Values beyond 448 become 448; NaN stays NaN. Input is read, output is written; they are disjoint.
// Source: TransformerEngine 2.14.
var NVFP4ExpandScaleToFP8 = opregistry.NewOp("nvfp4_expand_scale_to_fp8", opregistry.Schema[NVFP4ExpandScaleToFP8Args]{
	Doc: "scales of nvfp4 tiles rounded to E4M3, one a row",
	Validate: func(a NVFP4ExpandScaleToFP8Args) error {
		c := check{op: "nvfp4_expand_scale_to_fp8"}
		if c.dtype("input", a.Input, tensor.F32) && c.rank("input", a.Input, 2) {
			c.expanded("output", a.Output, a.Input)
		}
		c.blockLen(a.BlockLen)
		c.disjoint("output", a.Output, "input", a.Input)
		return c.err
	},
	Operands: func(a NVFP4ExpandScaleToFP8Args) []opregistry.Operand {
		return operands{}.read("input", a.Input).write("output", a.Output)
	},
})

// NVFP4FusedScaleArgs are the arguments of NVFP4FusedScale.
type NVFP4FusedScaleArgs struct {
	BlockAmax     *tensor.Tensor // f32 [tile rows, tile cols]
	GlobalAmax    *tensor.Tensor // f32 [1]
	PerBlockScale *tensor.Tensor // f32 [tile rows, tile cols]
	TargetScale   *tensor.Tensor // f8e4m3 [padded rows, tile cols]
	TargetAmax    *tensor.Tensor // f32 [1]
	BlockLen      int            // rows of a tile
}

// NVFP4FusedScale is NVFP4ComputePerBlockScale, NVFP4ExpandScaleToFP8 of its result, and a copy of
// the amax:
//
//	per_block_scale = min(block_amax/6 · S, largest f32)
//	target_scale[r,j] = E4M3(per_block_scale[⌊r/block_len⌋, j])
//	target_amax = global_amax
//
// The amaxes are read, the others are written; the written ones share memory with no other operand.
// Source: TransformerEngine 2.14.
var NVFP4FusedScale = opregistry.NewOp("nvfp4_fused_scale", opregistry.Schema[NVFP4FusedScaleArgs]{
	Doc: "decoding scales of nvfp4 tiles in f32 and, one a row, in E4M3",
	Validate: func(a NVFP4FusedScaleArgs) error {
		c := check{op: "nvfp4_fused_scale"}
		c.fusedScale(a)
		if c.err == nil {
			c.allApart(fusedScaleFields, a.field, fusedScaleName)
		}
		return c.err
	},
	Operands: func(a NVFP4FusedScaleArgs) []opregistry.Operand {
		return operands{}.fields(fusedScaleFields, a.field, fusedScaleName)
	},
})

// NVFP4MultiTensorFusedScaleArgs are the arguments of NVFP4MultiTensorFusedScale.
type NVFP4MultiTensorFusedScaleArgs struct {
	Calls []NVFP4FusedScaleArgs // each element holds one entry of each of TransformerEngine's lists
}

// NVFP4MultiTensorFusedScale applies NVFP4FusedScale to each element of a list. Operands that are
// written share memory with no other operand of the call.
var NVFP4MultiTensorFusedScale = opregistry.NewOp("nvfp4_multi_tensor_fused_scale", opregistry.Schema[NVFP4MultiTensorFusedScaleArgs]{
	Doc: "nvfp4_fused_scale for a list of tensors",
	Validate: func(a NVFP4MultiTensorFusedScaleArgs) error {
		c := check{op: "nvfp4_multi_tensor_fused_scale"}
		for i, call := range a.Calls {
			if c.err == nil {
				c.fusedScale(call)
				c.locate("_list", i)
			}
		}
		if c.err == nil {
			c.allApart(len(a.Calls)*fusedScaleFields, func(i int) (*tensor.Tensor, bool) {
				return a.Calls[i/fusedScaleFields].field(i % fusedScaleFields)
			}, func(i int) string { return indexed(fusedScaleName(i%fusedScaleFields)+"_list", i/fusedScaleFields) })
		}
		return c.err
	},
	Operands: func(a NVFP4MultiTensorFusedScaleArgs) []opregistry.Operand {
		var o operands
		for i, call := range a.Calls {
			o = o.fields(fusedScaleFields, call.field, func(f int) string { return indexed(fusedScaleName(f)+"_list", i) })
		}
		return o
	},
})

const fusedScaleFields = 5

func (a NVFP4FusedScaleArgs) field(i int) (t *tensor.Tensor, written bool) {
	switch i {
	case 0:
		return a.BlockAmax, false
	case 1:
		return a.GlobalAmax, false
	case 2:
		return a.PerBlockScale, true
	case 3:
		return a.TargetScale, true
	default:
		return a.TargetAmax, true
	}
}

func fusedScaleName(i int) string {
	return [...]string{"block_amax", "global_amax", "per_block_scale", "target_scale", "target_amax"}[i]
}

func (c *check) fusedScale(a NVFP4FusedScaleArgs) {
	if c.dtype("block_amax", a.BlockAmax, tensor.F32) && c.rank("block_amax", a.BlockAmax, 2) &&
		c.scalar("global_amax", a.GlobalAmax) && c.dtype("per_block_scale", a.PerBlockScale, tensor.F32) {
		c.sameShape("per_block_scale", a.PerBlockScale, "block_amax", a.BlockAmax)
		c.expanded("target_scale", a.TargetScale, a.BlockAmax)
		c.scalar("target_amax", a.TargetAmax)
	}
	c.blockLen(a.BlockLen)
}

// expanded checks the E4M3 scales of tiles, one per row.
func (c *check) expanded(name string, t, tiles *tensor.Tensor) {
	if c.dtype(name, t, tensor.F8E4M3) && c.rank(name, t, 2) && t.Shape()[1] != tiles.Shape()[1] {
		c.fail(name, "rows of "+itoa(tiles.Shape()[1])+", one scale a tile", "%v", t)
	}
}

// fields adds operands by index.
func (o operands) fields(n int, field func(i int) (*tensor.Tensor, bool), name func(i int) string) operands {
	for i := range n {
		t, written := field(i)
		access := opregistry.AccessRead
		if written {
			access = opregistry.AccessWrite
		}
		o = o.add(name(i), t, access)
	}
	return o
}
