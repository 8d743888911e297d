package quant

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/philox"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/tensor"
)

const (
	fp4Block  = fp8.E2M1Block
	fp4Scales = 127 // codes of the scales of a block, which are finite and not negative
)

// fp4Tables say how the numbers of a tensor become codes. Their limits are those of the formulas of
// quant.Quantize in f64, so that comparisons of f32 give the same codes.
type fp4Tables struct {
	limits [128]fp8.E2M1Limits // by the code of the scale
	blocks fp8.E2M1Scales
	// factors are those of the elements of a block, by the code of its scale.
	factors [128]float64
	// words has the limits for bfloat16 if narrow is true. Those of code 0, which are too near to each
	// other, serve only for zeros.
	words  fp8.E2M1Words
	narrow bool
}

const fp4TableFloats = int(unsafe.Sizeof(fp4Tables{}) / 4)

// fp4TablesOf makes tables in buf for the scale of a tensor, with narrow also for bfloat16.
func fp4TablesOf(buf []float32, scale float32, narrow bool) *fp4Tables {
	t := (*fp4Tables)(unsafe.Pointer(&buf[:fp4TableFloats][0]))
	encode := float64(scale)
	t.blocks.Factor = scale / 6
	t.narrow = narrow
	for c := range t.blocks.Least {
		t.blocks.Least[c] = infinity
	}
	var factors [8]float64   // of the last scales
	var limits [8][8]float32 // of these
	for c := range fp4Scales {
		if value := e4m3(c); c > 0 {
			tie := (e4m3(c-1) + value) / 2
			v := func(amax float64) float64 { return min(amax/6*encode, math.MaxFloat32) }
			t.blocks.Least[c-1] = leastMagnitude(tie*6/encode, v, tie, c)
		}
		factor := fp4Factor(encode, c)
		t.factors[c] = factor
		// A scale that is twice another one has twice its limits, if they are normal numbers.
		l, doubled := &limits[c%8], c >= 16 && factor == factors[c%8]/2
		factors[c%8] = factor
		for k, tie := range fp4Ties {
			if doubled && l[k+1] >= 0x1p-126 && l[k+1] < 0x1p126 {
				l[k+1] *= 2
				continue
			}
			l[k+1] = leastMagnitude(tie/factor, func(a float64) float64 { return a * factor }, tie, k+1)
		}
		t.limits[c].Set(l, float32(factor))
		if c > 0 && t.narrow {
			t.narrow = t.words.Set(c, l)
		}
		if c == 1 && t.narrow {
			t.words.Set(0, l)
		}
	}
	return t
}

// wordsServe reports whether words has the limits of blocks with scales of these codes.
func (t *fp4Tables) wordsServe(codes []byte, amax []float32) bool {
	for at := 0; t.narrow; at++ {
		zero := bytes.IndexByte(codes[at:], 0)
		if zero < 0 {
			break
		}
		if at += zero; amax[at] != 0 {
			return false
		}
	}
	return t.narrow
}

// fp4Ties are the numbers halfway between those of two codes of E2M1.
var fp4Ties = [...]float64{0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5}

func e4m3(code int) float64 { return float64(tensor.Float8E4M3(code).Float32()) }

func e2m1(code int) float64 { return float64(tensor.Float4E2M1(code).Float32()) }

// fp4Factor returns the factor of the elements of a block.
func fp4Factor(encode float64, code int) float64 { return min(encode/e4m3(code), math.MaxFloat32) }

// leastMagnitude returns the least f32 a that is not negative and for which v(a), which does not
// fall, is rounded up to a code from its tie with the code before. It is near the guess.
func leastMagnitude(guess float64, v func(a float64) float64, tie float64, code int) float32 {
	even := code%2 == 0
	bits := math.Float32bits(float32(guess))
	for bits < infinityBits {
		if got := v(float64(math.Float32frombits(bits))); got > tie || even && got == tie {
			break
		}
		bits++
	}
	for bits > 0 {
		if got := v(float64(math.Float32frombits(bits - 1))); got < tie || !even && got == tie {
			break
		}
		bits--
	}
	return math.Float32frombits(bits)
}

const infinityBits = 0x7f800000

// fp4 is a matrix that is quantised with nvfp4 scaling in two passes: the first one finds the
// largest magnitudes of all blocks, from which that of the matrix follows, and the second one
// rounds.
type fp4 struct {
	quantization
	host.Cut
	*fp4Tables
	row         fp4Amaxes // of the blocks of rows, or of square ones
	col         fp4Amaxes // of the blocks of columns, a row for each 16 rows of the matrix
	across      int       // pieces or tiles across the matrix
	partLargest []float32
}

