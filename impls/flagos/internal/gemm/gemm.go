package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// Impls returns the impls of the family. Where kernel.PairKernel computes products of bf16, these
// count subnormal numbers as 0.
func Impls() []opregistry.Impl {
	impls := []opregistry.Impl{
		host.Impl(gemm.GenericGemm, genericGemm),
		host.Impl(gemm.TEGeneralGroupedGemm, groupedGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForGroupedTensor, groupedTensorGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForDiscreteIn, groupedTensorGemm),
		host.Impl(gemm.TEGeneralGroupedGemmForDiscreteOut, groupedTensorGemm),
	}
	for i := range impls {
		impls[i] = FlushingPairs(impls[i])
	}
	return impls
}

// FlushingPairs declares that an impl whose products are those of this package counts subnormal
// numbers of bf16 as 0 where kernel.PairKernel computes them.
func FlushingPairs(i opregistry.Impl) opregistry.Impl {
	if _, ok := kernel.PairKernel(); ok {
		i.FlushesSubnormals = []tensor.DType{tensor.BF16}
	}
	return i
}

// blocked is one blocked product c = alpha · left · right + beta · c, as in Goto and van de Geijn
// 2008. It is computed in passes, each over some blocks of the inner axis and some columns. The
// part of right that a pass needs is packed once for all parts, by the parts that finish the
// previous pass. Each part runs the micro-kernel over its rows of left, block by block. Operands
// with dense rows or columns are read in place where that is faster; the part packs other rows of
// left.
type blocked struct {
	exec        *opregistry.Exec
	kernel      kernel.Kernel
	left, right panel.Operand
	alpha, beta float32
	epilogue    gemmEpilogue
	direct      bool // c is the memory of D
	gemmPlan

	leftRows   bool // left has dense rows, else its columns are dense
	rightSteps bool // right is packed step by step, not column by column
	unpacked   bool // right is read in place, in one pass
	own        bool // each part packs the panels of right that it needs, in one pass
	now, next  pass
}

// pass is the part of the product over the blocks of the inner axis from first to last for the
// columns from col to colEnd; panels hold what it needs of right.
type pass struct {
	panels      []float32
	col, colEnd int
	colPanels   int
	first, last int
}

var (
	gemmPackKernel = parallel.NewKernel((*blocked).packPart)
	gemmKernel     = parallel.NewKernel((*blocked).part)
)

// genericGemm implements gemm.GenericGemm. A and B may have any strides, D and gelu_in need dense
// rows of one pitch, bias must be contiguous. Sums over the inner axis are in f32 and run in
// ascending order, in blocks of at most gemmMaxDepth whose sums are added in order; where B has
// few rows, they run in the order of vector.Dot, or in ascending order if A is not transposed. The
// result has the same bits for any number of workers. alpha is applied to each block. With a beta
// of 0, D is not read. bf16 and f16 are widened while they are packed; a narrow D is rounded once,
// from sums in f32. On CPUs with instructions for bf16, products of bf16 are those of
// kernel.PairKernel where Pairs can be made of the operands: their sums run over pairs, and
// numbers below 2⁻¹²⁶ count as 0. Scratch, in f32: the packed op(A) of two passes, each at most
// gemmMaxPanels floats or one panel, unless A is read in place; for each worker a block of op(B),
// or a tile where B is read in place, and a block of D unless D is f32 and there is no gelu.
func genericGemm(e *opregistry.Exec, a gemm.GenericGemmArgs) error {
	var v host.Views
	p := productOf(&v, a, v.Matrix("D", a.D))
	if v.Err != nil {
		return v.Err
	}
	p.run(e, nil)
	return nil
}

// Multiply stores left·right in d, or adds it to d, as genericGemm does.
func Multiply(e *opregistry.Exec, left, right panel.Operand, d host.Matrix, add bool) {
	p := product{GenericGemmArgs: gemm.GenericGemmArgs{Accumulate: add}, left: left, right: right, d: d}
	p.run(e, nil)
}

// product is a call of genericGemm.
type product struct {
	gemm.GenericGemmArgs
	left, right panel.Operand
	d, geluIn   host.Matrix
	bias        host.Matrix // without columns when there is no bias
}

