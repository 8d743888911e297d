package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// side is the data by rows or by columns, with its scales: numbers, or codes of E8M0 or E4M3.
type side struct {
	on     bool
	data   host.Bytes
	scales host.Matrix
	codes  host.Bytes
}

// quantization is a matrix to quantise. It is cut into tiles, whose blocks are whole in either
// direction.
type quantization struct {
	host.Cut
	exec          *opregistry.Exec
	x             host.Matrix
	q             quant.Quantizer
	f             *fp8.Format
	rows, cols    side
	later         bool // whether data by rows is transposed after all of it is there
	height, width int  // of a tile
	across        int  // tiles across the matrix

	scaleInv, scale, amax []float32 // of the tensor
	factor                [1]float32
	largest               []float32 // magnitude of each part, with delayed scaling
}

var quantizeKernel = parallel.NewKernel((*quantization).part)

// quantize implements quant.Quantize.
func quantize(e *opregistry.Exec, a quant.QuantizeArgs) error {
	var v host.Views
	c := newQuantization(&v, v.Matrix("tensor", a.Tensor), a.Quantizer, a.Output)
	noop := float32(0)
	if a.Noop != nil {
		noop = v.Number("noop", a.Noop)
	}
	if v.Err != nil {
		return v.Err
	}
	if noop != 1 {
		c.run(e)
	}
	return nil
}

// newQuantization views the operands; the result is only of use when v has no error.
func newQuantization(v *host.Views, x host.Matrix, q quant.Quantizer, out quant.Quantized) quantization {
	c := quantization{x: x, q: q, height: 1, width: pieceLen}
	d := out.Data
	if d == nil {
		d = out.ColumnwiseData
	}
	c.f = host.FP8Format(d.DType())
	b := q.Scaling.BlockLen()
	switch {
	case q.Block2D:
		c.height = b
	case b > 0 && out.ColumnwiseData != nil:
		if c.height = b; q.Scaling == quant.BlockScaling {
			c.height, c.width = columnsHeight, columnsWidth
		}
	case out.ColumnwiseData != nil && out.Data == nil:
		c.height, c.width = columnsHeight, columnsWidth
	}
	c.rows = newSide(v, "output.data", out.Data, "output.scale_inv", out.ScaleInv, b)
	c.cols = newSide(v, "output.columnwise_data", out.ColumnwiseData, "output.columnwise_scale_inv", out.ColumnwiseScaleInv, b)
	switch {
	case b == 0:
		c.scaleInv, c.scale, c.amax = v.Vector("output.scale_inv", out.ScaleInv), v.Vector("output.scale", out.Scale), v.Vector("output.amax", out.Amax)
	case q.Scaling == quant.NVFP4Scaling:
		c.amax = v.Vector("output.amax", out.Amax)
	}
	return c
}

func newSide(v *host.Views, dataName string, data *tensor.Tensor, scalesName string, scales *tensor.Tensor, block int) side {
	if data == nil {
		return side{}
	}
	s := side{on: true, data: v.Bytes(dataName, data)}
	switch {
	case block == 0:
	case scales.DType() != tensor.F32:
		s.codes = v.Bytes(scalesName, scales)
	default:
		s.scales = v.Matrix(scalesName, scales)
	}
	return s
}

// flatten views the rows of a matrix and of its data as one row, if nothing lies between them and
// no block ends with a row.
func (s *side) flatten(x *host.Matrix, block int) {
	if !x.Dense() || !s.data.Dense() || !s.scales.Dense() || !s.codes.Dense() || block > 0 && x.Cols%block != 0 {
		return
	}
	for _, m := range []*host.Matrix{x, &s.scales} {
		m.Rows, m.Cols = 1, m.Rows*m.Cols
	}
	for _, m := range []*host.Bytes{&s.data, &s.codes} {
		m.Rows, m.Cols = 1, m.Rows*m.Cols
	}
}