// fp4Amaxes are the largest magnitudes of blocks, if there are any of this kind.
type fp4Amaxes struct {
	data  []float32
	pitch int
}

func (a *fp4Amaxes) piece(row, col, n int) []float32 { return a.data[row*a.pitch+col:][:n] }

// fetch asks the processor for a piece, if there is one.
func (a *fp4Amaxes) fetch(row, col, n int) {
	if at := row*a.pitch + col; at+n <= len(a.data) {
		fp8.Prefetch(a.data[at:], n, 1, n)
	}
}

var (
	fp4AmaxKernel = parallel.NewKernel((*fp4).amaxes)
	fp4RowsKernel = parallel.NewKernel((*fp4).encodeRows)
	fp4ColsKernel = parallel.NewKernel((*fp4).encodeColumns)
)

// runFP4 quantises the matrix with nvfp4 scaling. Scratch: tables, the largest magnitudes of all
// blocks, and a tile per part.
func (c quantization) runFP4() {
	bands, blocks := (c.x.Rows+fp4Block-1)/fp4Block, (c.x.Cols+fp4Block-1)/fp4Block
	s := fp4{quantization: c, across: (c.x.Cols + pieceLen - 1) / pieceLen}
	s.Cut = host.CutItems(bands*s.across, fp4Block*min(pieceLen, c.x.Cols))
	rows, cols := 0, 0
	switch {
	case c.q.Block2D:
		rows = bands * blocks
	default:
		if c.rows.on {
			rows = c.x.Rows * blocks
		}
		if c.cols.on {
			cols = bands * c.x.Cols
		}
	}
	buf := c.exec.Scratch(fp4TableFloats + rows + cols + s.Parts)
	rest := buf[fp4TableFloats:]
	s.row, s.col = fp4Amaxes{rest[:rows], blocks}, fp4Amaxes{rest[rows:][:cols], c.x.Cols}
	s.partLargest = rest[rows+cols:]
	fp4AmaxKernel.Run(c.exec.Pool(), s.Parts, s)
	largest := fp8.Amax(s.partLargest)
	c.amax[0] = largest
	scale := float32(1)
	if largest != infinity {
		scale = encodingScale(largest)
	}
	s.fp4Tables = fp4TablesOf(buf, scale, s.x.DType() == tensor.BF16)
	if c.rows.on {
		fp4RowsKernel.Run(c.exec.Pool(), s.Parts, s)
	}
	if c.cols.on {
		s.across = (c.x.Cols + fp4TileCols - 1) / fp4TileCols
		s.Cut = host.CutItems((c.x.Rows+fp4TileRows-1)/fp4TileRows*s.across, min(fp4TileRows, c.x.Rows)*min(fp4TileCols, c.x.Cols))
		fp4ColsKernel.Run(c.exec.Pool(), s.Parts, s)
	}
	c.exec.Release(buf)
}

// amaxes finds the largest magnitudes of blocks.
func (s *fp4) amaxes(part int) {
	lo, hi := s.Bounds(part)
	lines := pieceLen
	if s.x.Narrow() {
		lines *= fp4Block
	}
	buf := s.exec.Scratch(lines + pieceLen)
	largest := float32(0)
	for i := lo; i < hi; i++ {
		row, col := i/s.across*fp4Block, i%s.across*pieceLen
		height, width := min(fp4Block, s.x.Rows-row), min(pieceLen, s.x.Cols-col)
		first, n := col/fp4Block, (width+fp4Block-1)/fp4Block
		if s.rows.on && !s.q.Block2D {
			for r := row; r < row+height; r++ {
				to := s.row.piece(r, first, n)
				s.rowAmaxes(to, r, col, width, buf)
				largest = max(largest, fp8.Amax(to))
			}
			if !s.cols.on {
				continue
			}
		}
		down := buf[lines:][:width]
		if !s.q.Block2D {
			down = s.col.piece(row/fp4Block, col, width)
		}
		s.columnAmaxes(down, row, col, height, buf)
		if s.q.Block2D {
			fp8.Amaxes(s.row.piece(row/fp4Block, first, n), down, fp4Block)
		}
		largest = max(largest, fp8.Amax(down))
	}
	s.partLargest[part] = largest
	s.exec.Release(buf)
}

