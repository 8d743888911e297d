package opencl

import (
	_ "embed"
	"math"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

//go:embed attention.cl
var attentionSource string

// family holds the programs of the family.
type family struct {
	program *kernelProgram[variant]
	tiles   func(d *opencl.Device, dims attention.AttnDims) tiles
}

// attentionImpls returns the impls of the family.
func attentionImpls() []opregistry.Impl { return newFamily().impls() }

func newFamily() *family {
	return &family{program: newKernelProgram[variant]("attention", withPhilox(attentionSource)), tiles: tilesFor}
}

func (f *family) impls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(attention.FusedAttnFwd, f.forward, Storage),
		openclImpl(attention.FusedAttnBwd, f.backward, Storage),
		openclImpl(attention.CopyToKVCache, copyToKVCache, nil),
	}
}

// variant is a program: the dtype of the operands, the vectors that a head takes, the tiles, and
// whether calls have options.
type variant struct {
	dtype               tensor.DType
	vectorsQK, vectorsV int
	tiles               tiles
	options             bool
}

// tiles are rows by vectors of width columns. A work-item computes that many blocks of rows.
type tiles struct{ width, rows, vectors, blocks int }

// Options returns the macros that attention.cl asks for.
func (v variant) Options() []string {
	list := []string{
		define("T", typeName(v.dtype)), define("VQK", v.vectorsQK), define("VDV", v.vectorsV),
		define("W", v.tiles.width), define("MR", v.tiles.rows), define("NV", v.tiles.vectors), define("BLOCKS", v.tiles.blocks),
	}
	if v.options {
		list = append(list, "-DOPTIONS")
	}
	return list
}

// vectorsOf returns how many vectors n elements take, at least 1.
func (t tiles) vectorsOf(n int) int { return max((n+t.width-1)/t.width, 1) }

// columns returns the columns of a tile.
func (t tiles) columns() int { return t.width * t.vectors }

const (
	// maxDim is the largest head: its sums must stay near the registers.
	maxDim = 256

	// registers is the number of vectors of sums that a work-item keeps on a processor.
	registers = 16

	// rowsOfItem is the number of rows of a work-item on a processor, which hide the cost to start
	// it.
	rowsOfItem = 32
)

// tilesFor chooses the tiles. On a processor a work-item computes several rows in vectors; other
// devices have a work-item for each row.
func tilesFor(d *opencl.Device, dims attention.AttnDims) tiles {
	t := tiles{width: 4, rows: 1, vectors: 2, blocks: 1}
	info := d.Info()
	if info.Kind != "cpu" {
		return t
	}
	switch {
	case info.VectorF32 >= 16:
		t.width = 16
	case info.VectorF32 >= 8:
		t.width = 8
	}
	t.rows = min(max(registers/t.vectorsOf(max(dims.DimQK, dims.DimV)), 1), 8)
	t.blocks = rowsOfItem / t.rows
	return t
}

// call is what forward and backward share.
type call struct {
	*family
	attention.AttnDims
	args    attention.FusedAttnFwdArgs
	device  *opencl.Device
	stream  device.Stream
	variant variant
	batch   int // entries of the tensors: 1 with THD
	scale   float32
	q, k, v heads
	o       heads
	stats   heads
	group   int // work-items of a group
	options options
}

// heads is a [batch, row, head, element] tensor with the distances of its axes.
type heads struct {
	*tensor.Tensor
	batch, row, head int
}

// arguments returns the arguments of the macros IN and HEADS, or OUT and HEADS.
func (h heads) arguments() []opencl.Arg {
	return []opencl.Arg{buf(h.Tensor), intArg(h.batch), intArg(h.row), intArg(h.head)}
}

