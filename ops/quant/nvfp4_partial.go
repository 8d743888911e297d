package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// NVFP4PartialAmaxArgs are one element of NVFP4MultiTensorComputePartialAmaxArgs.
type NVFP4PartialAmaxArgs struct {
	PartialAmaxArgs
	GlobalAmax *tensor.Tensor // f32 [1]
}

// NVFP4MultiTensorComputePartialAmaxArgs are the arguments of NVFP4MultiTensorComputePartialAmax.
type NVFP4MultiTensorComputePartialAmaxArgs struct {
	Calls []NVFP4PartialAmaxArgs // each element holds one entry of each of TransformerEngine's lists
}

// NVFP4MultiTensorComputePartialAmax applies NVFP42DComputePartialAmax to each element of a list
// and also computes the largest magnitude of the whole shard:
//
//	global_amax = max_i |x[i]|
//
// The shards are read, the amaxes are written; the amaxes share memory with no other operand of the
// call.
var NVFP4MultiTensorComputePartialAmax = opregistry.NewOp("nvfp4_multi_tensor_compute_partial_amax", opregistry.Schema[NVFP4MultiTensorComputePartialAmaxArgs]{
	Doc: "nvfp4_2d_compute_partial_amax and the amax of each shard for a list of tensors",
	Validate: func(a NVFP4MultiTensorComputePartialAmaxArgs) error {
		c := check.Call{Op: "nvfp4_multi_tensor_compute_partial_amax"}
		for i, call := range a.Calls {
			if c.Err == nil {
				partialAmax(&c, call.PartialAmaxArgs)
				c.Scalar("global_amax", call.GlobalAmax)
				Locate(&c, "_list", i)
			}
		}
		if c.Err == nil {
			c.AllApart(3*len(a.Calls), func(i int) (*tensor.Tensor, bool) { return a.Calls[i/3].field(i % 3) },
				func(i int) string { return check.Indexed(nvfp4PartialAmaxName(i%3)+"_list", i/3) })
		}
		return c.Err
	},
	Operands: func(a NVFP4MultiTensorComputePartialAmaxArgs) []opregistry.Operand {
		var o check.Operands
		for i, call := range a.Calls {
			o = fields(o, 3, call.field, func(f int) string { return check.Indexed(nvfp4PartialAmaxName(f)+"_list", i) })
		}
		return o
	},
})

func (a NVFP4PartialAmaxArgs) field(i int) (t *tensor.Tensor, written bool) {
	switch i {
	case 0:
		return a.Tensor, false
	case 1:
		return a.Amax, true
	default:
		return a.GlobalAmax, true
	}
}

func nvfp4PartialAmaxName(i int) string { return [...]string{"tensor", "amax", "global_amax"}[i] }

// NVFP42DPartialCastArgs are the arguments of NVFP42DPartialCast.
type NVFP42DPartialCastArgs struct {
	Inp         *tensor.Tensor // the shard [n], any compute dtype
	Out         *tensor.Tensor // u8 [⌈n/2⌉], two E2M1 elements per byte
	Scale       *tensor.Tensor // f32 [⌈h/block_len⌉, ⌈w/block_len⌉], of NVFP4ComputePerBlockScale
	GlobalScale *tensor.Tensor // f32 [1], of NVFP4ComputeGlobalScale
	H, W        int            // axes of the matrix, w even
	StartOffset int            // even
	BlockLen    int            // 16 for nvfp4
}

