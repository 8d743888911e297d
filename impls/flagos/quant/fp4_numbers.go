package quant

import (
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/parallel"
)

// fp4Numbers is a matrix of nvfp4 scaling to turn into numbers, cut into tiles of rows and columns
// of the data.
type fp4Numbers struct {
	dequantization
	host.Cut
	values                *[256]fp8.E2M1Values
	rowCount, rowLen      int // of the data
	height, width, across int
}

var fp4NumbersKernel = parallel.NewKernel((*fp4Numbers).part)

// fp4Turned is how many rows of the data by columns a tile has, which has half as many columns.
const fp4Turned = 256

const fp4ValueFloats = int(unsafe.Sizeof([256]fp8.E2M1Values{}) / 4)

// runFP4 dequantises a matrix with nvfp4 scaling. Scratch: the numbers of all codes, and some tiles
// per part.
func (c dequantization) runFP4(amax float32) {
	buf := c.exec.Scratch(fp4ValueFloats)
	s := fp4Numbers{
		dequantization: c, values: (*[256]fp8.E2M1Values)(unsafe.Pointer(&buf[0])),
		rowCount: c.out.Rows, rowLen: c.out.Cols, height: 1, width: pieceLen,
	}
	for scale := range s.values {
		for code := range s.values[scale] {
			s.values[scale][code] = float32(e2m1(code) * e4m3(scale) * float64(amax) / 2688)
		}
	}
	if c.byColumns {
		s.rowCount, s.rowLen, s.height, s.width = c.out.Cols, c.out.Rows, fp4Turned, fp4Turned/2
	}
	s.across = (s.rowLen + s.width - 1) / s.width
	s.Cut = host.CutItems((s.rowCount+s.height-1)/s.height*s.across, min(s.height, s.rowCount)*min(s.width, s.rowLen))
	fp4NumbersKernel.Run(c.exec.Pool(), s.Parts, s)
	c.exec.Release(buf)
}

func (s *fp4Numbers) part(part int) {
	lo, hi := s.Bounds(part)
	pitch := s.width + linePad/4
	size := s.height * pitch
	buf := s.exec.Scratch(2 * size)
	for i := lo; i < hi; i++ {
		row, col := i/s.across*s.height, i%s.across*s.width
		height, width := min(s.height, s.rowCount-row), min(s.width, s.rowLen-col)
		for r := range height {
			at := row + r
			if s.square {
				at /= fp4Block
			}
			codes := s.in.codes.Piece(at, col/fp4Block, (width+fp4Block-1)/fp4Block)
			data := s.in.data.Piece(row+r, col/2, width/2)
			if s.byColumns {
				fp8.DecodeE2M1(buf[r*pitch:][:width], data, codes, s.values)
				continue
			}
			to := s.out.Place(row, col, width, buf)
			fp8.DecodeE2M1(to, data, codes, s.values)
			s.out.Settle(row, col, to)
		}
		if s.byColumns {
			s.turn(buf[:size], buf[size:], pitch, row, col, height, width)
		}
	}
	s.exec.Release(buf)
}

// turn stores the transpose of a tile, by way of a copy whose rows do not lie a power of two apart.
func (s *fp4Numbers) turn(x, lines []float32, pitch, row, col, height, width int) {
	gap := height + linePad/4
	gemm.Transpose(lines, gap, x, pitch, height, width)
	for r := range width {
		s.out.Put(col+r, row, lines[r*gap:][:height])
	}
}