// headsOf requires a tensor of the call's format whose last axis is dense.
func headsOf(v *operandViews, name string, t *tensor.Tensor, f attention.QKVFormat) heads {
	h := heads{Tensor: t}
	if !v.stored(name, t) {
		return h
	}
	s := t.Strides()
	switch f {
	case attention.BSHD:
		h.batch, h.row, h.head = s[0], s[1], s[2]
	case attention.SBHD:
		h.row, h.batch, h.head = s[0], s[1], s[2]
	default:
		h.row, h.head = s[0], s[1]
	}
	if last := len(s) - 1; s[last] != 1 && t.Shape()[last] > 1 {
		v.decline("strides %v of %s %v, this impl serves heads of dense elements", s, name, t.Shape())
	}
	v.fits(name, t)
	return h
}

// callOf views the operands of a forward call.
func (f *family) callOf(v *operandViews, x *opregistry.Exec, a attention.FusedAttnFwdArgs) call {
	left, right := a.WindowSize.Bounds()
	if max(left, right) > math.MaxInt32 {
		v.decline("window_size (%d, %d), this impl serves sizes below 2³¹", left, right)
	}
	c := call{family: f, AttnDims: a.Dims(), args: a, stream: x.Stream()}
	if max(c.DimQK, c.DimV) > maxDim {
		v.decline("heads of %d and %d elements, this impl serves at most %d", c.DimQK, c.DimV, maxDim)
	}
	c.q, c.k = headsOf(v, "Q", a.Q, a.QKVFormat), headsOf(v, "K", a.K, a.QKVFormat)
	c.v, c.o = headsOf(v, "V", a.V, a.QKVFormat), headsOf(v, "O", a.O, a.QKVFormat)
	c.batch, c.stats = c.Batch, heads{Tensor: a.Stats, batch: c.Heads * c.SeqQ, row: 1, head: c.SeqQ}
	if a.QKVFormat == attention.THD {
		c.batch, c.stats = 1, heads{Tensor: a.Stats, row: c.Heads, head: 1}
	}
	v.vector("stats", a.Stats)
	for _, t := range [...]*tensor.Tensor{a.CuSeqlensQ, a.CuSeqlensKV, a.CuSeqlensQPadded, a.CuSeqlensKVPadded} {
		if t != nil && v.on("cu_seqlens", t) && !t.IsContiguous() {
			v.decline("strides %v of cu_seqlens, this impl serves contiguous elements", t.Strides())
		}
	}
	c.options = optionsOf(v, a)
	if v.Err != nil || v.Device == nil {
		return c
	}
	c.device = v.Device
	t := f.tiles(c.device, c.AttnDims)
	c.variant = variant{dtype: a.Q.DType(), vectorsQK: t.vectorsOf(c.DimQK), vectorsV: t.vectorsOf(c.DimV), tiles: t, options: c.options.flags != 0}
	c.scale = a.AttnScale.Or(float32(1 / math.Sqrt(float64(c.DimQK))))
	c.group = 1
	if c.variant.tiles.rows == 1 {
		c.group = min(64, c.device.Info().MaxWorkGroup)
	}
	return c
}

// forward implements attention.FusedAttnFwd for f32, bf16 and f16.
func (f *family) forward(x *opregistry.Exec, a attention.FusedAttnFwdArgs) error {
	var v operandViews
	c := f.callOf(&v, x, a)
	if v.Err != nil || v.Device == nil {
		return v.Err
	}
	var plan layout
	visible, keys := plan.add(placesOf(c.batch, c.SeqQ)), plan.add(c.panelsOf(c.SeqKV, c.Groups, c.DimQK))
	kept, peaks := plan.add(c.decisions(c.SeqQ, c.wordsKV())), plan.add(c.peaks())
	scratch, err := c.device.Scratch(c.stream, plan.size)
	if err != nil {
		return err
	}
	defer scratch.Release()
	q := queue{call: &c}
	q.bounds(scratch.At(visible), scratch.At(visible), 1)
	q.panels(c.k, buf(scratch.At(keys)), c.SeqKV, c.Groups, c.DimQK)
	q.decide(scratch.At(kept), scratch.At(visible))
	q.rows("forward", c.SeqQ, c.Heads, join(c.q.arguments(), []opencl.Arg{buf(scratch.At(keys))}, c.v.arguments(), c.o.arguments(), c.stats.arguments(),
		[]opencl.Arg{buf(scratch.At(visible))}, c.sizes(c.SeqQ, c.SeqKV), c.optionArgs(scratch.At(kept), c.wordsKV(), false), c.sinkArgs(scratch.At(peaks))))
	q.highest(scratch.At(peaks))
	return q.err
}

