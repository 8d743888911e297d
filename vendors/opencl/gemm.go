package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

//go:embed gemm.cl
var gemmSource string

// gemmFamily holds the programs of the family.
type gemmFamily struct {
	program *kernelProgram[gemmVariant]
	shapes  *chooser
}

// gemmImpls returns the impls of the family.
func gemmImpls() []opregistry.Impl { return newGemmFamily().impls() }

// measured is the geometric mean over the products of docs/reference/performance.md.
var measured = opregistry.Measurement{Rate: 0.97, By: "make bench-opencl"}

func newGemmFamily() *gemmFamily {
	return &gemmFamily{program: newKernelProgram[gemmVariant]("gemm", gemmSource), shapes: newChooser()}
}

func (f *gemmFamily) impls() []opregistry.Impl {
	impls := []opregistry.Impl{
		openclImpl(gemm.GenericGemm, f.genericGemm, Storage),
		openclImpl(gemm.TEGeneralGroupedGemm, f.groupedGemm, Storage),
	}
	impls[0].Measured = measured
	return impls
}

// gemmVariant is a program: the dtypes of the operands and the shape of the tiles.
type gemmVariant struct {
	a, b, d, bias tensor.DType
	shape         shape
}

// Options returns the macros that gemm.cl asks for.
func (v gemmVariant) Options() []string {
	return append(v.shape.options(),
		define("A", typeName(v.a)), define("B", typeName(v.b)),
		define("D", typeName(v.d)), define("BIAS", typeName(v.bias)),
		define("SUM_ROWS", sumRows), define("PACK_DEPTH", packDepth), define("WIDEN_LINES", widenLines))
}

const (
	// sumRows is the number of rows that are added up before their sum is added to a total.
	sumRows = 64

	// packDepth is the number of steps of the inner axis that one work-item packs.
	packDepth = 64

	// widenLines is the number of rows or columns that one work-item converts.
	widenLines = 8
)

// genericGemm implements gemm.GenericGemm without GELU for f32, bf16 and f16. A and B may have any
// distances between rows and between columns, rows of D are dense, bias is contiguous.
func (f *gemmFamily) genericGemm(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
	p, err := f.view(x, a)
	if err != nil || p.device == nil {
		return err
	}
	return p.queue()
}

// view returns the call of genericGemm or why it is declined. The device is nil if no operand has
// elements.
func (f *gemmFamily) view(x *opregistry.Exec, a gemm.GenericGemmArgs) (product, error) {
	var v operandViews
	p := product{gemmFamily: f, stream: x.Stream(), args: a}
	p.left, p.right, p.d = v.matrix("B", a.B), v.matrix("A", a.A), v.matrix("D", a.D)
	p.bias = a.Bias
	if a.Bias != nil {
		v.vector("bias", a.Bias)
	}
	if a.Gelu {
		v.decline("gelu, this impl has no GELU epilogue")
	}
	if v.Err == nil && p.d.Col != 1 {
		v.decline("strides %v of D, this impl serves dense rows", a.D.Strides())
	}
	p.device = v.Device
	return p, v.Err
}

// product is a call of genericGemm.
type product struct {
	*gemmFamily
	device         *opencl.Device
	stream         device.Stream
	args           gemm.GenericGemmArgs
	left, right, d matrix
	bias           *tensor.Tensor
	variant        gemmVariant
}

// queue queues the kernels of the call.
func (p *product) queue() error {
	m, n, k := p.args.Dims()
	input := p.left
	if p.args.TransB {
		p.left = p.left.transposed()
	}
	if p.args.TransA {
		p.right = p.right.transposed()
	}
	p.variant = gemmVariant{a: p.args.A.DType(), b: p.args.B.DType(), d: p.args.D.DType(), bias: tensor.F32}
	if p.bias != nil {
		p.variant.bias = p.bias.DType()
	}
	var err error
	if p.variant.shape, err = p.shapes.shape(p, m, n, k); err != nil {
		return err
	}
	if p.args.Grad && p.bias != nil {
		if err := p.columnSums(input); err != nil {
			return err
		}
	}
	return p.multiply(m, n, k)
}

// multiply queues the product.
func (p *product) multiply(m, n, k int) error {
	switch {
	case m == 0 || n == 0:
		return nil
	case p.variant.shape.panels():
		return p.panels(m, n, k)
	default:
		return p.tiles(m, n, k)
	}
}

