package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/philox"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/tensor"
)

// dropoutImpls returns the impls of the family.
func dropoutImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(dropout.DropoutFwd, dropoutForward),
		host.Impl(dropout.DropoutBwd, dropoutBackward),
	}
}

// maskBlock is the number of elements that a part processes together: those of one cache line of
// the mask.
const maskBlock = 64 * 8

// drop is dropout of n elements, block by block of the mask.
type drop struct {
	host.Cut
	x, y          host.Matrix // as one row
	mask          []uint8
	scale         float32
	threshold     uint32
	seed, counter uint64 // the counter of the words of element 0
}

var (
	dropKernel     = parallel.NewKernel((*drop).part)
	dropGradKernel = parallel.NewKernel((*drop).gradPart)
)

// dropoutForward implements dropout.DropoutFwd for contiguous operands.
func dropoutForward(e *opregistry.Exec, a dropout.DropoutFwdArgs) error {
	var v host.Views
	c := dropOf(&v, "input", a.Input, "out", a.Out, a.Mask, a.DropoutProbability)
	if v.Err != nil {
		return v.Err
	}
	c.threshold = uint32(float64(a.DropoutProbability) * (1 << 32))
	c.seed, c.counter = a.Seed, a.Offset
	dropKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

// dropoutBackward implements dropout.DropoutBwd for contiguous operands.
func dropoutBackward(e *opregistry.Exec, a dropout.DropoutBwdArgs) error {
	var v host.Views
	c := dropOf(&v, "grad_output", a.GradOutput, "grad_input", a.GradInput, a.Mask, a.DropoutProbability)
	if v.Err != nil {
		return v.Err
	}
	dropGradKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func dropOf(v *host.Views, xName string, x *tensor.Tensor, yName string, y, mask *tensor.Tensor, p float32) drop {
	c := drop{x: v.Flat(xName, x), y: v.Flat(yName, y), scale: float32(1 / (1 - float64(p)))}
	if v.Host("mask", mask, tensor.U8) {
		c.mask = tensor.Data[uint8](mask)
	}
	c.Cut = host.CutItems((c.x.Cols+maskBlock-1)/maskBlock, maskBlock)
	return c
}

// keepBits has a bit for each element of a block, and the bits after them that Select reads.
type keepBits [maskBlock/32 + 1]uint32

func (c *drop) part(part int) {
	var bits keepBits
	lo, hi := c.Bounds(part)
	for block := lo; block < hi; block++ {
		mask := c.maskOf(block)
		philox.AtLeast(bits[:(len(mask)+3)/4], c.seed, c.counter+uint64(block)*(maskBlock/4), c.threshold)
		for i := range mask {
			mask[i] = uint8(bits[i/4] >> (i % 4 * 8))
		}
		if beyond := (block+1)*maskBlock - c.x.Cols; beyond > 0 {
			mask[len(mask)-1] &= 0xff >> (beyond % 8)
		}
		c.scaled(block, &bits)
	}
}

// maskOf returns the bits of a block.
func (c *drop) maskOf(block int) []uint8 {
	return c.mask[block*maskBlock/8 : min((block+1)*maskBlock, c.x.Cols+7)/8]
}

func (c *drop) gradPart(part int) {
	lo, hi := c.Bounds(part)
	for block := lo; block < hi; block++ {
		var bits keepBits
		for i, m := range c.maskOf(block) {
			bits[i/4] |= uint32(m) << (i % 4 * 8)
		}
		c.scaled(block, &bits)
	}
}

// scaled stores the elements of a block that the bits keep, scaled, and 0 for the others.
func (c *drop) scaled(block int, bits *keepBits) {
	var xBuf, yBuf [maskBlock]float32
	at := block * maskBlock
	n := min(maskBlock, c.x.Cols-at)
	y := c.y.Place(0, at, n, yBuf[:])
	philox.Select(y, c.x.Piece(0, at, n, xBuf[:]), bits[:], 0)
	vector.Scale(c.scale, y, y)
	c.y.Settle(0, at, y)
}