// backward implements attention.FusedAttnBwd for what forward serves.
func (f *family) backward(x *opregistry.Exec, a attention.FusedAttnBwdArgs) error {
	var v operandViews
	c := f.callOf(&v, x, a.Fwd())
	dO := headsOf(&v, "dO", a.DO, a.QKVFormat)
	dq, dk, dv := headsOf(&v, "dQ", a.DQ, a.QKVFormat), headsOf(&v, "dK", a.DK, a.QKVFormat), headsOf(&v, "dV", a.DV, a.QKVFormat)
	c.options.gradientsOf(&v, a)
	if v.Err != nil || v.Device == nil {
		return v.Err
	}
	var plan layout
	visible, seen := plan.add(placesOf(c.batch, c.SeqQ)), plan.add(placesOf(c.batch, c.SeqKV))
	keys, values := plan.add(c.panelsOf(c.SeqKV, c.Groups, c.DimQK)), plan.add(c.panelsOf(c.SeqKV, c.Groups, c.DimV))
	queries, grads := plan.add(c.panelsOf(c.SeqQ, c.Heads, c.DimQK)), plan.add(c.panelsOf(c.SeqQ, c.Heads, c.DimV))
	sums, scores := plan.add(c.panelsOf(c.SeqQ, c.Heads, 2)), plan.add(c.scores())
	kept, turned := plan.add(c.decisions(c.SeqQ, c.wordsKV())), plan.add(c.decisions(c.SeqKV, c.wordsQ()))
	scratch, err := c.device.Scratch(c.stream, plan.size)
	if err != nil {
		return err
	}
	defer scratch.Release()
	q := queue{call: &c}
	q.bounds(scratch.At(visible), scratch.At(seen), 2)
	q.panels(c.k, buf(scratch.At(keys)), c.SeqKV, c.Groups, c.DimQK)
	q.panels(c.v, buf(scratch.At(values)), c.SeqKV, c.Groups, c.DimV)
	q.panels(c.q, buf(scratch.At(queries)), c.SeqQ, c.Heads, c.DimQK)
	q.panels(dO, buf(scratch.At(grads)), c.SeqQ, c.Heads, c.DimV)
	q.decide(scratch.At(kept), scratch.At(visible))
	q.turn(scratch.At(kept), scratch.At(turned))
	q.launch("rowsums", c.tilesOf(c.SeqQ)*c.variant.tiles.columns(), usualGroup, c.Heads, c.batch,
		join(c.o.arguments(), dO.arguments(), c.stats.arguments(), []opencl.Arg{buf(scratch.At(sums)), intArg(c.SeqQ), intArg(c.tilesOf(c.SeqQ)), intArg(c.Heads), intArg(c.DimV)}))
	q.rows("queries", c.SeqQ, c.Heads, join(c.q.arguments(), c.k.arguments(), dO.arguments(),
		[]opencl.Arg{buf(scratch.At(keys)), buf(scratch.At(values)), buf(scratch.At(sums))}, dq.arguments(),
		[]opencl.Arg{buf(scratch.At(visible))}, c.sizes(c.SeqQ, c.SeqKV), c.optionArgs(scratch.At(kept), c.wordsKV(), false), c.gradientArgs(scratch.At(scores))))
	q.rows("keys", c.SeqKV, c.Groups, join(c.q.arguments(), c.k.arguments(), c.v.arguments(), dO.arguments(),
		[]opencl.Arg{buf(scratch.At(queries)), buf(scratch.At(grads)), buf(scratch.At(sums))}, dk.arguments(), dv.arguments(),
		[]opencl.Arg{buf(scratch.At(seen))}, c.sizes(c.SeqKV, c.SeqQ), c.optionArgs(scratch.At(turned), c.wordsQ(), true)))
	q.biasGradient(scratch.At(scores), scratch.At(visible))
	q.sinkGradient(scratch.At(sums))
	return q.err
}