// productOf converts the operands of a call, with d in place of a.D.
func productOf(v *host.Views, a gemm.GenericGemmArgs, d host.Matrix) product {
	p := product{GenericGemmArgs: a, left: gemmOperand(v, "B", a.B, a.TransB), right: gemmOperand(v, "A", a.A, a.TransA), d: d}
	if a.Bias != nil {
		p.bias = v.Flat("bias", a.Bias)
	}
	if a.Gelu {
		p.geluIn = v.Matrix("gelu_in", a.GeluIn)
	}
	return p
}

// run computes the product, or leaves one of f32 to all, which may be nil.
func (p *product) run(e *opregistry.Exec, all *groups) {
	if p.Grad && p.Bias != nil {
		rows := p.left
		if p.TransB {
			rows = rows.Transposed()
		}
		columnSums(e, rows, p.bias)
	}
	m, n, k := p.left.Rows, p.right.Cols, p.left.Cols
	if m == 0 || n == 0 {
		return
	}
	beta := float32(0)
	if p.Accumulate {
		beta = p.Beta.Or(1)
	}
	g := blocked{exec: e, left: p.left, right: p.right, alpha: p.Alpha.Or(1), direct: !p.d.Narrow() && !p.Gelu}
	g.epilogue = gemmEpilogue{d: p.d, geluIn: p.geluIn, gelu: p.Gelu, grad: p.Grad, stored: g.direct}
	g.epilogue.d.Rows, g.epilogue.d.Cols = m, n
	if g.direct {
		g.beta = beta
	} else {
		g.epilogue.beta = beta
	}
	if p.Bias != nil && !p.Grad {
		buf := e.Scratch(n)
		defer e.Release(buf)
		g.epilogue.bias = p.bias.Piece(0, 0, n, buf)
	}
	g.kernel = kernel.BestKernel(0)
	g.gemmPlan = planGemm(m, n, k, g.kernel, e.Pool().Workers(), g.direct)
	if g.few() {
		g.runFew()
		return
	}
	g.prepare()
	if all == nil || p.right.Narrow() || !all.add(&g) {
		g.run()
	}
}

// prepare chooses how a product that is not one of few rows reads its operands.
func (g *blocked) prepare() {
	if pairs, ok := kernel.PairKernel(); ok && g.pair() {
		g.kernel = pairs
		g.gemmPlan = planGemm(g.m, g.n, g.k/2, g.kernel, g.exec.Pool().Workers(), g.direct)
	}
	g.rightSteps = g.right.RowStep != 1 || g.right.ColStep == 1
	if g.leftRows = g.left.ColStep == 1; !g.leftRows {
		g.left = g.left.Transposed()
	}
	g.unpacked = g.rightInPlace()
}

// onePass makes one pass of the product.
func (g *blocked) onePass() {
	g.passDepths, g.widest = g.depths, g.n
	g.now = g.pass(0, 0)
}

// run computes a product that is prepared.
func (g blocked) run() {
	if g.unpacked {
		g.onePass()
		gemmKernel.Run(g.exec.Pool(), g.rowParts*g.colParts, g)
		return
	}
	g.next = g.pass(0, 0)
	size := g.next.colPanels * g.kernel.NR * min(g.passDepths*g.depth, g.k)
	passes := 1
	if g.next.last < g.depths || g.next.colEnd < g.n {
		passes = 2
	}
	buf := g.exec.Scratch(passes * size)
	defer g.exec.Release(buf)
	g.next.panels = buf[:size]
	gemmPackKernel.Run(g.exec.Pool(), g.packParts, g)
	for g.next.colPanels > 0 {
		free := g.now.panels
		if free == nil {
			free = buf[size:]
		}
		g.now, g.next = g.next, g.after(g.next)
		g.next.panels = free
		parts := g.rowParts * g.colParts
		if g.next.colPanels > 0 {
			parts += g.packParts
		}
		gemmKernel.Run(g.exec.Pool(), parts, g)
	}
}

// pair makes both operands pairs along the inner axis, if they can be.
func (g *blocked) pair() bool {
	left, ok := g.left.Transposed().Pairs()
	if !ok {
		return false
	}
	right, ok := g.right.Pairs()
	if ok {
		g.left, g.right = left.Transposed(), right
	}
	return ok
}

