package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// NVFP4ComputeGlobalScaleArgs are the arguments of NVFP4ComputeGlobalScale.
type NVFP4ComputeGlobalScaleArgs struct {
	GlobalAmaxes      *tensor.Tensor `op:"0 global_amaxes read f32 [..]"`
	GlobalScaleTensor *tensor.Tensor `op:"1 global_scale_tensor write f32 [..] may=global_amaxes"`
}

// NVFP4ComputeGlobalScale computes the encoding scale of whole tensors, element by element:
//
//	S = min(2688/amax, largest f32) where amax > 0, otherwise 1      2688 = 448·6
//
// S is rounded to f32; it is 0 for an infinite amax and 1 for NaN. Source: TransformerEngine
// 2.14.
var NVFP4ComputeGlobalScale = opregistry.NewOp("nvfp4_compute_global_scale", opregistry.Schema[NVFP4ComputeGlobalScaleArgs]{
	Doc:       "encoding scales of whole nvfp4 tensors",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
})

// NVFP4ComputePerBlockScaleArgs are the arguments of NVFP4ComputePerBlockScale.
type NVFP4ComputePerBlockScaleArgs struct {
	BlockAmax  *tensor.Tensor `op:"0 block_amax read f32 [..]"`
	Scale      *tensor.Tensor `op:"1 scale write f32 [..] may=block_amax"`
	GlobalAmax *tensor.Tensor `op:"2 global_amax read f32 (1)"`
}

// NVFP4ComputePerBlockScale computes the decoding scales of blocks before they are rounded to E4M3:
//
//	scale = min(block_amax/6 · S, largest f32)      S of NVFP4ComputeGlobalScale
//
// which is block_amax·448/global_amax. Source: TransformerEngine 2.14.
var NVFP4ComputePerBlockScale = opregistry.NewOp("nvfp4_compute_per_block_scale", opregistry.Schema[NVFP4ComputePerBlockScaleArgs]{
	Doc:       "decoding scales of nvfp4 blocks in f32",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
})

// NVFP4ExpandScaleToFP8Args are the arguments of NVFP4ExpandScaleToFP8.
type NVFP4ExpandScaleToFP8Args struct {
	Input    *tensor.Tensor `op:"0 input read f32 [h w]"` // one per tile
	Output   *tensor.Tensor `op:"1 output write f8e4m3 [padded w]"`
	BlockLen int            `op:"2 block_len >=1"` // rows of a tile
}

// NVFP4ExpandScaleToFP8 rounds the scales of tiles to E4M3 and repeats each for the rows of its
// tile:
//
//	output[r,j] = E4M3(input[⌊r/block_len⌋, j]), 0 for rows after the last tile
//
// Values beyond 448 become 448; NaN stays NaN. Source: TransformerEngine 2.14.
var NVFP4ExpandScaleToFP8 = opregistry.NewOp("nvfp4_expand_scale_to_fp8", opregistry.Schema[NVFP4ExpandScaleToFP8Args]{
	Doc:       "scales of nvfp4 tiles rounded to E4M3, one a row",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
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
		c := check.Call{Op: "nvfp4_fused_scale"}
		fusedScale(&c, a)
		if c.Err == nil {
			c.AllApart(fusedScaleFields, a.field, fusedScaleName)
		}
		return c.Err
	},
	Operands: func(a NVFP4FusedScaleArgs) []opregistry.Operand {
		return fields(check.Operands{}, fusedScaleFields, a.field, fusedScaleName)
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
		c := check.Call{Op: "nvfp4_multi_tensor_fused_scale"}
		for i, call := range a.Calls {
			if c.Err == nil {
				fusedScale(&c, call)
				Locate(&c, "_list", i)
			}
		}
		if c.Err == nil {
			c.AllApart(len(a.Calls)*fusedScaleFields, func(i int) (*tensor.Tensor, bool) {
				return a.Calls[i/fusedScaleFields].field(i % fusedScaleFields)
			}, func(i int) string {
				return check.Indexed(fusedScaleName(i%fusedScaleFields)+"_list", i/fusedScaleFields)
			})
		}
		return c.Err
	},
	Operands: func(a NVFP4MultiTensorFusedScaleArgs) []opregistry.Operand {
		var o check.Operands
		for i, call := range a.Calls {
			o = fields(o, fusedScaleFields, call.field, func(f int) string { return check.Indexed(fusedScaleName(f)+"_list", i) })
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

func fusedScale(c *check.Call, a NVFP4FusedScaleArgs) {
	if c.DType("block_amax", a.BlockAmax, tensor.F32) && c.Rank("block_amax", a.BlockAmax, 2) &&
		c.Scalar("global_amax", a.GlobalAmax) && c.DType("per_block_scale", a.PerBlockScale, tensor.F32) {
		c.SameShape("per_block_scale", a.PerBlockScale, "block_amax", a.BlockAmax)
		expanded(c, "target_scale", a.TargetScale, a.BlockAmax)
		c.Scalar("target_amax", a.TargetAmax)
	}
	blockLen(c, a.BlockLen)
}

// expanded checks the E4M3 scales of tiles, one per row.
func expanded(c *check.Call, name string, t, tiles *tensor.Tensor) {
	if c.DType(name, t, tensor.F8E4M3) && c.Rank(name, t, 2) && t.Shape()[1] != tiles.Shape()[1] {
		c.Fail(name, "rows of "+check.Itoa(tiles.Shape()[1])+", one scale a tile", "%v", t)
	}
}

// fields adds operands by index.
func fields(o check.Operands, n int, field func(i int) (*tensor.Tensor, bool), name func(i int) string) check.Operands {
	for i := range n {
		t, written := field(i)
		access := opregistry.AccessRead
		if written {
			access = opregistry.AccessWrite
		}
		o = o.Add(name(i), t, access)
	}
	return o
}