// sizes are the arguments of a kernel whose work-items compute rows, from columns.
func (c *call) sizes(rows, columns int) []opencl.Arg {
	return []opencl.Arg{
		intArg(rows), intArg(columns), intArg(c.Heads), intArg(c.Heads / max(c.Groups, 1)), opencl.F32(c.scale), intArg(c.DimQK), intArg(c.DimV),
	}
}

// placesOf returns the size of what kernel bounds says of rows.
func placesOf(batch, rows int) int { return 6 * batch * rows }

// tilesOf returns how many tiles a number of columns takes.
func (c *call) tilesOf(columns int) int {
	return (columns + c.variant.tiles.columns() - 1) / c.variant.tiles.columns()
}

// panelsOf returns the size of the panels of the rows of heads.
func (c *call) panelsOf(rows, heads, dim int) int {
	return c.batch * heads * c.tilesOf(rows) * c.variant.tiles.columns() * dim
}

// layout is a plan of scratch memory.
type layout struct{ size int }

// add returns where n more elements begin.
func (l *layout) add(n int) int {
	const line = 16
	at := l.size
	l.size += (n + line - 1) / line * line
	return at
}

// queue queues kernels until one fails.
type queue struct {
	*call
	err error
}

// launch queues a kernel over items by heads by batches, in groups of items.
func (q *queue) launch(name string, items, group, heads, batch int, args []opencl.Arg) {
	if q.err != nil || items == 0 || heads == 0 || batch == 0 {
		return
	}
	kern, err := q.program.Kernel(q.device, q.variant, name)
	if err == nil {
		err = kern.Launch(q.stream, []int{roundUp(items, group), heads, batch}, []int{group, 1, 1}, args...)
	}
	q.err = err
}

// rows queues a kernel whose work-items compute some rows of a head.
func (q *queue) rows(name string, rows, heads int, args []opencl.Arg) {
	each := q.variant.tiles.rows * q.variant.tiles.blocks
	q.launch(name, (rows+each-1)/each, q.group, heads, q.batch, args)
}

// panels queues the transposition of rows.
func (q *queue) panels(x heads, to opencl.Arg, rows, heads, dim int) {
	tiles := q.tilesOf(rows)
	q.launch("panels", tiles, q.group, heads, q.batch, join(x.arguments(), []opencl.Arg{to, intArg(rows), intArg(tiles), intArg(heads), intArg(dim)}))
}

// bounds queues the search for what each query sees and, with 2 directions, what sees each key.
func (q *queue) bounds(visible, seen *tensor.Tensor, directions int) {
	a, to := &q.args, buf(visible)
	lengthsQ, lengthsKV, startsQ, startsKV := to, to, to, to
	if a.AttnMaskType.Padding() {
		lengthsQ, lengthsKV = buf(a.CuSeqlensQ), buf(a.CuSeqlensKV)
		startsQ, startsKV = lengthsQ, lengthsKV
	}
	if a.CuSeqlensQPadded != nil {
		startsQ, startsKV = buf(a.CuSeqlensQPadded), buf(a.CuSeqlensKVPadded)
	}
	left, right := a.WindowSize.Bounds()
	rows := q.SeqQ
	if directions == 2 {
		rows = max(rows, q.SeqKV)
	}
	q.launch("bounds", rows, usualGroup, q.batch, directions, []opencl.Arg{
		to, buf(seen), lengthsQ, lengthsKV, startsQ, startsKV, intArg(q.Batch), truth(a.AttnMaskType.Padding()), truth(a.QKVFormat == attention.THD),
		intArg(q.SeqQ), intArg(q.SeqKV), truth(a.AttnMaskType.Causal()), truth(a.BottomRight()), intArg(left), intArg(right),
	})
}

func join(lists ...[]opencl.Arg) []opencl.Arg {
	var all []opencl.Arg
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func truth(b bool) opencl.Arg {
	if b {
		return intArg(1)
	}
	return intArg(0)
}