// pass returns the pass that begins at a column and a block of the inner axis.
func (g *blocked) pass(col, first int) pass {
	p := pass{col: col, colEnd: min(col+g.widest, g.n), first: first, last: min(first+g.passDepths, g.depths)}
	p.colPanels = (p.colEnd - col + g.kernel.NR - 1) / g.kernel.NR
	return p
}

// after returns the pass after p; after the last one it returns a pass without panels.
func (g *blocked) after(p pass) pass {
	switch {
	case p.last < g.depths:
		return g.pass(p.col, p.last)
	case p.colEnd < g.n:
		return g.pass(p.colEnd, 0)
	}
	return pass{}
}

// packPart packs some steps or some panels of right for the next pass.
func (g *blocked) packPart(part int) {
	nr, to := g.kernel.NR, &g.next
	p0, p1 := parallel.Split(to.colPanels, g.packParts, part)
	for i := to.first; i < to.last; i++ {
		b := g.depthBlock(i)
		at, panel := g.rightAt(to, b)
		if g.rightSteps {
			k0, k1 := parallel.Split(b.depth, g.packParts, part)
			g.packRight(to.panels[at+k0*nr:], panel, b.k0+k0, k1-k0, to.col, to.colEnd)
		} else {
			g.packRight(to.panels[at+p0*panel:], panel, b.k0, b.depth, to.col+p0*nr, min(to.col+p1*nr, to.colEnd))
		}
	}
}

// packRight packs steps from k0 on of the columns from col to colEnd as panels.
func (g *blocked) packRight(dst []float32, panel, k0, depth, col, colEnd int) {
	if g.rightSteps {
		g.right.PackSteps(dst, panel, k0, depth, col, colEnd, g.kernel.NR)
	} else {
		g.right.PackColumns(dst, panel, k0, depth, col, colEnd, g.kernel.NR)
	}
}

// depthBlock is a block of the inner axis.
type depthBlock struct{ index, k0, depth int }

func (g *blocked) depthBlock(i int) depthBlock {
	return depthBlock{i, i * g.depth, min(g.depth, g.k-i*g.depth)}
}

// rightAt returns where a block of the packed right begins and the distance between its panels. The
// panels of a block lie next to each other, so that they do not compete for the same sets of a
// cache.
func (g *blocked) rightAt(p *pass, b depthBlock) (at, panel int) {
	return (b.k0 - p.first*g.depth) * p.colPanels * g.kernel.NR, b.depth * g.kernel.NR
}

// part adds the contribution of a pass to a rectangle of c, or packs for the next pass.
func (g *blocked) part(part int) {
	if part >= g.rowParts*g.colParts {
		g.packPart(part - g.rowParts*g.colParts)
		return
	}
	mr := g.kernel.MR
	p0, p1 := parallel.Split(g.now.colPanels, g.colParts, part%g.colParts)
	r0, r1 := parallel.Split((g.m+mr-1)/mr, g.rowParts, part/g.colParts)
	r0, r1 = r0*mr, min(r1*mr, g.m)
	most := min(r1-r0, g.blockRows)
	rows := max(most-g.inPlace(most), (r1-r0)%mr)
	packed := g.exec.Scratch(host.RoundUp(rows, mr) * (g.depth + panel.LeftPad))
	defer g.exec.Release(packed)
	var own []float32
	if g.own {
		own = g.exec.Scratch(g.depth * g.kernel.NR)
		defer g.exec.Release(own)
	}
	t := g.target(most, g.now.col+p0*g.kernel.NR, min(g.now.col+p1*g.kernel.NR, g.now.colEnd))
	for ; r0 < r1; r0 += g.blockRows {
		rows := min(g.blockRows, r1-r0)
		t.move(r0)
		for i := g.now.first; i < g.now.last; i++ {
			g.block(packed, own, t, r0, rows, g.depthBlock(i), p0, p1)
		}
		if g.now.last == g.depths {
			g.epilogue.finish(t, r0, rows)
		}
	}
	t.release()
}

// inPlace returns how many of the rows of left the kernel reads in place: those of whole tiles when
// rows or columns are dense and f32. The other rows are packed.
func (g *blocked) inPlace(rows int) int {
	if g.left.Narrow() || g.k == 0 || !g.leftRows && (g.left.ColStep != 1 || conflicting(g.left.RowStep)) {
		return 0
	}
	return rows / g.kernel.MR * g.kernel.MR
}