// NVFP42DPartialCast rounds a shard of a matrix to E2M1; each element has the decoding scale of its
// square tile:
//
//	s = E4M3(scale[⌊row/b⌋, ⌊col/b⌋])      S = global_scale, 1 unless that is > 0
//	out[i] = E2M1(x[i] · min(S/s, largest f32))
//
// Element i is in byte ⌊i/2⌋, in its lower half when i is even. With an odd number of elements the
// upper half of the last byte keeps its content. Rounding is that of Quantize; where a scale rounds
// to 0, the quotient is the largest f32. All operands but out are read; out is written and disjoint
// from them. Source: TransformerEngine 2.14.
var NVFP42DPartialCast = opregistry.NewOp("nvfp4_2d_partial_cast", opregistry.Schema[NVFP42DPartialCastArgs]{
	Doc: "packed E2M1 copy of a shard of a matrix with scales of square tiles",
	Validate: func(a NVFP42DPartialCastArgs) error {
		c := check.Call{Op: "nvfp4_2d_partial_cast"}
		checkNVFP4Cast(&c, a)
		if c.Err == nil {
			c.AllApart(4, a.field, nvfp4CastName)
		}
		return c.Err
	},
	Operands: func(a NVFP42DPartialCastArgs) []opregistry.Operand {
		return nvfp4Cast(check.Operands{}, a, nvfp4CastName)
	},
})

// NVFP4MultiTensor2DPartialCastArgs are the arguments of NVFP4MultiTensor2DPartialCast.
type NVFP4MultiTensor2DPartialCastArgs struct {
	Calls []NVFP42DPartialCastArgs // each element holds one entry of each of TransformerEngine's lists
}

// NVFP4MultiTensor2DPartialCast applies NVFP42DPartialCast to each element of a list. Operands that
// are written share memory with no other operand of the call.
var NVFP4MultiTensor2DPartialCast = opregistry.NewOp("nvfp4_multi_tensor_2d_partial_cast", opregistry.Schema[NVFP4MultiTensor2DPartialCastArgs]{
	Doc: "nvfp4_2d_partial_cast for a list of tensors",
	Validate: func(a NVFP4MultiTensor2DPartialCastArgs) error {
		c := check.Call{Op: "nvfp4_multi_tensor_2d_partial_cast"}
		for i, call := range a.Calls {
			if c.Err == nil {
				checkNVFP4Cast(&c, call)
				Locate(&c, "_list", i)
			}
		}
		if c.Err == nil {
			c.AllApart(4*len(a.Calls), func(i int) (*tensor.Tensor, bool) { return a.Calls[i/4].field(i % 4) },
				func(i int) string { return check.Indexed(nvfp4CastName(i%4)+"_list", i/4) })
		}
		return c.Err
	},
	Operands: func(a NVFP4MultiTensor2DPartialCastArgs) []opregistry.Operand {
		var o check.Operands
		for i, call := range a.Calls {
			o = nvfp4Cast(o, call, func(f int) string { return check.Indexed(nvfp4CastName(f)+"_list", i) })
		}
		return o
	},
})

func (a NVFP42DPartialCastArgs) field(i int) (t *tensor.Tensor, written bool) {
	switch i {
	case 0:
		return a.Inp, false
	case 1:
		return a.Scale, false
	case 2:
		return a.GlobalScale, false
	default:
		return a.Out, true
	}
}

func nvfp4CastName(i int) string { return [...]string{"inp", "scale", "global_scale", "out"}[i] }

// nvfp4Cast adds the operands of a cast; the last byte of an odd shard is updated.
func nvfp4Cast(o check.Operands, a NVFP42DPartialCastArgs, name func(i int) string) check.Operands {
	o = fields(o, 3, a.field, name)
	if a.Inp.NumElements()%2 != 0 {
		return o.Update(name(3), a.Out)
	}
	return o.Write(name(3), a.Out)
}

func checkNVFP4Cast(c *check.Call, a NVFP42DPartialCastArgs) {
	shard(c, "inp", a.Inp, "h", a.H, "w", a.W, a.StartOffset)
	if c.Err == nil && a.W%2 != 0 {
		c.Fail("w", "an even length", "%d", a.W)
	}
	if c.Err == nil && a.StartOffset%2 != 0 {
		c.Fail("start_offset", "an even offset", "%d", a.StartOffset)
	}
	blockLen(c, a.BlockLen)
	tiles(c, "scale", a.Scale, a.H, a.W, a.BlockLen)
	c.Scalar("global_scale", a.GlobalScale)
	if c.DType("out", a.Out, tensor.U8) && c.Rank("out", a.Out, 1) {
		c.Elements("out", a.Out, check.CeilDiv(a.Inp.NumElements(), 2), "one for two elements of the shard")
	}
}