// run quantises the matrix. Scratch: some tiles per part.
func (c quantization) run(e *opregistry.Exec) {
	c.exec = e
	if c.q.Scaling == quant.NVFP4Scaling {
		c.runFP4()
		return
	}
	if c.rows.on && c.strips() { // first by rows, in the pieces that suit them
		rows := c
		rows.cols, rows.height, rows.width = side{}, 1, pieceLen
		rows.run(e)
		c.rows = side{}
	}
	c.later = c.rows.on && c.cols.on
	byRows := c.rows.data
	if (c.later || !c.cols.on) && !c.q.Block2D {
		c.rows.flatten(&c.x, c.q.Scaling.BlockLen())
	}
	switch c.q.Scaling {
	case quant.DelayedScaling: // which looks for the largest magnitude at the same time
		c.factor[0] = c.scale[0]
		c.scaleInv[0] = 1 / c.factor[0]
	case quant.CurrentScaling:
		c.amax[0] = amaxOf(e, c.x)
		c.factor[0] = fp8.ScaleOf(c.amax[0], c.f.Largest(), c.q.AmaxEpsilon, c.q.ForcePow2Scales)
		c.scale[0], c.scaleInv[0] = c.factor[0], 1/c.factor[0]
	}
	c.width = max(min(c.width, c.x.Cols), 1)
	c.across = (c.x.Cols + c.width - 1) / c.width
	c.Cut = host.CutItems((c.x.Rows+c.height-1)/c.height*c.across, c.height*min(c.width, c.x.Cols))
	c.largest = e.Scratch(c.Parts)
	quantizeKernel.Run(e.Pool(), c.Parts, c)
	if c.q.Scaling == quant.DelayedScaling {
		c.amax[0] = max(c.amax[0], fp8.Amax(c.largest))
	}
	e.Release(c.largest)
	if c.later {
		transposeBytes(e, byRows, c.cols.data)
	}
}

// tile is a tile in the hands of a part. Its rows are read from where they are, in order, once for
// the scales and once for the data: a cache has most of them the second time, and the processor
// predicts what is read.
type tile struct {
	row, col      int // of its first element
	height, width int
	line          []float32  // memory for what is widened
	bytes         host.Bytes // memory for data that will be transposed
	amax, factor  []float32  // memory for its blocks in either direction
	largest       float32    // magnitude so far, with delayed scaling
}

// linePad keeps the rows of data that will be transposed in different sets of a cache.
const linePad = 64

func (c *quantization) part(part int) {
	lo, hi := c.Bounds(part)
	line, size, blocks := c.width, 0, max(c.width, c.height)
	if c.strips() {
		blocks = c.height / c.q.Scaling.BlockLen() * c.width
		if c.x.Narrow() {
			line = c.width * c.q.Scaling.BlockLen()
		}
	}
	if c.cols.on && !c.later {
		size = c.height * (c.width + linePad) / 4
	}
	buf := c.exec.Scratch(line + 2*blocks + size)
	t := tile{line: buf[:line], amax: buf[line:][:blocks], factor: buf[line+blocks:][:blocks]}
	t.bytes = host.Bytes{Data: host.ScratchBytes(buf[line+2*blocks:]), Pitch: c.width + linePad}
	for i := lo; i < hi; i++ {
		t.row, t.col = i/c.across*c.height, i%c.across*c.width
		t.height, t.width = min(c.height, c.x.Rows-t.row), min(c.width, c.x.Cols-t.col)
		c.tile(&t)
	}
	c.largest[part] = t.largest
	c.exec.Release(buf)
}

// elements returns a row of a tile.
func (c *quantization) elements(t *tile, r int) []float32 {
	return c.x.Piece(t.row+r, t.col, t.width, t.line)
}

