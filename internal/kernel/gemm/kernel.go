package gemm

import (
	"fmt"

	"github.com/primus-fl/primus/internal/race"
)

// Tile is one product of a Kernel, with distances in elements:
//
//	C[r·CRow+c] = Alpha · Σ_k A[r·ARow+k·AStep] · B[k·BStep+c] + Beta · C[r·CRow+c]
//
// for r < Rows and c < Cols. With Beta 0, C is only written.
type Tile struct {
	A           []float32 // MR rows of K elements, one of the distances is 1; the kernel also reads the rows from Rows on
	ARow, AStep int
	B           []float32 // K steps; the kernel also reads the columns from Cols on, but none from the next multiple of ReadCols on
	BStep       int       // NR where B is packed
	C           []float32 // Rows rows of Cols elements
	CRow        int
	Ahead       []float32 // what a later tile reads, if known: the first K·AheadStep elements may be prefetched
	K           int
	Rows, Cols  int // 1 to MR and 1 to NR
	Alpha, Beta float32
}

// Kernel is a micro-kernel: the innermost part of a blocked matrix product, which
// keeps MR×NR sums in registers. Its zero value is not usable.
type Kernel struct {
	// MR and NR are the rows and columns of a whole tile.
	MR, NR int

	isa isa
}

// AheadStep is how many elements of Tile.Ahead a kernel prefetches in each step.
const AheadStep = 8

// ReadCols divides the number of columns of B that a kernel reads, unless its NR is smaller.
const ReadCols = 16

// MaxMR and MaxNR bound the tiles of all kernels.
const (
	MaxMR = 12
	MaxNR = 48
)

type isa uint8

const (
	isaGo   isa = iota
	isa6x16     // whole tiles in assembly
	isaPairs6x16
	isaAVX512
	isaPairsAVX512
)

// BestKernel returns the fastest kernel that this machine can run among those whose NR divides
// multiple. multiple must be divisible by 16; 0 allows any kernel.
func BestKernel(multiple int) Kernel { return bestKernel(multiple) }

// PairKernel returns a kernel for products of bfloat16, if this machine has the instructions for
// it. An element of A and B is a pair of numbers of adjacent steps, the first in the lower half of
// its bits; the product of two elements is the sum of two products. Sums are in float32, rounded
// after each of the products: to nearest, or to odd on arm64. Numbers below 2⁻¹²⁶, results as well,
// count as 0.
func PairKernel() (Kernel, bool) { return pairKernel() }

// Run computes a tile. Sums run over k in order, in float32, with one rounding per step where the
// instruction set fuses product and sum: an element depends only on its row of A and its column of
// B, not on its place in the tile. A and B are read, C is written, or updated when Beta is not 0; C
// must not overlap the others. A slice that is too short is a bug of the caller and panics.
func (k Kernel) Run(t *Tile) {
	if t.Rows < 1 || t.Rows > k.MR || t.Cols < 1 || t.Cols > k.NR || t.K < 0 {
		panic(fmt.Sprintf("BUG: gemm: tile of %d×%d×%d for a kernel of %d×%d", t.Rows, t.Cols, t.K, k.MR, k.NR))
	}
	if t.ARow != 1 && t.AStep != 1 {
		panic(fmt.Sprintf("BUG: gemm: tile of rows %d and steps %d apart, want one of them side by side", t.ARow, t.AStep))
	}
	if t.BStep < 0 {
		panic(fmt.Sprintf("BUG: gemm: tile with steps of B %d apart", t.BStep))
	}
	if t.K > 0 {
		_ = t.A[(k.MR-1)*t.ARow+(t.K-1)*t.AStep]
		_ = t.B[(t.K-1)*t.BStep+min((t.Cols+ReadCols-1)/ReadCols*ReadCols, k.NR)-1]
	}
	_ = t.C[(t.Rows-1)*t.CRow+t.Cols-1]
	t.race()
	switch {
	case k.isa == isaPairsAVX512:
		pairsAVX512(t)
	case k.isa == isaAVX512:
		gemmAVX512(t, k.NR)
	case t.Rows == k.MR && t.Cols == k.NR:
		k.whole(t)
	default:
		k.edge(t)
	}
}

func (k Kernel) whole(t *Tile) {
	switch k.isa {
	case isa6x16:
		gemm6x16(t)
	case isaPairs6x16:
		pairs6x16(t)
	default:
		gemmGeneric(t)
	}
}

// edge computes a tile that does not fill the kernel's registers in a buffer and copies it to C.
func (k Kernel) edge(t *Tile) {
	var buf [MaxMR * MaxNR]float32
	beside := *t
	beside.C, beside.CRow = buf[:], k.NR
	beside.Rows, beside.Cols = k.MR, k.NR
	beside.Beta = 0
	k.whole(&beside)
	for r := range t.Rows {
		to := t.C[r*t.CRow:][:t.Cols]
		from := buf[r*k.NR:][:t.Cols]
		if t.Beta == 0 {
			copy(to, from)
			continue
		}
		for c, v := range from {
			to[c] = v + t.Beta*to[c]
		}
	}
}

// race tells the race detector what a kernel touches. Of B it reports K elements only: they suffice
// to catch a panel that is still being packed, and the whole panel would take longer than the
// product.
func (t *Tile) race() {
	if !race.Enabled {
		return
	}
	if t.K > 0 {
		if t.AStep == 1 {
			for r := range t.Rows {
				race.Read(t.A[r*t.ARow:][:t.K])
			}
		}
		race.Read(t.B[:min(t.K, len(t.B))])
	}
	for r := range t.Rows {
		c := t.C[r*t.CRow:][:t.Cols]
		if t.Beta != 0 {
			race.Read(c)
		}
		race.Write(c)
	}
}
