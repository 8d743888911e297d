package quant

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// encodingScale returns the scale of a whole tensor, as quant.NVFP4ComputeGlobalScale defines it.
func encodingScale(amax float32) float32 {
	if !(amax > 0) {
		return 1
	}
	return min(2688/amax, math.MaxFloat32)
}

// nvfp4GlobalScale implements quant.NVFP4ComputeGlobalScale.
func nvfp4GlobalScale(_ *opregistry.Exec, a quant.NVFP4ComputeGlobalScaleArgs) error {
	var v host.Views
	in, out := v.Matrix("global_amaxes", a.GlobalAmaxes), v.Matrix("global_scale_tensor", a.GlobalScaleTensor)
	if v.Err != nil {
		return v.Err
	}
	for r := range in.Rows {
		to := out.Piece(r, 0, out.Cols, nil)
		for i, amax := range in.Piece(r, 0, in.Cols, nil) {
			to[i] = encodingScale(amax)
		}
	}
	return nil
}

// nvfp4BlockScale implements quant.NVFP4ComputePerBlockScale.
func nvfp4BlockScale(_ *opregistry.Exec, a quant.NVFP4ComputePerBlockScaleArgs) error {
	var v host.Views
	in, out, amax := v.Matrix("block_amax", a.BlockAmax), v.Matrix("scale", a.Scale), v.Number("global_amax", a.GlobalAmax)
	if v.Err != nil {
		return v.Err
	}
	blockScales(out, in, encodingScale(amax))
	return nil
}

// blockScales stores the decoding scales of blocks, for the scale of the tensor.
func blockScales(out, amax host.Matrix, scale float32) {
	for r := range amax.Rows {
		to := out.Piece(r, 0, out.Cols, nil)
		for i, m := range amax.Piece(r, 0, amax.Cols, nil) {
			to[i] = min(m/6*scale, math.MaxFloat32)
		}
	}
}

// nvfp4ExpandScale implements quant.NVFP4ExpandScaleToFP8.
func nvfp4ExpandScale(_ *opregistry.Exec, a quant.NVFP4ExpandScaleToFP8Args) error {
	var v host.Views
	in, out := v.Matrix("input", a.Input), v.Bytes("output", a.Output)
	if v.Err != nil {
		return v.Err
	}
	expandScales(out, in, a.BlockLen)
	return nil
}

// expandScales rounds the scales of tiles to E4M3, and repeats them for the rows of the tiles.
func expandScales(out host.Bytes, tiles host.Matrix, block int) {
	one := [...]float32{1}
	for r := range out.Rows {
		to := out.Piece(r, 0, out.Cols)
		switch {
		case r/block >= tiles.Rows:
			clear(to)
		case r%block == 0:
			fp8.E4M3.Encode(to, tiles.Piece(r/block, 0, tiles.Cols, nil), one[:], max(tiles.Cols, 1))
		default:
			copy(to, out.Piece(r-1, 0, out.Cols))
		}
	}
}

// fusedScale is one call of quant.NVFP4FusedScale.
type fusedScale struct {
	blockAmax, blockScale host.Matrix
	amax                  float32
	target                host.Bytes
	targetAmax            []float32
	block                 int
}

func fusedScaleOf(v *host.Views, a quant.NVFP4FusedScaleArgs) fusedScale {
	return fusedScale{
		blockAmax: v.Matrix("block_amax", a.BlockAmax), blockScale: v.Matrix("per_block_scale", a.PerBlockScale), amax: v.Number("global_amax", a.GlobalAmax),
		target: v.Bytes("target_scale", a.TargetScale), targetAmax: v.Vector("target_amax", a.TargetAmax), block: a.BlockLen,
	}
}

func (c *fusedScale) run() {
	blockScales(c.blockScale, c.blockAmax, encodingScale(c.amax))
	expandScales(c.target, c.blockScale, c.block)
	c.targetAmax[0] = c.amax
}

// nvfp4FusedScale implements quant.NVFP4FusedScale.
func nvfp4FusedScale(_ *opregistry.Exec, a quant.NVFP4FusedScaleArgs) error {
	var v host.Views
	c := fusedScaleOf(&v, a)
	if v.Err != nil {
		return v.Err
	}
	c.run()
	return nil
}

// nvfp4FusedScales implements quant.NVFP4MultiTensorFusedScale.
func nvfp4FusedScales(_ *opregistry.Exec, a quant.NVFP4MultiTensorFusedScaleArgs) error {
	var v host.Views
	for i := range a.Calls {
		fusedScaleOf(&v, a.Calls[i])
	}
	if v.Err != nil {
		return v.Err
	}
	for i := range a.Calls {
		c := fusedScaleOf(&v, a.Calls[i])
		c.run()
	}
	return nil
}

// nvfp4PartialAmax implements quant.NVFP4MultiTensorComputePartialAmax.
func nvfp4PartialAmax(e *opregistry.Exec, a quant.NVFP4MultiTensorComputePartialAmaxArgs) error {
	var v host.Views
	for i := range a.Calls {
		partialAmaxOf(&v, e, a.Calls[i].PartialAmaxArgs)
		v.Vector("global_amax", a.Calls[i].GlobalAmax)
	}
	if v.Err != nil {
		return v.Err
	}
	for i := range a.Calls {
		c := partialAmaxOf(&v, e, a.Calls[i].PartialAmaxArgs)
		c.run()
		v.Vector("global_amax", a.Calls[i].GlobalAmax)[0] = amaxOf(e, c.x)
	}
	return nil
}