// rowAmaxes finds the largest magnitudes of the blocks of a row.
func (s *fp4) rowAmaxes(to []float32, row, col, width int, buf []float32) {
	blocks := fp8.AmaxesE2M1BF16(to, patternsOf(&s.x, row, col, width))
	done := blocks * fp4Block
	fp8.Amaxes(to[blocks:], s.x.Piece(row, col+done, width-done, buf), fp4Block)
}

// patternsOf returns elements of a row of bfloat16, none if they are of another dtype.
func patternsOf(x *host.Matrix, row, col, n int) []uint16 {
	if x.DType() != tensor.BF16 {
		return nil
	}
	return x.Bits()[row*x.Pitch+col:][:n]
}

// columnAmaxes finds the largest magnitudes of the columns of a band.
func (s *fp4) columnAmaxes(to []float32, row, col, height int, buf []float32) {
	done := 0
	if s.x.DType() == tensor.BF16 {
		done = fp8.AmaxColumnsBF16(to, s.x.Bits()[row*s.x.Pitch+col:], s.x.Pitch, height)
	}
	if done < len(to) {
		x, pitch := s.elements(row, col+done, height, len(to)-done, buf)
		fp8.AmaxColumns(to[done:], x, pitch, height)
	}
}

// elements returns elements of rows, in lines if they have to be widened, in which case it asks the
// processor for as many rows after them.
func (s *fp4) elements(row, col, height, width int, lines []float32) (x []float32, pitch int) {
	if !s.x.Narrow() {
		return s.x.Data[row*s.x.Pitch+col:], s.x.Pitch
	}
	if next := row + height; next < s.x.Rows {
		fp8.Prefetch(s.x.Bits()[next*s.x.Pitch+col:], s.x.Pitch, min(height, s.x.Rows-next), width)
	}
	for r := range height {
		s.x.Piece(row+r, col, width, lines[r*width:])
	}
	return lines, width
}

// encodeRows stores the data by rows and its scales.
func (s *fp4) encodeRows(part int) {
	lo, hi := s.Bounds(part)
	buf := s.exec.Scratch(pieceLen + fp4Words(pieceLen))
	words := fp4WordsOf(buf[pieceLen:])
	for i := lo; i < hi; i++ {
		row, col := i/s.across*fp4Block, i%s.across*pieceLen
		height, width := min(fp4Block, s.x.Rows-row), min(pieceLen, s.x.Cols-col)
		first, n := col/fp4Block, (width+fp4Block-1)/fp4Block
		var codes []byte
		inWords := false
		for r := row; r < row+height; r++ {
			at := r
			if s.q.Block2D {
				at /= fp4Block
			}
			if r == row || !s.q.Block2D {
				codes = s.rows.codes.Piece(at, first, n)
				amax := s.row.piece(at, first, n)
				s.blocks.Encode(codes, amax)
				inWords = s.wordsServe(codes, amax)
				s.row.fetch(at+1, first, n)
			}
			to := s.rows.data.Piece(r, col/2, width/2)
			if s.q.Stochastic {
				s.storeAtRandom(to, s.x.Piece(r, col, width, buf), codes, r*s.x.Cols+col, 0, words)
				continue
			}
			done := 0
			if inWords {
				done = fp8.EncodeE2M1BF16(to, patternsOf(&s.x, r, col, width), codes, &s.words)
			}
			fp8.EncodeE2M1(to[done/2:], s.x.Piece(r, col+done, width-done, buf), codes[done/fp4Block:], &s.limits)
		}
	}
	s.exec.Release(buf)
}

// storeAtRandom stores elements of the data from index first on, whose blocks have scales of these
// codes, with stochastic rounding. words is memory for fp4Words of their number.
func (s *fp4) storeAtRandom(to []byte, x []float32, codes []byte, first int, stream uint32, words []uint32) {
	skip := first % 4
	words = words[:fp4Words(len(x))]
	philox.Numbers(words, s.q.Seed, s.q.Offset+uint64(first/4), stream)
	fp8.EncodeE2M1AtRandom(to, x, codes, words[skip:], &s.factors)
}

// fp4Words returns how many random numbers are drawn for n elements: those of a counter more than
// are needed at most, as an element need not be the first one of its counter, in whole vectors.
func fp4Words(n int) int { return (n + 3 + 31) &^ 31 }

// fp4WordsOf views scratch as random numbers.
func fp4WordsOf(buf []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(buf))), len(buf))
}
