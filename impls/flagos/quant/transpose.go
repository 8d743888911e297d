package quant

import (
	"encoding/binary"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/quant"
)

// transpose stores the transpose of a matrix of bytes with rows at a pitch:
//
//	dst[c·dstPitch + r] = src[r·srcPitch + c]
func transpose(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) {
	r := 0
	for ; r+8 <= rows; r += 8 {
		c := 0
		for ; c+8 <= cols; c += 8 {
			eight(dst[c*dstPitch+r:], dstPitch, src[r*srcPitch+c:], srcPitch)
		}
		rest(dst, dstPitch, src, srcPitch, r, r+8, c, cols)
	}
	rest(dst, dstPitch, src, srcPitch, r, rows, 0, cols)
}

func rest(dst []byte, dstPitch int, src []byte, srcPitch, r0, r1, c0, c1 int) {
	for r := r0; r < r1; r++ {
		for c := c0; c < c1; c++ {
			dst[c*dstPitch+r] = src[r*srcPitch+c]
		}
	}
}

// eight transposes 8×8 bytes, exchanging quarters of ever smaller squares.
func eight(dst []byte, dstPitch int, src []byte, srcPitch int) {
	var w [8]uint64
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(src[i*srcPitch:])
	}
	for i := range 4 {
		w[i], w[i+4] = w[i]&0x00000000ffffffff|w[i+4]<<32, w[i]>>32|w[i+4]&0xffffffff00000000
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		const low = 0x0000ffff0000ffff
		w[i], w[i+2] = w[i]&low|w[i+2]&low<<16, w[i]>>16&low|w[i+2]&^low
	}
	for i := 0; i < 8; i += 2 {
		const low = 0x00ff00ff00ff00ff
		w[i], w[i+1] = w[i]&low|w[i+1]&low<<8, w[i]>>8&low|w[i+1]&^low
	}
	for i := range w {
		binary.LittleEndian.PutUint64(dst[i*dstPitch:], w[i])
	}
}

type transposition struct {
	host.Cut
	in, out host.Bytes
}

const transposedRows = 64 // of a part, at least

var transposeKernel = parallel.NewKernel((*transposition).part)

// fp8Transpose implements quant.FP8Transpose.
func fp8Transpose(e *opregistry.Exec, a quant.FP8TransposeArgs) error {
	var v host.Views
	c := transposition{in: v.Bytes("input", a.Input), out: v.Bytes("out", a.Out)}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems((c.in.Rows+transposedRows-1)/transposedRows, transposedRows*c.in.Cols)
	transposeKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *transposition) part(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		r := i * transposedRows
		n := min(transposedRows, c.in.Rows-r)
		for col := 0; col < c.in.Cols; col += transposedRows {
			transpose(c.out.Data[col*c.out.Pitch+r:], c.out.Pitch, c.in.Data[r*c.in.Pitch+col:], c.in.Pitch, n, min(transposedRows, c.in.Cols-col))
		}
	}
}
