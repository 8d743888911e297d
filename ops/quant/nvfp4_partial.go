package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// NVFP4PartialAmaxArgs are one element of NVFP4MultiTensorComputePartialAmaxArgs.
type NVFP4PartialAmaxArgs struct {
	PartialAmaxArgs `op:"0"`
	GlobalAmax      *tensor.Tensor `op:"6 global_amax write f32 (1)"`
}

// NVFP4MultiTensorComputePartialAmaxArgs are the arguments of NVFP4MultiTensorComputePartialAmax.
type NVFP4MultiTensorComputePartialAmaxArgs struct {
	Calls []NVFP4PartialAmaxArgs `op:"- calls"`
}

// NVFP4MultiTensorComputePartialAmax applies NVFP42DComputePartialAmax to each element of a list
// and also computes the largest magnitude of the whole shard.
var NVFP4MultiTensorComputePartialAmax = opregistry.NewOp("nvfp4_multi_tensor_compute_partial_amax", opregistry.Schema[NVFP4MultiTensorComputePartialAmaxArgs]{
	Doc: "nvfp4_2d_compute_partial_amax and the amax of each shard for a list of tensors",
	Formula: `
		nvfp4_multi_tensor_compute_partial_amax applies nvfp4_2d_compute_partial_amax to each
		element of a list and also computes the largest magnitude of the whole shard:

		  global_amax = max_i |x[i]|

		Arguments:

		  calls  each element holds one entry of each of TransformerEngine's lists

		Example:

		  calls[0].tensor=[1 -3 2] calls[0].h=2 calls[0].w=2 calls[0].start_offset=1
		    calls[0].block_len=16 → calls[0].amax=[[3]] calls[0].global_amax=[3]
	`,
	Check: func(c *opregistry.Check, a *NVFP4MultiTensorComputePartialAmaxArgs) {
		for i := range a.Calls {
			if partialAmax(c, &a.Calls[i].PartialAmaxArgs); !c.OK() {
				inCall(c, i)
				return
			}
		}
	},
	Tolerance: opregistry.Exact("some of the elements"),
})

// NVFP42DPartialCastArgs are the arguments of NVFP42DPartialCast.
type NVFP42DPartialCastArgs struct {
	Inp         *tensor.Tensor `op:"0 inp read compute"`
	Out         *tensor.Tensor `op:"1 out depends u8"`
	Scale       *tensor.Tensor `op:"2 scale read f32"`
	GlobalScale *tensor.Tensor `op:"3 global_scale read f32 (1)"`
	H           int            `op:"4 h"`
	W           int            `op:"5 w"`
	StartOffset int            `op:"6 start_offset"`
	BlockLen    int            `op:"7 block_len >=1"`
}

// NVFP42DPartialCast rounds a shard of a matrix to E2M1; each element has the decoding scale of
// its square tile.
var NVFP42DPartialCast = opregistry.NewOp("nvfp4_2d_partial_cast", opregistry.Schema[NVFP42DPartialCastArgs]{
	Doc: "packed E2M1 copy of a shard of a matrix with scales of square tiles",
	Formula: `
		nvfp4_2d_partial_cast rounds a shard of a matrix to E2M1; each element has the decoding
		scale of its square tile:

		  s = E4M3(scale[⌊row/b⌋, ⌊col/b⌋])      S = global_scale, 1 unless that is > 0
		  out[i] = E2M1(x[i] · min(S/s, largest f32))

		Element i is in byte ⌊i/2⌋, in its lower half when i is even. With an odd number of elements
		the upper half of the last byte keeps its content. Rounding is that of quantize; where a
		scale rounds to 0, the quotient is the largest f32. Source: TransformerEngine 2.14.

		Arguments:

		  inp           the shard [n]
		  out           [⌈n/2⌉], two E2M1 elements per byte; the last byte of an odd shard is updated
		  scale         [⌈h/block_len⌉, ⌈w/block_len⌉], of nvfp4_compute_per_block_scale
		  global_scale  of nvfp4_compute_global_scale
		  w             h and w are the axes of the matrix, w even
		  start_offset  even
		  block_len     16 for nvfp4

		Example:

		  inp=[1 -3 2 6] scale=[[1]] global_scale=[1] h=2 w=2 block_len=16 → out=u8[210 116]
	`,
	Check:     nvfp4Cast,
	Access:    func(a *NVFP42DPartialCastArgs, _ string, _ int) opregistry.Access { return nvfp4CastAccess(a.Inp) },
	Tolerance: opregistry.Exact("packed data has no distance; no element of the cases comes near a tie"),
})

// NVFP4MultiTensor2DPartialCastArgs are the arguments of NVFP4MultiTensor2DPartialCast.
type NVFP4MultiTensor2DPartialCastArgs struct {
	Calls []NVFP42DPartialCastArgs `op:"- calls"`
}

// NVFP4MultiTensor2DPartialCast applies NVFP42DPartialCast to each element of a list.
var NVFP4MultiTensor2DPartialCast = opregistry.NewOp("nvfp4_multi_tensor_2d_partial_cast", opregistry.Schema[NVFP4MultiTensor2DPartialCastArgs]{
	Doc: "nvfp4_2d_partial_cast for a list of tensors",
	Formula: `
		nvfp4_multi_tensor_2d_partial_cast applies nvfp4_2d_partial_cast to each element of a list.

		Arguments:

		  calls  each element holds one entry of each of TransformerEngine's lists

		Example:

		  calls[0].inp=[1 -3 2 6] calls[0].scale=[[1]] calls[0].global_scale=[1] calls[0].h=2
		    calls[0].w=2 calls[0].block_len=16 → calls[0].out=u8[210 116]
	`,
	Check: func(c *opregistry.Check, a *NVFP4MultiTensor2DPartialCastArgs) {
		for i := range a.Calls {
			if nvfp4Cast(c, &a.Calls[i]); !c.OK() {
				inCall(c, i)
				return
			}
		}
	},
	Access: func(a *NVFP4MultiTensor2DPartialCastArgs, _ string, i int) opregistry.Access {
		return nvfp4CastAccess(a.Calls[i].Inp)
	},
	Tolerance: opregistry.Exact("packed data has no distance; no element of the cases comes near a tie"),
})

// nvfp4CastAccess returns what the cast of a shard does to its output: the last byte of an odd one
// is updated.
func nvfp4CastAccess(inp *tensor.Tensor) opregistry.Access {
	if inp.NumElements()%2 != 0 {
		return opregistry.AccessUpdate
	}
	return opregistry.AccessWrite
}

func nvfp4Cast(c *opregistry.Check, a *NVFP42DPartialCastArgs) {
	if !shardOf(c, "inp", a.Inp, "h", a.H, "w", a.W, a.StartOffset) || !blockLen(c, a.BlockLen) {
		return
	}
	if a.W%2 != 0 {
		c.Fail("w", "an even length", "%d", a.W)
	}
	if a.StartOffset%2 != 0 {
		c.Fail("start_offset", "an even offset", "%d", a.StartOffset)
	}
	c.Shape("scale", a.Scale, check.CeilDiv(a.H, a.BlockLen), check.CeilDiv(a.W, a.BlockLen))
	if c.Rank("out", a.Out, 1) {
		c.Elements("out", a.Out, check.CeilDiv(a.Inp.NumElements(), 2), "one for two elements of the shard")
	}
}