func (c *quantization) tile(t *tile) {
	encoded := t.bytes // the data by rows
	if c.rows.on {
		encoded = host.Bytes{Data: c.rows.data.Data[t.row*c.rows.data.Pitch+t.col:], Pitch: c.rows.data.Pitch}
	}
	b := c.q.Scaling.BlockLen()
	switch {
	case b == 0:
		c.encode(t, encoded)
	case c.q.Block2D:
		c.squares(t, encoded, b)
	case c.rows.on:
		c.byRows(t, b)
	}
	switch {
	case c.later || !c.cols.on:
		return
	case c.strips():
		c.byColumns(t)
		if c.q.Scaling == quant.MXFP8Scaling {
			return
		}
		encoded = t.bytes
	}
	fp8.Transpose(c.cols.data.Data[t.col*c.cols.data.Pitch+t.row:], c.cols.data.Pitch, encoded.Data, encoded.Pitch, t.height, t.width)
}

// patterns returns a row of a tile of bfloat16, none if it is of another dtype.
func (c *quantization) patterns(t *tile, r int) []uint16 {
	return patternsOf(&c.x, t.row+r, t.col, t.width)
}

// rest returns the elements of a row of a tile after the first ones.
func (c *quantization) rest(t *tile, r, first int) []float32 {
	return c.x.Piece(t.row+r, t.col+first, t.width-first, t.line)
}

// encode stores the rows of a tile with the scale of the tensor.
func (c *quantization) encode(t *tile, to host.Bytes) {
	for r := range t.height {
		data := to.Piece(r, 0, t.width)
		done, amax := c.f.EncodeAmaxBF16(data, c.patterns(t, r), c.factor[0])
		if done < t.width {
			amax = max(amax, c.f.EncodeAmax(data[done:], c.rest(t, r, done), c.factor[0]))
		}
		t.largest = max(t.largest, amax)
	}
}

// byRows quantises the rows of a tile in blocks.
func (c *quantization) byRows(t *tile, b int) {
	n, first := (t.width+b-1)/b, t.col/b
	for r := range t.height {
		row, bits := t.row+r, c.patterns(t, r)
		data := c.rows.data.Piece(row, t.col, t.width)
		if c.q.Scaling == quant.MXFP8Scaling {
			codes := c.rows.codes.Piece(row, first, n)
			if done := c.f.QuantizeE8M0BF16(data, codes, bits); done < n {
				c.f.QuantizeE8M0(data[done*b:], codes[done:], c.rest(t, r, done*b))
			}
			continue
		}
		inv := c.rows.scales.Data[row*c.rows.scales.Pitch+first:][:n]
		if done := c.f.QuantizeBF16(data, inv, bits, b, c.q.AmaxEpsilon, c.q.ForcePow2Scales); done < n {
			c.f.Quantize(data[done*b:], inv[done:], c.rest(t, r, done*b), b, c.q.AmaxEpsilon, c.q.ForcePow2Scales)
		}
	}
}

// squares quantises a tile in square blocks.
func (c *quantization) squares(t *tile, to host.Bytes, b int) {
	n := (t.width + b - 1) / b
	factor, amax := t.factor[:n], t.amax[:n]
	clear(factor)
	for r := range t.height {
		fp8.Amaxes(amax, c.elements(t, r), b)
		fp8.Raise(factor, amax)
	}
	copy(amax, factor)
	if c.rows.on {
		c.store(factor, &c.rows, t.row/b, t.col/b)
	}
	if c.cols.on {
		copy(factor, amax)
		for j := range n {
			c.store(factor[j:j+1], &c.cols, t.col/b+j, t.row/b)
		}
	}
	for r := range t.height {
		c.f.Encode(to.Piece(r, 0, t.width), c.elements(t, r), factor, b)
	}
}

// store replaces the amaxes of blocks by their scales, and stores the reciprocals to a row of the
// scales of a side.
func (c *quantization) store(amax []float32, s *side, row, col int) {
	if c.q.Scaling == quant.MXFP8Scaling {
		c.f.EncodeE8M0(s.codes.Piece(row, col, len(amax)), amax)
		return
	}
	inv := s.scales.Data[row*s.scales.Pitch+col:]
	c.f.Scales(inv, amax, c.q.AmaxEpsilon, c.q.ForcePow2Scales)
}
