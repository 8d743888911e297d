package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// maskBlock is the number of elements that a part takes together: those of a cache
// line of the mask.
const maskBlock = 64 * 8

// drop is dropout of n elements, block by block of the mask.
type drop struct {
	cut
	x, y       matrix // as one row
	mask       []uint8
	scale      float32
	threshold  uint32
	key        [2]uint32
	firstWords uint64 // the counter of the words of element 0
}

var (
	dropKernel     = parallel.NewKernel((*drop).part)
	dropGradKernel = parallel.NewKernel((*drop).gradPart)
)

// dropoutForward follows ops.DropoutFwd for contiguous operands.
func dropoutForward(e *opregistry.Exec, a ops.DropoutFwdArgs) error {
	var v views
	c := v.drop(a.Input, a.Out, a.Mask, a.DropoutProbability)
	if v.err != nil {
		return v.err
	}
	c.threshold = uint32(float64(a.DropoutProbability) * (1 << 32))
	c.key, c.firstWords = [2]uint32{uint32(a.Seed), uint32(a.Seed >> 32)}, a.Offset
	dropKernel.Run(e.Pool(), c.parts, c)
	return nil
}

// dropoutBackward follows ops.DropoutBwd for contiguous operands.
func dropoutBackward(e *opregistry.Exec, a ops.DropoutBwdArgs) error {
	var v views
	c := v.drop(a.GradOutput, a.GradInput, a.Mask, a.DropoutProbability)
	if v.err != nil {
		return v.err
	}
	dropGradKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (v *views) drop(x, y, mask *tensor.Tensor, p float32) drop {
	c := drop{x: v.line("the input", x), y: v.line("the output", y), scale: float32(1 / (1 - float64(p)))}
	if v.host("mask", mask, tensor.U8) {
		c.mask = tensor.Data[uint8](mask)
	}
	c.cut = cutItems((c.x.cols+maskBlock-1)/maskBlock, maskBlock)
	return c
}

func (c *drop) part(part int) {
	lo, hi := c.bounds(part)
	for block := lo; block < hi; block++ {
		mask := c.maskOf(block)
		first := block * maskBlock / 4
		for i := range mask {
			mask[i] = c.keep(first+2*i) | c.keep(first+2*i+1)<<4
		}
		if beyond := (block+1)*maskBlock - c.x.cols; beyond > 0 {
			mask[len(mask)-1] &= 0xff >> (beyond % 8)
		}
		c.scaled(block, mask)
	}
}

// maskOf returns the bits of a block.
func (c *drop) maskOf(block int) []uint8 {
	return c.mask[block*maskBlock/8 : min((block+1)*maskBlock, c.x.cols+7)/8]
}

// keep returns the bits of the four elements that share words of Philox.
func (c *drop) keep(four int) uint8 {
	n := c.firstWords + uint64(four)
	words := ops.Philox4x32([4]uint32{uint32(n), uint32(n >> 32)}, c.key)
	bits := uint8(0)
	for i, w := range words {
		if w >= c.threshold {
			bits |= 1 << i
		}
	}
	return bits
}

func (c *drop) gradPart(part int) {
	lo, hi := c.bounds(part)
	for block := lo; block < hi; block++ {
		c.scaled(block, c.maskOf(block))
	}
}

// scaled stores the elements of a block, of which the mask says what is kept.
func (c *drop) scaled(block int, mask []uint8) {
	var xRoom, yRoom [maskBlock]float32
	at := block * maskBlock
	n := min(maskBlock, c.x.cols-at)
	x, y := c.x.piece(0, at, n, xRoom[:]), c.y.place(0, at, n, yRoom[:])
	for i, v := range x {
		if mask[i/8]>>(i%8)&1 == 0 {
			y[i] = 0
		} else {
			y[i] = v * c.scale
		}
	}
	c.y.settle(0, at, y)
}
