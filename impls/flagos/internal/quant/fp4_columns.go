package quant

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
)

// The largest tile of the matrix whose data by columns is stored at once. Its columns have two
// cache lines each, and its rows many.
const (
	fp4TileRows = 256
	fp4TileCols = 512

	fp4TileBands = fp4TileRows / fp4Block
)

const fp4Bytes = fp4Block / 2 // of the data of a block

// fp4Tile is a tile in the hands of a part: its bands of 16 rows are rounded one after the other.
type fp4Tile struct {
	row, col      int // of its first element
	height, width int
	lines         []float32  // memory for 16 rows that are widened or padded
	codes         host.Bytes // of the scales, a row for each band
	data          host.Bytes // of the columns of each band
	inWords       bool       // whether words serve the band
}

const (
	fp4TileCodes = fp4TileCols * fp4TileBands
	fp4TilePitch = fp4TileCols*fp4Bytes + linePad

	fp4TurnedPitch = fp4TileRows + fp4Block // of the elements of a column
)

// encodeColumns stores the data by columns and its scales.
func (s *fp4) encodeColumns(part int) {
	lo, hi := s.Bounds(part)
	const lines = fp4Block * fp4TileCols
	const room = lines + (2*fp4TileCodes+fp4TileBands*fp4TilePitch)/4
	size := room
	if s.q.Stochastic {
		size += fp4TileCols*fp4TurnedPitch + fp4Words(fp4TileRows)
	}
	buf := s.exec.Scratch(size)
	bytes, turned := host.ScratchBytes(buf[lines:room]), buf[room:]
	t := fp4Tile{lines: buf[:lines]}
	t.codes = host.Bytes{Data: bytes, Pitch: fp4TileCols}
	squares := host.Bytes{Data: bytes[fp4TileCodes:], Pitch: fp4TileCols}
	t.data = host.Bytes{Data: bytes[2*fp4TileCodes:], Pitch: fp4TilePitch}
	for i := lo; i < hi; i++ {
		t.row, t.col = i/s.across*fp4TileRows, i%s.across*fp4TileCols
		t.height, t.width = min(fp4TileRows, s.x.Rows-t.row), min(fp4TileCols, s.x.Cols-t.col)
		bands, first := (t.height+fp4Block-1)/fp4Block, t.row/fp4Block
		scales, amaxes, col, n := t.codes, &s.col, t.col, t.width
		if s.q.Block2D {
			scales, amaxes, col, n = squares, &s.row, t.col/fp4Block, (t.width+fp4Block-1)/fp4Block
		}
		for b := range bands {
			codes, amax := scales.Piece(b, 0, n), amaxes.piece(first+b, col, n)
			s.blocks.Encode(codes, amax)
			amaxes.fetch(first+b+1, col, n)
			t.inWords = s.wordsServe(codes, amax)
			if s.q.Block2D {
				codes = t.codes.Piece(b, 0, t.width)
				spread(codes, squares.Piece(b, 0, n))
			}
			if !s.q.Stochastic {
				s.encodeBand(&t, b, codes)
			}
		}
		to := s.cols.codes
		fp8.Transpose(to.Data[col*to.Pitch+first:], to.Pitch, scales.Data, scales.Pitch, bands, n)
		if s.q.Stochastic {
			s.columnsAtRandom(&t, turned)
			continue
		}
		data, pitch := s.cols.data.Data[t.col*s.cols.data.Pitch+t.row/2:], s.cols.data.Pitch
		whole := t.height / fp4Block
		fp8.TransposeWords(data, pitch, t.data.Data, t.data.Pitch, whole, t.width)
		if rest := t.height/2 - whole*fp4Bytes; rest > 0 {
			for j := range t.width {
				copy(data[j*pitch+whole*fp4Bytes:][:rest], t.data.Data[whole*t.data.Pitch+j*fp4Bytes:])
			}
		}
	}
	s.exec.Release(buf)
}

// encodeBand rounds the columns of a band, whose scales have these codes.
func (s *fp4) encodeBand(t *fp4Tile, b int, codes []byte) {
	to, done := t.data.Piece(b, 0, t.width*fp4Bytes), 0
	if row := t.row + b*fp4Block; t.inWords && row+fp4Block <= s.x.Rows {
		done = fp8.EncodeE2M1DownBF16(to, s.x.Bits()[row*s.x.Pitch+t.col:], s.x.Pitch, codes, &s.words)
	}
	if done < t.width {
		x, pitch := s.band(t, b, done)
		fp8.EncodeE2M1Down(to[done*fp4Bytes:], x, pitch, codes[done:], &s.limits)
	}
}

// band returns the elements of a band from a column of the tile on. Its missing rows are zeros.
func (s *fp4) band(t *fp4Tile, b, first int) (x []float32, pitch int) {
	row, col, width := t.row+b*fp4Block, t.col+first, t.width-first
	height := min(fp4Block, s.x.Rows-row)
	if height == fp4Block {
		return s.elements(row, col, height, width, t.lines)
	}
	for r := range height {
		to := t.lines[r*width:][:width]
		copy(to, s.x.Piece(row+r, col, width, to))
	}
	clear(t.lines[height*width : fp4Block*width])
	return t.lines, width
}

// columnsAtRandom rounds the columns of a tile with stochastic rounding. turned is memory for them
// and for random numbers.
func (s *fp4) columnsAtRandom(t *fp4Tile, turned []float32) {
	bands := (t.height + fp4Block - 1) / fp4Block
	for b := range bands {
		x, pitch := s.band(t, b, 0)
		fp8.TurnRows(turned[b*fp4Block:], fp4TurnedPitch, x, pitch, t.width)
	}
	words := fp4WordsOf(turned[fp4TileCols*fp4TurnedPitch:])
	for j := range t.width {
		at := t.col + j
		if s.q.Block2D {
			at /= fp4Block
		}
		codes := s.cols.codes.Piece(at, t.row/fp4Block, bands)
		if data := &s.cols.data; j%fp4Block == 0 { // whose lines are no neighbours
			fp8.Prefetch(data.Data[(t.col+j)*data.Pitch+t.row/2:], data.Pitch, min(fp4Block, t.width-j), t.height/2)
		}
		to := s.cols.data.Piece(t.col+j, t.row/2, t.height/2)
		s.storeAtRandom(to, turned[j*fp4TurnedPitch:][:t.height], codes, (t.col+j)*s.x.Rows+t.row, 1, words)
	}
}
