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
// van de Geijn 2008: right is packed once for all parts, and each part runs the
// micro-kernel over its rows of left, block by block. A left without dense rows is
// packed as a whole, too, because short pieces of many rows are slow to gather;
// dense rows are read where they are, but for those of a tile that is not whole.
type gemm struct {
	exec        *opregistry.Exec
	kernel      simd.Kernel
	left, right gemmOperand
	alpha, beta float32
	epilogue    gemmEpilogue
	direct      bool // c is the memory of D
	gemmPlan

	// The columns of right that are packed at a time.
	panels      []float32
	col, colEnd int
	colPanels   int
	rightParts  int
	rightSteps  bool // packed step by step, not column by column

	// Left, packed as a whole when its rows are not dense; it is transposed then.
	leftRows   bool
	leftPanels []float32
	rowPanels  int
	leftParts  int
}

var (
	gemmPackKernel = parallel.NewKernel((*gemm).packPart)
	gemmKernel     = parallel.NewKernel((*gemm).part)
)

// genericGemm serves ops.GenericGemm. A and B may have any strides, D and gelu_in
// need dense rows of one pitch, bias must be contiguous. Sums over the inner axis
// are in f32 and run in ascending order, in blocks of at most gemmMaxDepth whose
// sums are added in order, or as simd.Dot has it where B has few rows: the result
// is the same bit for bit for any number of workers. alpha is applied to each block.
// beta 0 does not read D. bf16 and f16 are widened while they are packed; a D of
// theirs is rounded once, from sums in f32. Scratch, in f32: a copy of op(A), at most
// gemmMaxPanels floats or one panel of it; all of op(B) where its inner axis is not
// dense, else a block of it a worker unless B is f32, a tile then; a block of D a
// worker unless D is f32 and there is no gelu.
func genericGemm(e *opregistry.Exec, a ops.GenericGemmArgs) error {
	var v views
	p := v.product(a, v.matrix("D", a.D))
	if v.err != nil {
		return v.err
	}
	p.run(e)
	return nil
}

// product is a call of genericGemm.
type product struct {
	ops.GenericGemmArgs
	left, right gemmOperand
	d, geluIn   matrix
	bias        matrix // without columns when there is none
}

// product requires the operands of a call but D, for which d stands.
func (v *views) product(a ops.GenericGemmArgs, d matrix) product {
	p := product{GenericGemmArgs: a, left: v.gemmOperand("B", a.B, a.TransB), right: v.gemmOperand("A", a.A, a.TransA), d: d}
	if a.Bias != nil {
		p.bias = v.line("bias", a.Bias)
	}
	if a.Gelu {
		p.geluIn = v.matrix("gelu_in", a.GeluIn)
	}
	return p
}

func (p *product) run(e *opregistry.Exec) {
	if p.Grad && p.Bias != nil {
		rows := p.left
		if p.TransB {
			rows = rows.transposed()
		}
		columnSums(e, rows, p.bias)
	}
	m, n, k := p.Dims()
	if m == 0 || n == 0 {
		return
	}
	beta := float32(0)
	if p.Accumulate {
		beta = p.Beta.Or(1)
	}
	g := gemm{exec: e, left: p.left, right: p.right, alpha: p.Alpha.Or(1), direct: !p.d.narrow() && !p.Gelu}
	g.epilogue = gemmEpilogue{d: p.d, geluIn: p.geluIn, gelu: p.Gelu, grad: p.Grad, stored: g.direct}
	g.epilogue.d.rows, g.epilogue.d.cols = m, n
	if g.direct {
		g.beta = beta
	} else {
		g.epilogue.beta = beta
	}
	if p.Bias != nil && !p.Grad {
		room := e.Scratch(n)
		defer e.Release(room)
		g.epilogue.bias = p.bias.piece(0, 0, n, room)
	}
	g.run(m, n, k)
}

// run computes the product of m×k and k×n, with m and n at least 1.
func (g gemm) run(m, n, k int) {
	g.kernel = simd.BestKernel(0)
	g.gemmPlan = planGemm(m, n, k, g.kernel)
	if g.few() {
		g.runFew()
		return
	}
	mr, nr := g.kernel.MR, g.kernel.NR
	width := min(g.widest, roundUp(n, nr))
	g.panels = g.exec.Scratch(width * k)
	if g.leftRows = g.left.colStep == 1; !g.leftRows {
		g.left = g.left.transposed()
		g.rowPanels = (m + mr - 1) / mr
		g.leftPanels = g.exec.Scratch(g.rowPanels * (mr*k + g.depths*leftPad))
		g.leftParts = max(min(k*m/grain, maxParts, k), 1)
	}
	for g.col = 0; g.col < n; g.col = g.colEnd {
		g.colEnd = min(g.col+width, n)
		g.colPanels = (g.colEnd - g.col + nr - 1) / nr
		g.rightParts = min(g.packParts, g.colPanels)
		if g.rightSteps = g.right.rowStep != 1 || g.right.colStep == 1; g.rightSteps {
			g.rightParts = min(g.packParts, k)
		}
		if k > 0 {
			gemmPackKernel.Run(g.exec.Pool(), g.rightParts+g.leftParts, g)
		}
		g.leftParts = 0
		g.colParts = min(g.colParts, g.colPanels)
		gemmKernel.Run(g.exec.Pool(), g.rowParts*g.colParts, g)
	}
	g.exec.Release(g.panels)
	if !g.leftRows {
		g.exec.Release(g.leftPanels)
	}
}

