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

// NVFP4ComputeGlobalScale computes the encoding scale of whole tensors, element by element.
var NVFP4ComputeGlobalScale = opregistry.NewOp("nvfp4_compute_global_scale", opregistry.Schema[NVFP4ComputeGlobalScaleArgs]{
	Doc: "encoding scales of whole nvfp4 tensors",
	Formula: `
		nvfp4_compute_global_scale computes the encoding scale of whole tensors, element by element:

		  S = min(2688/amax, largest f32) where amax > 0, otherwise 1      2688 = 448·6

		S is rounded to f32; it is 0 for an infinite amax and 1 for NaN. Source: TransformerEngine
		2.14.

		Example:

		  global_amaxes=[2 0] → global_scale_tensor=[1344 1]
	`,
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
})

// NVFP4ComputePerBlockScaleArgs are the arguments of NVFP4ComputePerBlockScale.
type NVFP4ComputePerBlockScaleArgs struct {
	BlockAmax  *tensor.Tensor `op:"0 block_amax read f32 [..]"`
	Scale      *tensor.Tensor `op:"1 scale write f32 [..] may=block_amax"`
	GlobalAmax *tensor.Tensor `op:"2 global_amax read f32 (1)"`
}

// NVFP4ComputePerBlockScale computes the decoding scales of blocks before they are rounded to
// E4M3.
var NVFP4ComputePerBlockScale = opregistry.NewOp("nvfp4_compute_per_block_scale", opregistry.Schema[NVFP4ComputePerBlockScaleArgs]{
	Doc: "decoding scales of nvfp4 blocks in f32",
	Formula: `
		nvfp4_compute_per_block_scale computes the decoding scales of blocks before they are rounded
		to E4M3:

		  scale = min(block_amax/6 · S, largest f32)      S of nvfp4_compute_global_scale

		which is block_amax·448/global_amax. Source: TransformerEngine 2.14.

		Example:

		  block_amax=[3 0] global_amax=[6] → scale=[224 0]
	`,
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
})

// NVFP4ExpandScaleToFP8Args are the arguments of NVFP4ExpandScaleToFP8.
type NVFP4ExpandScaleToFP8Args struct {
	Input    *tensor.Tensor `op:"0 input read f32 [h w]"`
	Output   *tensor.Tensor `op:"1 output write f8e4m3 [padded w]"`
	BlockLen int            `op:"2 block_len >=1"`
}

// NVFP4ExpandScaleToFP8 rounds the scales of tiles to E4M3 and repeats each for the rows of its
// tile.
var NVFP4ExpandScaleToFP8 = opregistry.NewOp("nvfp4_expand_scale_to_fp8", opregistry.Schema[NVFP4ExpandScaleToFP8Args]{
	Doc: "scales of nvfp4 tiles rounded to E4M3, one for each row",
	Formula: `
		nvfp4_expand_scale_to_fp8 rounds the scales of tiles to E4M3 and repeats each for the rows
		of its tile:

		  output[r,j] = E4M3(input[⌊r/block_len⌋, j]), 0 for rows after the last tile

		Values beyond 448 become 448; NaN stays NaN. Source: TransformerEngine 2.14.

		Arguments:

		  input      one per tile
		  block_len  rows of a tile

		Example:

		  input=[[1 300]] block_len=2 → output=f8e4m3[[1 288] [1 288]]
	`,
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"},
})

// NVFP4FusedScaleArgs are the arguments of NVFP4FusedScale.
type NVFP4FusedScaleArgs struct {
	BlockAmax     *tensor.Tensor `op:"0 block_amax read f32"`
	GlobalAmax    *tensor.Tensor `op:"1 global_amax read f32 (1)"`
	PerBlockScale *tensor.Tensor `op:"2 per_block_scale write f32"`
	TargetScale   *tensor.Tensor `op:"3 target_scale write f8e4m3"`
	TargetAmax    *tensor.Tensor `op:"4 target_amax write f32 (1)"`
	BlockLen      int            `op:"5 block_len >=1"`
}

// NVFP4FusedScale is NVFP4ComputePerBlockScale, NVFP4ExpandScaleToFP8 of its result, and a copy of
// the amax.
var NVFP4FusedScale = opregistry.NewOp("nvfp4_fused_scale", opregistry.Schema[NVFP4FusedScaleArgs]{
	Doc: "decoding scales of nvfp4 tiles in f32 and, one for each row, in E4M3",
	Formula: `
		nvfp4_fused_scale is nvfp4_compute_per_block_scale, nvfp4_expand_scale_to_fp8 of its result,
		and a copy of the amax:

		  per_block_scale = min(block_amax/6 · S, largest f32)
		  target_scale[r,j] = E4M3(per_block_scale[⌊r/block_len⌋, j])
		  target_amax = global_amax

		Source: TransformerEngine 2.14.

		Arguments:

		  block_amax       [tile rows, tile cols]
		  per_block_scale  [tile rows, tile cols]
		  target_scale     [padded rows, tile cols]
		  block_len        rows of a tile

		Example:

		  block_amax=[[3]] global_amax=[6] block_len=2 → per_block_scale=[[224]]
		    target_scale=f8e4m3[[224] [224]] target_amax=[6]
	`,
	Check:     fusedScale,
	Tolerance: fusedScaleTolerance,
})

// NVFP4MultiTensorFusedScaleArgs are the arguments of NVFP4MultiTensorFusedScale.
type NVFP4MultiTensorFusedScaleArgs struct {
	Calls []NVFP4FusedScaleArgs `op:"- calls"`
}

// NVFP4MultiTensorFusedScale applies NVFP4FusedScale to each element of a list.
var NVFP4MultiTensorFusedScale = opregistry.NewOp("nvfp4_multi_tensor_fused_scale", opregistry.Schema[NVFP4MultiTensorFusedScaleArgs]{
	Doc: "nvfp4_fused_scale for a list of tensors",
	Formula: `
		nvfp4_multi_tensor_fused_scale applies nvfp4_fused_scale to each element of a list.

		Arguments:

		  calls  each element holds one entry of each of TransformerEngine's lists

		Example:

		  calls[0].block_amax=[[3]] calls[0].global_amax=[6] calls[0].block_len=2 →
		    calls[0].per_block_scale=[[224]] calls[0].target_scale=f8e4m3[[224] [224]]
		    calls[0].target_amax=[6]
	`,
	Check: func(c *opregistry.Check, a *NVFP4MultiTensorFusedScaleArgs) {
		for i := range a.Calls {
			if fusedScale(c, &a.Calls[i]); !c.OK() {
				inCall(c, i)
				return
			}
		}
	},
	Tolerance: fusedScaleTolerance,
})

var fusedScaleTolerance = opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "one or two quotients and a product"}

func fusedScale(c *opregistry.Check, a *NVFP4FusedScaleArgs) {
	if c.Rank("block_amax", a.BlockAmax, 2) && c.SameShape("per_block_scale", a.PerBlockScale, "block_amax", a.BlockAmax) && c.Rank("target_scale", a.TargetScale, 2) {
		if cols := a.BlockAmax.Shape()[1]; a.TargetScale.Shape()[1] != cols {
			c.Fail("target_scale", "rows of "+check.Itoa(cols)+", one scale for each tile", "%v", a.TargetScale)
		}
	}
	blockLen(c, a.BlockLen)
}

// inCall adds the index to the name of the argument in the fault that was just found in one of many
// calls.
func inCall(c *opregistry.Check, i int) {
	c.Rename(func(name string) string { return check.Indexed("calls", i) + "." + name })
}
