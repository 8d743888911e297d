package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func gemmImpls() []opregistry.Impl {
	return []opregistry.Impl{impl(ops.GenericGemm, genericGemm)}
}

// gemm is one blocked product c = alpha · left · right + beta · c, as in Goto and
// van de Geijn 2008: right is packed once for all parts, each part packs its rows
// of left, block by block, and runs the micro-kernel over both.
type gemm struct {
	exec        *opregistry.Exec
	kernel      simd.Kernel
	left, right gemmOperand
	c           []float32
	pitch       int // of c
	alpha, beta float32
	gemmPlan

	panels []float32 // the packed columns [col, colEnd) of right
	col    int
	colEnd int
}

var (
	gemmPackKernel = parallel.NewKernel((*gemm).packPart)
	gemmKernel     = parallel.NewKernel((*gemm).part)
)

// genericGemm serves ops.GenericGemm. A and B may have any strides, D and gelu_in
// need dense rows of one pitch, bias must be contiguous. Sums over the inner axis
// are in f32 and run in ascending order, in blocks of at most gemmMaxDepth whose
// sums are added in order: the result is the same bit for bit for any number of
// workers. alpha is applied to each block. beta 0 does not read D. Scratch: a copy
// of op(A), at most gemmMaxPanels floats or 32 columns of it, and a block of
// op(B) a worker; one more D if a product is accumulated behind gelu's derivative.
func genericGemm(e *opregistry.Exec, a ops.GenericGemmArgs) error {
	var v views
	d := v.matrix("D", a.D)
	left, right := v.gemmOperand("B", a.B, a.TransB), v.gemmOperand("A", a.A, a.TransA)
	var bias []float32
	if a.Bias != nil {
		bias = v.vector("bias", a.Bias)
	}
	var geluIn matrix
	if a.Gelu {
		geluIn = v.matrix("gelu_in", a.GeluIn)
	}
	if v.err != nil {
		return v.err
	}
	if a.Grad && a.Bias != nil {
		columnSums(e, v.gemmOperand("B", a.B, false), bias)
	}
	m, n, k := a.Dims()
	if m == 0 || n == 0 {
		return nil
	}
	d.rows, d.cols = m, n
	beta := float32(0)
	if a.Accumulate {
		beta = a.Beta.Or(1)
	}
	g := gemm{exec: e, left: left, right: right, alpha: a.Alpha.Or(1), beta: beta, c: d.data, pitch: d.pitch}
	epilogue := gemmEpilogue{d: d, beta: beta, geluIn: geluIn, grad: a.Grad}
	if !a.Grad {
		epilogue.bias = bias
	}
	switch {
	case a.Gelu && !a.Grad:
		epilogue.product = geluIn
	case a.Gelu && beta != 0:
		epilogue.product = matrix{data: e.Scratch(m * n), rows: m, cols: n, pitch: n}
		defer e.Release(epilogue.product.data)
	default:
		epilogue.product = d
	}
	if a.Gelu {
		g.c, g.pitch, g.beta = epilogue.product.data, epilogue.product.pitch, 0
	}
	g.run(m, n, k)
	if a.Gelu || epilogue.bias != nil {
		epilogue.run(e)
	}
	return nil
}

// run computes the product of m×k and k×n, with m and n at least 1.
func (g gemm) run(m, n, k int) {
	g.kernel = simd.BestKernel()
	g.gemmPlan = planGemm(m, n, k, g.kernel)
	width := min(g.widest, roundUp(n, g.kernel.NR))
	g.panels = g.exec.Scratch(width * k)
	for g.col = 0; g.col < n; g.col = g.colEnd {
		g.colEnd = min(g.col+width, n)
		panels := (g.colEnd - g.col + g.kernel.NR - 1) / g.kernel.NR
		if k > 0 {
			gemmPackKernel.Run(g.exec.Pool(), min(g.packParts, panels), g)
		}
		g.colParts = min(g.colParts, panels)
		gemmKernel.Run(g.exec.Pool(), g.rowParts*g.colParts, g)
	}
	g.exec.Release(g.panels)
}

// part computes a rectangle of c.
func (g *gemm) part(part int) {
	mr, nr := g.kernel.MR, g.kernel.NR
	panels := (g.colEnd - g.col + nr - 1) / nr
	p0, p1 := parallel.Split(panels, g.colParts, part%g.colParts)
	r0, r1 := parallel.Split((g.m+mr-1)/mr, g.rowParts, part/g.colParts)
	r0, r1 = r0*mr, min(r1*mr, g.m)
	room := roundUp(min(r1-r0, g.blockRows), mr)
	packed := g.exec.Scratch(room * (g.depth + leftPad))
	for ; r0 < r1; r0 += g.blockRows {
		rows := min(g.blockRows, r1-r0)
		for k0, first := 0, true; first || k0 < g.k; k0, first = k0+g.depth, false {
			g.block(packed, r0, rows, k0, min(g.depth, g.k-k0), p0, p1)
		}
	}
	g.exec.Release(packed)
}

// block adds the products over k0 ≤ k < k0+depth to some rows of the panels p0 to
// p1 of c.
func (g *gemm) block(packed []float32, r0, rows, k0, depth, p0, p1 int) {
	mr, nr := g.kernel.MR, g.kernel.NR
	panel, rowStep, kStep := g.left.packRows(packed, r0, rows, k0, depth, mr)
	t := simd.Tile{ARow: rowStep, AStep: kStep, CRow: g.pitch, K: depth, Alpha: g.alpha, Beta: 1}
	if k0 == 0 {
		t.Beta = g.beta
	}
	for p := p0; p < p1; p++ {
		col := g.col + p*nr
		t.Cols = min(nr, g.colEnd-col)
		t.B = g.panels[(p*g.k+k0)*nr:]
		for r := 0; r < rows; r += mr {
			t.Rows = min(mr, rows-r)
			t.A = packed[r/mr*panel:]
			t.C = g.c[(r0+r)*g.pitch+col:]
			g.kernel.Run(&t)
		}
	}
}

// packPart packs some panels of right.
func (g *gemm) packPart(part int) {
	nr := g.kernel.NR
	panels := (g.colEnd - g.col + nr - 1) / nr
	p0, p1 := parallel.Split(panels, min(g.packParts, panels), part)
	g.right.packColumns(g.panels[p0*g.k*nr:p1*g.k*nr], g.col+p0*nr, min(g.col+p1*nr, g.colEnd), nr)
}

// gemmOperand requires an operand of a product and returns op(X) of it.
func (v *views) gemmOperand(name string, t *tensor.Tensor, transposed bool) gemmOperand {
	if !v.host(name, t, tensor.F32) {
		return gemmOperand{}
	}
	x, ok := gemmOperandOf(t)
	if !ok {
		v.decline("strides %v of %s %v, this impl serves rows of one pitch", t.Strides(), name, t.Shape())
	}
	if transposed {
		x.rows, x.cols, x.rowStep, x.colStep = x.cols, x.rows, x.colStep, x.rowStep
	}
	return x
}