// packPart packs some steps or some panels of right, then of left.
func (g *gemm) packPart(part int) {
	mr, nr := g.kernel.MR, g.kernel.NR
	switch {
	case part >= g.rightParts:
		k0, k1 := parallel.Split(g.k, g.leftParts, part-g.rightParts)
		for k, end := k0, k0; k < k1; k = end {
			b := g.depthBlock(k / g.depth)
			end = min(b.k0+b.depth, k1)
			at, panel := g.leftAt(b)
			g.left.packSteps(g.leftPanels[at+(k-b.k0)*mr:], panel, k, end-k, 0, g.m, mr)
		}
	case g.rightSteps:
		k0, k1 := parallel.Split(g.k, g.rightParts, part)
		for k, end := k0, k0; k < k1; k = end {
			b := g.depthBlock(k / g.depth)
			end = min(b.k0+b.depth, k1)
			at, panel := g.rightAt(b)
			g.right.packSteps(g.panels[at+(k-b.k0)*nr:], panel, k, end-k, g.col, g.colEnd, nr)
		}
	default:
		p0, p1 := parallel.Split(g.colPanels, g.rightParts, part)
		for i := range g.depths {
			b := g.depthBlock(i)
			at, panel := g.rightAt(b)
			g.right.packColumns(g.panels[at+p0*panel:], panel, b.k0, b.depth, g.col+p0*nr, min(g.col+p1*nr, g.colEnd), nr)
		}
	}
}

// depthBlock is a block of the inner axis.
type depthBlock struct{ index, k0, depth int }

func (g *gemm) depthBlock(i int) depthBlock {
	return depthBlock{i, i * g.depth, min(g.depth, g.k-i*g.depth)}
}

// rightAt returns where a block of the packed right begins and how far its panels
// lie apart. The panels of a block lie side by side, so that they do not compete
// for sets of a cache.
func (g *gemm) rightAt(b depthBlock) (at, panel int) {
	return b.k0 * g.colPanels * g.kernel.NR, b.depth * g.kernel.NR
}

// leftAt does so for left when it is packed as a whole. A cache line between the
// panels keeps the lines apart that are being filled at the same time.
func (g *gemm) leftAt(b depthBlock) (at, panel int) {
	return (b.k0*g.kernel.MR + b.index*leftPad) * g.rowPanels, b.depth*g.kernel.MR + leftPad
}

// part computes a rectangle of c.
func (g *gemm) part(part int) {
	mr := g.kernel.MR
	p0, p1 := parallel.Split(g.colPanels, g.colParts, part%g.colParts)
	r0, r1 := parallel.Split((g.m+mr-1)/mr, g.rowParts, part/g.colParts)
	r0, r1 = r0*mr, min(r1*mr, g.m)
	most := min(r1-r0, g.blockRows)
	var packed []float32
	if g.leftRows {
		rows := max(most-g.asIs(most), (r1-r0)%mr)
		packed = g.exec.Scratch(roundUp(rows, mr) * (g.depth + leftPad))
		defer g.exec.Release(packed)
	}
	t := g.target(most, g.col+p0*g.kernel.NR, min(g.col+p1*g.kernel.NR, g.colEnd))
	for ; r0 < r1; r0 += g.blockRows {
		rows := min(g.blockRows, r1-r0)
		t.move(r0)
		for i := range g.depths {
			g.block(packed, t, r0, rows, g.depthBlock(i), p0, p1)
		}
		g.epilogue.finish(t, r0, rows)
	}
	t.release()
}

// asIs returns how many of some rows of left, when they are dense, the kernel reads
// where they are: those of whole tiles of f32. The others are packed.
func (g *gemm) asIs(rows int) int {
	if g.left.narrow() || g.k == 0 {
		return 0
	}
	return rows / g.kernel.MR * g.kernel.MR
}

// block adds the products of a block of the inner axis to some rows of the panels
// p0 to p1 of c. packed has room for the rows of left that are.
func (g *gemm) block(packed []float32, c gemmTarget, r0, rows int, b depthBlock, p0, p1 int) {
	mr, nr := g.kernel.MR, g.kernel.NR
	t := simd.Tile{CRow: c.pitch, K: b.depth, Alpha: g.alpha, Beta: 1}
	if b.index == 0 {
		t.Beta = g.beta
	}
	var left []float32
	row, step, leftPanel := 1, mr, 0
	asIs, pitch := rows, b.depth+leftPad
	if g.leftRows {
		if asIs = g.asIs(rows); asIs > 0 {
			row, step = g.left.rowStep, 1
			left, leftPanel = g.left.data[r0*row+b.k0:], mr*row
		}
		g.left.packRows(packed, pitch, r0+asIs, rows-asIs, b.k0, b.depth, mr)
	} else {
		at, panel := g.leftAt(b)
		left, leftPanel = g.leftPanels[at+r0/mr*panel:], panel
	}
	rightAt, rightPanel := g.rightAt(b)
	for p := p0; p < p1; p++ {
		col := g.col + p*nr
		t.Cols = min(nr, g.colEnd-col)
		t.B = g.panels[rightAt+p*rightPanel:]
		for r := 0; r < rows; r += mr {
			t.Rows = min(mr, rows-r)
			t.C = c.at(r0+r, col)
			if r < asIs {
				t.A, t.ARow, t.AStep = left[r/mr*leftPanel:], row, step
			} else {
				t.A, t.ARow, t.AStep = packed[(r-asIs)*pitch:], pitch, 1
			}
			g.kernel.Run(&t)
		}
	}
}

// gemmOperand requires an operand of a product and returns op(X) of it.
func (v *views) gemmOperand(name string, t *tensor.Tensor, transposed bool) gemmOperand {
	if !v.stored(name, t) {
		return gemmOperand{}
	}
	x, ok := gemmOperandOf(t)
	if !ok {
		v.decline("strides %v of %s %v, this impl serves rows of one pitch", t.Strides(), name, t.Shape())
	}
	if transposed {
		x = x.transposed()
	}
	return x
}