// rightInPlace reports whether right is read in place: few rows of left share a panel, and the
// kernel does not read beyond the last column.
func (g *blocked) rightInPlace() bool {
	return g.m <= unpackedRows && g.right.ColStep == 1 && g.n%kernel.ReadCols == 0 && g.k > 0 &&
		!g.right.Narrow() && !conflicting(g.right.RowStep)
}

// block adds the products of a block of the inner axis to rows of the panels p0 to p1 of c. packed
// must be large enough for the rows of left that are packed, and own for a panel if g.own is set.
func (g *blocked) block(packed, own []float32, c gemmTarget, r0, rows int, b depthBlock, p0, p1 int) {
	mr, nr := g.kernel.MR, g.kernel.NR
	t := kernel.Tile{BStep: nr, CRow: c.pitch, K: b.depth, Alpha: g.alpha, Beta: 1}
	if b.index == 0 {
		t.Beta = g.beta
	}
	inPlace := g.inPlace(rows)
	left := g.packLeft(packed, r0+inPlace, rows-inPlace, b)
	rightAt, rightPanel := g.rightAt(&g.now, b)
	for p := p0; p < p1; p++ {
		col := g.now.col + p*nr
		t.Cols = min(nr, g.now.colEnd-col)
		var next []float32
		switch {
		case g.unpacked:
			t.B, t.BStep = g.right.Data[b.k0*g.right.RowStep+col:], g.right.RowStep
		case g.own:
			g.packRight(own, rightPanel, b.k0, b.depth, col, col+t.Cols)
			t.B = own
		default:
			t.B = g.now.panels[rightAt+p*rightPanel:]
			next = t.B[min(rightPanel, len(t.B)):]
		}
		for r := 0; r < rows; r += mr {
			t.Rows = min(mr, rows-r)
			t.C = c.at(r0+r, col)
			switch {
			case r >= inPlace:
				t.A, t.ARow, t.AStep = left.data[(r-inPlace)/mr*left.panel:], left.row, left.step
			case g.leftRows:
				t.A, t.ARow, t.AStep = g.left.Data[(r0+r)*g.left.RowStep+b.k0:], g.left.RowStep, 1
			default:
				t.A, t.ARow, t.AStep = g.left.Data[b.k0*g.left.RowStep+r0+r:], 1, g.left.RowStep
			}
			t.Ahead = nil
			if next != nil && r/mr*kernel.AheadStep < nr && p+1 < p1 {
				t.Ahead = next[r/mr*kernel.AheadStep*b.depth:]
			}
			g.kernel.Run(&t)
		}
	}
}

// packedLeft describes the packed rows of left: tiles panel elements apart, with the distances of
// Tile.
type packedLeft struct {
	data             []float32
	panel, row, step int
}

// packLeft packs some rows of left from r0 on.
func (g *blocked) packLeft(packed []float32, r0, rows int, b depthBlock) packedLeft {
	mr := g.kernel.MR
	if g.leftRows {
		pitch := b.depth + panel.LeftPad
		g.left.PackRows(packed, pitch, r0, rows, b.k0, b.depth, mr)
		return packedLeft{data: packed, panel: mr * pitch, row: pitch, step: 1}
	}
	// A cache line between the tiles keeps the lines that are filled together in different sets.
	panel := b.depth*mr + panel.LeftPad
	g.left.PackSteps(packed, panel, b.k0, b.depth, r0, r0+rows, mr)
	return packedLeft{data: packed, panel: panel, row: 1, step: mr}
}

// Operand requires an operand of a product.
func Operand(v *host.Views, name string, t *tensor.Tensor) panel.Operand {
	return gemmOperand(v, name, t, false)
}

// gemmOperand requires an operand of a product and returns op(X).
func gemmOperand(v *host.Views, name string, t *tensor.Tensor, transposed bool) panel.Operand {
	if !v.Stored(name, t) {
		return panel.Operand{}
	}
	x, ok := panel.Of(t)
	if !ok {
		v.Decline("strides %v of %s %v, this impl serves rows of one pitch", t.Strides(), name, t.Shape())
	}
	if transposed {
		x = x.Transposed()
	}
	return x
}
