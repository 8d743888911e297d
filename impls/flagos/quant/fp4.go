package quant

import (
	"math"
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/ops/random"
	"github.com/primus-fl/primus/tensor"
)

const (
	fp4Block  = fp8.E2M1Block
	fp4Scales = 127 // codes of the scales of a block, which are finite and not negative
	fp4Turned = 256 // rows of the data by columns in a tile, which has half as many columns
)

// fp4Tables say how the numbers of a tensor become codes. Their limits are those of the formulas of
// quant.Quantize in f64, so that comparisons of f32 give the same codes.
type fp4Tables struct {
	limits [128]fp8.E2M1Limits // by the code of the scale
	scales [128]float32        // element c is the least amax of a block whose scale has at least code c
	factor [1]float32          // from an amax to about its scale
}

const fp4TableFloats = int(unsafe.Sizeof(fp4Tables{}) / 4)

// fp4TablesOf makes tables in buf for the scale of a tensor.
func fp4TablesOf(buf []float32, scale float32) *fp4Tables {
	t := (*fp4Tables)(unsafe.Pointer(&buf[:fp4TableFloats][0]))
	encode := float64(scale)
	t.factor[0] = scale / 6
	for c := range fp4Scales {
		if value := e4m3(c); c > 0 {
			tie := (e4m3(c-1) + value) / 2
			t.scales[c] = leastMagnitude(tie*6/encode, func(amax float64) bool { return reaches(min(amax/6*encode, math.MaxFloat32), tie, c) })
		}
		factor := fp4Factor(encode, c)
		for k := 1; k < len(t.limits[c]); k++ {
			tie := (e2m1(k-1) + e2m1(k)) / 2
			t.limits[c][k] = leastMagnitude(tie/factor, func(a float64) bool { return reaches(a*factor, tie, k) })
		}
	}
	return t
}

func e4m3(code int) float64 { return float64(tensor.Float8E4M3(code).Float32()) }

func e2m1(code int) float64 { return float64(tensor.Float4E2M1(code).Float32()) }

// fp4Factor returns the factor of the elements of a block.
func fp4Factor(encode float64, code int) float64 { return min(encode/e4m3(code), math.MaxFloat32) }

// reaches reports whether v is rounded up to a code from its tie with the code before.
func reaches(v, tie float64, code int) bool { return v > tie || v == tie && code%2 == 0 }

// leastMagnitude returns the least f32 that is not negative and for which f, which does not fall,
// holds. It is near the guess.
func leastMagnitude(guess float64, f func(float64) bool) float32 {
	bits := math.Float32bits(float32(guess))
	for bits < infinityBits && !f(float64(math.Float32frombits(bits))) {
		bits++
	}
	for bits > 0 && f(float64(math.Float32frombits(bits-1))) {
		bits--
	}
	return math.Float32frombits(bits)
}

const infinityBits = 0x7f800000

// scaleCodes stores the codes of the scales of blocks.
func (t *fp4Tables) scaleCodes(to []byte, amax []float32) {
	fp8.E4M3.Encode(to, amax, t.factor[:], max(len(amax), 1))
	for i, a := range amax {
		c := to[i]
		for c > 0 && a < t.scales[c] {
			c--
		}
		for c < fp4Scales-1 && a >= t.scales[c+1] {
			c++
		}
		to[i] = c
	}
}

// fp4Side is the data by rows or by columns of a matrix that is quantised, cut into tiles. Its rows
// are those of the data: by columns, the columns of the matrix.
type fp4Side struct {
	quantization
	host.Cut
	side
	*fp4Tables
	encode                float64
	stream                uint32 // of random numbers: 1 by columns
	rowCount, rowLen      int
	height, width, across int
}

var fp4Kernel = parallel.NewKernel((*fp4Side).part)

// runFP4 quantises the matrix with nvfp4 scaling. Scratch: tables, and some tiles per part.
func (c quantization) runFP4() {
	c.amax[0] = amaxOf(c.exec, c.x)
	scale := float32(1)
	if c.amax[0] != infinity {
		scale = encodingScale(c.amax[0])
	}
	buf := c.exec.Scratch(fp4TableFloats)
	s := fp4Side{quantization: c, fp4Tables: fp4TablesOf(buf, scale), encode: float64(scale)}
	if c.rows.on {
		s.side, s.rowCount, s.rowLen, s.height, s.width = c.rows, c.x.Rows, c.x.Cols, fp4Block, pieceLen
		s.run()
	}
	if c.cols.on {
		s.side, s.rowCount, s.rowLen, s.height, s.width, s.stream = c.cols, c.x.Cols, c.x.Rows, fp4Turned, fp4Turned/2, 1
		s.run()
	}
	c.exec.Release(buf)
}

