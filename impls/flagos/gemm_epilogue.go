package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
)

// gemmEpilogue is what follows a product.
type gemmEpilogue struct {
	cut
	d       matrix
	product matrix // d itself, gelu_in, or scratch
	geluIn  matrix // without data when there is no gelu
	bias    []float32
	beta    float32
	grad    bool
}

var gemmEpilogueKernel = parallel.NewKernel((*gemmEpilogue).part)

func (c gemmEpilogue) run(e *opregistry.Exec) {
	c.cut = cutItems(c.d.rows, c.d.cols)
	gemmEpilogueKernel.Run(e.Pool(), c.parts, c)
}

// geluChunk is how many elements pass through gelu at a time.
const geluChunk = 256

func (c *gemmEpilogue) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		product := c.product.row(r)
		if c.bias != nil {
			simd.Add(product, product, c.bias)
		}
		if c.geluIn.data == nil {
			continue
		}
		d, in := c.d.row(r), c.geluIn.row(r)
		for at := 0; at < len(d); at += geluChunk {
			end := min(at+geluChunk, len(d))
			c.gelu(d[at:end], product[at:end], in[at:end])
		}
	}
}

// gelu finishes at most geluChunk elements.
func (c *gemmEpilogue) gelu(d, product, in []float32) {
	var room [geluChunk]float32
	y := room[:len(d)]
	if c.grad {
		geluDerivative(y, in)
		simd.Mul(y, y, product)
	} else {
		gelu(y, in)
	}
	if c.beta != 0 {
		simd.Axpy(c.beta, d, y)
	}
	copy(d, y)
}

// gelu(x) = x/2·(1 + tanh u) = x·σ(2u) with 2u = geluLinear·x + geluCubic·x³.
const (
	geluLinear = 1.5957691216057308 // 2·√(2/π)
	geluCubic  = geluLinear * 0.044715
)

// gelu stores the tanh form of GELU of at most geluChunk elements. Source:
// Hendrycks and Gimpel 2016, arXiv:1606.08415.
func gelu(y, x []float32) {
	var room [geluChunk]float32
	u := room[:len(x)]
	simd.Mul(u, x, x)
	simd.Mul(u, u, x)
	simd.Scale(geluCubic, u, u)
	simd.Axpy(geluLinear, x, u)
	simd.Sigmoid(u, u)
	simd.Mul(y, x, u)
}

// geluDerivative stores σ(2u) + x·σ(2u)·(1 − σ(2u))·(2u)′ of at most geluChunk
// elements.
func geluDerivative(y, x []float32) {
	var uRoom, slopeRoom [geluChunk]float32
	u, slope := uRoom[:len(x)], slopeRoom[:len(x)]
	simd.Mul(u, x, x)
	simd.Mul(u, u, x)
	simd.Scale(3*geluCubic, slope, u)
	simd.Axpy(geluLinear, x, slope)
	simd.Scale(geluCubic, u, u)
	simd.Axpy(geluLinear, x, u)
	simd.Sigmoid(u, u)
	simd.Mul(slope, slope, u)
	simd.Mul(y, slope, u)
	simd.Scale(-1, y, y)
	simd.Add(y, y, slope)
	simd.Add(y, y, u)
}