// columnSums queues the sum over the rows of B, which is x.
func (p *product) columnSums(x matrix) error {
	kern, err := p.program.Kernel(p.device, p.variant, "column_sums")
	if err != nil || x.Cols == 0 {
		return err
	}
	return kern.Launch(p.stream, []int{roundUp(x.Cols, usualGroup)}, []int{usualGroup}, buf(x.Tensor), intArg(x.Row), intArg(x.Col), buf(p.bias), intArg(x.Rows), intArg(x.Cols))
}

// panels packs right and queues the product with the packed panels.
func (p *product) panels(m, n, k int) error {
	s := p.variant.shape
	pack, err := p.program.Kernel(p.device, p.variant, "pack")
	if err != nil {
		return err
	}
	kern, err := p.program.Kernel(p.device, p.variant, "panels")
	if err != nil {
		return err
	}
	panels := (n + s.columns() - 1) / s.columns()
	packed, copied := panels*s.columns()*max(k, 1), 0
	if p.variant.b != tensor.F32 {
		copied = m * k
	}
	scratch, err := p.device.Scratch(p.stream, packed+copied)
	if err != nil {
		return err
	}
	defer scratch.Release()
	left := p.left
	if copied > 0 {
		if left, err = p.widen(scratch.At(packed), m, k); err != nil {
			return err
		}
	}
	if k > 0 {
		r := p.right
		err := pack.Launch(p.stream, []int{panels, (k + packDepth - 1) / packDepth}, []int{1, 1},
			buf(r.Tensor), intArg(r.Row), intArg(r.Col), buf(scratch.At(0)), intArg(n), intArg(k))
		if err != nil {
			return err
		}
	}
	blocks := roundUp((m+s.rows-1)/s.rows, s.group)
	bias, has := p.addend()
	return kern.Launch(p.stream, []int{blocks, panels}, []int{s.group, 1},
		buf(left.Tensor), intArg(left.Row), intArg(left.Col), buf(scratch.At(0)), buf(p.d.Tensor), intArg(p.d.Row),
		bias, has, intArg(m), intArg(n), intArg(k), opencl.F32(p.args.Alpha.Or(1)), opencl.F32(p.beta()))
}

// widen queues a copy of left in f32 and returns it. Kernel panels reads each element of left once
// for each panel, and to convert it every time takes longer than to multiply.
func (p *product) widen(to *tensor.Tensor, m, k int) (matrix, error) {
	x := p.left
	lines, length := m, k
	out := matrix{Tensor: to, Rows: m, Cols: k, Row: k, Col: 1}
	if x.Col != 1 && x.Row == 1 {
		x, out.Row, out.Col = x.transposed(), 1, m
		lines, length = k, m
	}
	kern, err := p.program.Kernel(p.device, p.variant, "widen")
	if err != nil {
		return out, err
	}
	return out, kern.Launch(p.stream, []int{(lines + widenLines - 1) / widenLines}, []int{1},
		buf(x.Tensor), intArg(x.Row), intArg(x.Col), buf(to), intArg(lines), intArg(length))
}

// tiles queues the product by way of local memory.
func (p *product) tiles(m, n, k int) error {
	s := p.variant.shape
	kern, err := p.program.Kernel(p.device, p.variant, "tiles")
	if err != nil {
		return err
	}
	bias, has := p.addend()
	return kern.Launch(p.stream, []int{roundUp(n, s.tn) / s.tn * s.wx, roundUp(m, s.tm) / s.tm * s.wy}, []int{s.wx, s.wy},
		buf(p.left.Tensor), intArg(p.left.Row), intArg(p.left.Col), buf(p.right.Tensor), intArg(p.right.Row), intArg(p.right.Col),
		buf(p.d.Tensor), intArg(p.d.Row), bias, has, intArg(m), intArg(n), intArg(k), opencl.F32(p.args.Alpha.Or(1)), opencl.F32(p.beta()))
}

// addend returns the bias that is added to each row, and whether there is one.
func (p *product) addend() (bias, has opencl.Arg) {
	if p.bias == nil || p.args.Grad {
		return buf(p.d.Tensor), intArg(0)
	}
	return buf(p.bias), intArg(1)
}

func (p *product) beta() float32 {
	if !p.args.Accumulate {
		return 0
	}
	return p.args.Beta.Or(1)
}