func (s fp4Side) run() {
	s.across = (s.rowLen + s.width - 1) / s.width
	s.Cut = host.CutItems((s.rowCount+s.height-1)/s.height*s.across, min(s.height, s.rowCount)*min(s.width, s.rowLen))
	fp4Kernel.Run(s.exec.Pool(), s.Parts, s)
}

func (s *fp4Side) part(part int) {
	lo, hi := s.Bounds(part)
	pitch := s.width + linePad/4
	blocks := s.width / fp4Block
	buf := s.exec.Scratch(2*s.height*pitch + 3*blocks)
	lines, turned, rest := buf[:s.height*pitch], buf[s.height*pitch:][:s.height*pitch], buf[2*s.height*pitch:]
	amax, tmp, codes := rest[:blocks], rest[blocks:][:blocks], host.ScratchBytes(rest[2*blocks:])
	for i := lo; i < hi; i++ {
		row, col := i/s.across*s.height, i%s.across*s.width
		height, width := min(s.height, s.rowCount-row), min(s.width, s.rowLen-col)
		if s.stream == 1 {
			s.turn(turned, lines, pitch, row, col, height, width)
		}
		line := func(r int) []float32 {
			if s.stream == 1 {
				return turned[r*pitch:][:width]
			}
			return s.x.Piece(row+r, col, width, lines[r*pitch:][:width])
		}
		n := (width + fp4Block - 1) / fp4Block
		for r := 0; r < height; {
			share := 1 // rows with the same scales
			if s.q.Block2D {
				share = min(fp4Block, height-r)
			}
			clear(amax[:n])
			for k := range share {
				fp8.Amaxes(tmp[:n], line(r+k), fp4Block)
				fp8.Raise(amax, tmp[:n])
			}
			s.scaleCodes(codes[:n], amax[:n])
			at := row + r
			if s.q.Block2D {
				at /= fp4Block
			}
			copy(s.side.codes.Piece(at, col/fp4Block, n), codes)
			for range share {
				s.store(row+r, col, line(r), codes[:n])
				r++
			}
		}
	}
	s.exec.Release(buf)
}

// turn copies a tile of the transpose of the matrix.
func (s *fp4Side) turn(to, lines []float32, pitch, row, col, height, width int) {
	x, from := s.x.Data, s.x.Pitch
	at := col*from + row
	if s.x.Narrow() {
		for r := range width {
			s.x.Piece(col+r, row, height, lines[r*height:])
		}
		x, from, at = lines, height, 0
	}
	gemm.Transpose(to, pitch, x[at:], from, width, height)
}

// store stores elements of a row of the data, whose blocks have scales of these codes.
func (s *fp4Side) store(row, col int, x []float32, codes []byte) {
	to := s.data.Piece(row, col/2, len(x)/2)
	if !s.q.Stochastic {
		fp8.EncodeE2M1(to, x, codes, &s.limits)
		return
	}
	key := [2]uint32{uint32(s.q.Seed), uint32(s.q.Seed >> 32)}
	var words [4]uint32
	first := row*s.rowLen + col
	for i, v := range x {
		at := first + i
		if i == 0 || at%4 == 0 {
			counter := s.q.Offset + uint64(at/4)
			words = random.Philox4x32([4]uint32{uint32(counter), uint32(counter >> 32), s.stream}, key)
		}
		code := atRandom(float64(v)*fp4Factor(s.encode, int(codes[i/fp4Block])), words[at%4])
		if i%2 == 0 {
			to[i/2] = code
		} else {
			to[i/2] |= code << 4
		}
	}
}

// atRandom returns the code of one of the two neighbours of v, chosen by a random word.
func atRandom(v float64, word uint32) byte {
	if v != v {
		return fp4Largest
	}
	sign, a := byte(0), math.Abs(v)
	if math.Signbit(v) {
		sign = 8
	}
	k := 0
	for k < fp4Largest && a >= e2m1(k+1) {
		k++
	}
	if k < fp4Largest && float64(word)*0x1p-32 < (a-e2m1(k))/(e2m1(k+1)-e2m1(k)) {
		k++
	}
	return sign | byte(k)
}

const fp4Largest = 7 // code

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