// nvfp4Cast is a call of quant.NVFP42DPartialCast; its items are the bytes of the result.
type nvfp4Cast struct {
	host.Cut
	shard
	exec   *opregistry.Exec
	block  int
	out    []byte
	scales host.Matrix
	global float32
	tables *fp4Tables // nil if they do not suit the scales or the blocks
}

// nvfp4Grain is how many bytes of the result a part makes, at least.
const nvfp4Grain = 1 << 11

var nvfp4CastKernel = parallel.NewKernel((*nvfp4Cast).part)

// nvfp4PartialCast implements quant.NVFP42DPartialCast. Quotients and products are f64.
func nvfp4PartialCast(e *opregistry.Exec, a quant.NVFP42DPartialCastArgs) error {
	var v host.Views
	c := nvfp4CastOf(&v, e, a)
	if v.Err != nil {
		return v.Err
	}
	c.run()
	return nil
}

// nvfp4PartialCasts implements quant.NVFP4MultiTensor2DPartialCast.
func nvfp4PartialCasts(e *opregistry.Exec, a quant.NVFP4MultiTensor2DPartialCastArgs) error {
	var v host.Views
	for i := range a.Calls {
		nvfp4CastOf(&v, e, a.Calls[i])
	}
	if v.Err != nil {
		return v.Err
	}
	for i := range a.Calls {
		c := nvfp4CastOf(&v, e, a.Calls[i])
		c.run()
	}
	return nil
}

func nvfp4CastOf(v *host.Views, e *opregistry.Exec, a quant.NVFP42DPartialCastArgs) nvfp4Cast {
	c := nvfp4Cast{
		shard: shard{v.Matrix("inp", a.Inp), a.StartOffset, a.W}, exec: e, block: a.BlockLen, out: v.Bytes("out", a.Out).Data,
		scales: v.Matrix("scale", a.Scale), global: v.Number("global_scale", a.GlobalScale),
	}
	if !(c.global > 0) {
		c.global = 1
	}
	return c
}

func (c nvfp4Cast) run() {
	c.Cut = host.CutItems((len(c.out)+nvfp4Grain-1)/nvfp4Grain, host.Grain)
	// The limits of all codes are finite for the scales that quant.NVFP4ComputeGlobalScale returns.
	if c.block == fp4Block && c.global >= encodingScale(math.MaxFloat32) && c.global <= math.MaxFloat32 {
		buf := c.exec.Scratch(fp4TableFloats)
		defer c.exec.Release(buf)
		c.tables = fp4TablesOf(buf, c.global, false)
	}
	nvfp4CastKernel.Run(c.exec.Pool(), c.Parts, c)
}

func (c *nvfp4Cast) part(part int) {
	lo, hi := c.Bounds(part)
	buf := c.exec.Scratch(c.w + (c.scales.Cols+3)/4)
	wide, codes := buf[:c.w], host.ScratchBytes(buf[c.w:])[:c.scales.Cols]
	of := -1 // the row of tiles whose scales have the codes
	for i, end := 2*lo*nvfp4Grain, min(2*hi*nvfp4Grain, c.x.Cols); i < end; {
		row, col := (c.start+i)/c.w, (c.start+i)%c.w
		x := c.x.Piece(0, i, min(c.w-col, end-i), wide)
		if at := row / c.block; at != of {
			c.encodeScales(codes, at)
			of = at
		}
		splitAtBlock(col, len(x), c.block, func(from, to, first int) {
			c.encode(x[from:to], i+from, codes[first:])
		})
		i += len(x)
	}
	c.exec.Release(buf)
}

// encodeScales stores the codes of the scales of a row of tiles, 0 for those whose factor is the
// largest.
func (c *nvfp4Cast) encodeScales(codes []byte, row int) {
	for i, scale := range c.scales.Piece(row, 0, c.scales.Cols, nil) {
		codes[i] = 0
		if code := tensor.ToFloat8E4M3(min(scale, fp8.E4M3.Largest())); code.Float32() > 0 {
			codes[i] = byte(code)
		}
	}
}

// encode stores elements from index at on. They begin with those of a tile, and the tiles have
// scales of these codes. at is even if tiles are.
func (c *nvfp4Cast) encode(x []float32, at int, codes []byte) {
	done := 0
	if c.tables != nil {
		done = len(x) &^ 1
		fp8.EncodeE2M1(c.out[at/2:], x[:done], codes, &c.tables.limits)
	}
	for i, v := range x[done:] {
		i += done
		to := &c.out[(at+i)/2]
		code := byte(tensor.ToFloat4E2M1(float64(v) * fp4Factor(float64(c.global), int(codes[i/c.block]))))
		if (at+i)%2 == 0 {
			*to = *to&0xf0 | code
		} else {
			*to = *to&0x0f | code<<4
		}
	}
}
