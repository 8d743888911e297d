package quant

import (
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/parallel"
)

// fp4Numbers is a matrix of nvfp4 scaling to turn into numbers, cut into tiles.
type fp4Numbers struct {
	dequantization
	host.Cut
	values                *[256]fp8.E2M1Values
	height, width, across int
}

var (
	fp4FromRowsKernel    = parallel.NewKernel((*fp4Numbers).fromRows)
	fp4FromColumnsKernel = parallel.NewKernel((*fp4Numbers).fromColumns)
)

const fp4ValueFloats = int(unsafe.Sizeof([256]fp8.E2M1Values{}) / 4)

// runFP4 dequantises a matrix with nvfp4 scaling. Scratch: the numbers of all codes, and a tile per
// part.
func (c dequantization) runFP4(amax float32) {
	buf := c.exec.Scratch(fp4ValueFloats)
	s := fp4Numbers{dequantization: c, values: (*[256]fp8.E2M1Values)(unsafe.Pointer(&buf[0])), height: 1, width: pieceLen}
	for scale := range s.values[:128] {
		value := e4m3(scale)
		for code := range s.values[scale][:8] {
			v := float32(e2m1(code) * value * float64(amax) / 2688)
			s.values[scale][code], s.values[scale][code+8] = v, -v
			s.values[scale+128][code], s.values[scale+128][code+8] = -v, v
		}
	}
	kernel := fp4FromRowsKernel
	if c.byColumns {
		s.height, s.width, kernel = fp4TileRows, fp4TileCols, fp4FromColumnsKernel
	}
	s.across = (c.out.Cols + s.width - 1) / s.width
	s.Cut = host.CutItems((c.out.Rows+s.height-1)/s.height*s.across, min(s.height, c.out.Rows)*min(s.width, c.out.Cols))
	kernel.Run(c.exec.Pool(), s.Parts, s)
	c.exec.Release(buf)
}

// fp4PastCaches is how many numbers, of 16 MiB, are written past the caches when they come from
// data by columns: each store to rows that lie a power of two apart would wait for a line to leave.
const fp4PastCaches = 1 << 22

// fromRows takes data by rows.
func (s *fp4Numbers) fromRows(part int) {
	lo, hi := s.Bounds(part)
	buf := s.exec.Scratch(s.width)
	for i := lo; i < hi; i++ {
		row, col := i/s.across, i%s.across*s.width
		width := min(s.width, s.out.Cols-col)
		at := row
		if s.square {
			at /= fp4Block
		}
		to := s.out.Place(row, col, width, buf)
		fp8.DecodeE2M1(to, s.in.data.Piece(row, col/2, width/2), s.in.codes.Piece(at, col/fp4Block, (width+fp4Block-1)/fp4Block), s.values)
		s.out.Settle(row, col, to)
	}
	s.exec.Release(buf)
}

// fromColumns takes data by columns, of which it copies a tile whose columns do not lie a power of
// two apart.
func (s *fp4Numbers) fromColumns(part int) {
	const (
		lines = fp4Block * fp4TileCols
		pitch = fp4TileRows/2 + fp4Bytes
	)
	lo, hi := s.Bounds(part)
	buf := s.exec.Scratch(lines + (2*fp4TileCodes+fp4TileCols*pitch)/4)
	bytes := host.ScratchBytes(buf[lines:])
	codes := host.Bytes{Data: bytes, Pitch: fp4TileCols}
	squares := host.Bytes{Data: bytes[fp4TileCodes:], Pitch: fp4TileCols}
	data := bytes[2*fp4TileCodes:]
	past := s.out.Rows*s.out.Cols >= fp4PastCaches
	for i := lo; i < hi; i++ {
		row, col := i/s.across*s.height, i%s.across*s.width
		height, width := min(s.height, s.out.Rows-row), min(s.width, s.out.Cols-col)
		bands := (height + fp4Block - 1) / fp4Block
		scales, first, n := codes, col, width
		if s.square {
			scales, first, n = squares, col/fp4Block, (width+fp4Block-1)/fp4Block
		}
		fp8.Transpose(scales.Data, scales.Pitch, s.in.codes.Data[first*s.in.codes.Pitch+row/fp4Block:], s.in.codes.Pitch, n, bands)
		in := s.in.data
		fp8.Copy(data, pitch, in.Data[col*in.Pitch+row/2:], in.Pitch, width, height/2)
		for b := range bands {
			if s.square {
				spread(codes.Piece(b, 0, width), squares.Piece(b, 0, n))
			}
			at := row + b*fp4Block
			from, rows := data[b*fp4Bytes:], min(fp4Block, s.out.Rows-at)
			if rows == fp4Block && !s.out.Narrow() {
				fp8.DecodeE2M1Down(s.out.Data[at*s.out.Pitch+col:], s.out.Pitch, from, pitch, codes.Piece(b, 0, width), s.values, past)
				continue
			}
			fp8.DecodeE2M1Down(buf[:lines], width, from, pitch, codes.Piece(b, 0, width), s.values, false)
			for r := range rows {
				s.out.Put(at+r, col, buf[r*width:][:width])
			}
		}
	}
	s.exec.Release(buf)
}

// spread stores the scales of square blocks for their columns.
func spread(to, squares []byte) {
	for j := range to {
		to[j] = squares[j/fp4Block]
	}
}
