package gemm

import (
	_ "embed"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

//go:embed gemm.cl
var source string

// family holds the programs of the family.
type family struct {
	program *kernel.Program[variant]
	shapes  *chooser
}

// Impls returns the impls of the family.
func Impls() []opregistry.Impl { return newFamily().impls() }

// measured is the geometric mean over the products of docs/performance.md.
var measured = opregistry.Measurement{Rate: 0.97, By: "make bench-opencl"}

func newFamily() *family {
	return &family{program: kernel.NewProgram[variant]("gemm", source), shapes: newChooser()}
}

func (f *family) impls() []opregistry.Impl {
	impls := []opregistry.Impl{
		kernel.Impl(gemm.GenericGemm, f.genericGemm, kernel.Storage),
		kernel.Impl(gemm.TEGeneralGroupedGemm, f.groupedGemm, kernel.Storage),
	}
	impls[0].Measured = measured
	return impls
}

// variant is a program: the dtypes of the operands and the shape of the tiles.
type variant struct {
	a, b, d, bias tensor.DType
	shape         shape
}

// Options returns the macros that gemm.cl asks for.
func (v variant) Options() []string {
	return append(v.shape.options(),
		kernel.Define("A", kernel.Name(v.a)), kernel.Define("B", kernel.Name(v.b)),
		kernel.Define("D", kernel.Name(v.d)), kernel.Define("BIAS", kernel.Name(v.bias)),
		kernel.Define("SUM_ROWS", sumRows), kernel.Define("PACK_DEPTH", packDepth), kernel.Define("WIDEN_LINES", widenLines))
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
func (f *family) genericGemm(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
	p, err := f.view(x, a)
	if err != nil || p.device == nil {
		return err
	}
	return p.queue()
}

// view returns the call of genericGemm or why it is declined. The device is nil if no operand has
// elements.
func (f *family) view(x *opregistry.Exec, a gemm.GenericGemmArgs) (product, error) {
	var v kernel.Views
	p := product{family: f, stream: x.Stream(), args: a}
	p.left, p.right, p.d = v.Matrix("B", a.B), v.Matrix("A", a.A), v.Matrix("D", a.D)
	p.bias = a.Bias
	if a.Bias != nil {
		v.Vector("bias", a.Bias)
	}
	if a.Gelu {
		v.Decline("gelu, this impl has no GELU epilogue")
	}
	if v.Err == nil && p.d.Col != 1 {
		v.Decline("strides %v of D, this impl serves dense rows", a.D.Strides())
	}
	p.device = v.Device
	return p, v.Err
}

// product is a call of genericGemm.
type product struct {
	*family
	device         *opencl.Device
	stream         device.Stream
	args           gemm.GenericGemmArgs
	left, right, d kernel.Matrix
	bias           *tensor.Tensor
	variant        variant
}

// queue queues the kernels of the call.
func (p *product) queue() error {
	m, n, k := p.args.Dims()
	input := p.left
	if p.args.TransB {
		p.left = p.left.Transposed()
	}
	if p.args.TransA {
		p.right = p.right.Transposed()
	}
	p.variant = variant{a: p.args.A.DType(), b: p.args.B.DType(), d: p.args.D.DType(), bias: tensor.F32}
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
func (p *product) columnSums(x kernel.Matrix) error {
	kern, err := p.program.Kernel(p.device, p.variant, "column_sums")
	if err != nil || x.Cols == 0 {
		return err
	}
	return kern.Launch(p.stream, []int{kernel.RoundUp(x.Cols, kernel.Group)}, []int{kernel.Group}, kernel.Buf(x.Tensor), kernel.Int(x.Row), kernel.Int(x.Col), kernel.Buf(p.bias), kernel.Int(x.Rows), kernel.Int(x.Cols))
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
			kernel.Buf(r.Tensor), kernel.Int(r.Row), kernel.Int(r.Col), kernel.Buf(scratch.At(0)), kernel.Int(n), kernel.Int(k))
		if err != nil {
			return err
		}
	}
	blocks := kernel.RoundUp((m+s.rows-1)/s.rows, s.group)
	bias, has := p.addend()
	return kern.Launch(p.stream, []int{blocks, panels}, []int{s.group, 1},
		kernel.Buf(left.Tensor), kernel.Int(left.Row), kernel.Int(left.Col), kernel.Buf(scratch.At(0)), kernel.Buf(p.d.Tensor), kernel.Int(p.d.Row),
		bias, has, kernel.Int(m), kernel.Int(n), kernel.Int(k), opencl.F32(p.args.Alpha.Or(1)), opencl.F32(p.beta()))
}

// widen queues a copy of left in f32 and returns it. Kernel panels reads each element of left once
// for each panel, and to convert it every time takes longer than to multiply.
func (p *product) widen(to *tensor.Tensor, m, k int) (kernel.Matrix, error) {
	x := p.left
	lines, length := m, k
	out := kernel.Matrix{Tensor: to, Rows: m, Cols: k, Row: k, Col: 1}
	if x.Col != 1 && x.Row == 1 {
		x, out.Row, out.Col = x.Transposed(), 1, m
		lines, length = k, m
	}
	kern, err := p.program.Kernel(p.device, p.variant, "widen")
	if err != nil {
		return out, err
	}
	return out, kern.Launch(p.stream, []int{(lines + widenLines - 1) / widenLines}, []int{1},
		kernel.Buf(x.Tensor), kernel.Int(x.Row), kernel.Int(x.Col), kernel.Buf(to), kernel.Int(lines), kernel.Int(length))
}

// tiles queues the product by way of local memory.
func (p *product) tiles(m, n, k int) error {
	s := p.variant.shape
	kern, err := p.program.Kernel(p.device, p.variant, "tiles")
	if err != nil {
		return err
	}
	bias, has := p.addend()
	return kern.Launch(p.stream, []int{kernel.RoundUp(n, s.tn) / s.tn * s.wx, kernel.RoundUp(m, s.tm) / s.tm * s.wy}, []int{s.wx, s.wy},
		kernel.Buf(p.left.Tensor), kernel.Int(p.left.Row), kernel.Int(p.left.Col), kernel.Buf(p.right.Tensor), kernel.Int(p.right.Row), kernel.Int(p.right.Col),
		kernel.Buf(p.d.Tensor), kernel.Int(p.d.Row), bias, has, kernel.Int(m), kernel.Int(n), kernel.Int(k), opencl.F32(p.args.Alpha.Or(1)), opencl.F32(p.beta()))
}

// addend returns the bias that is added to each row, and whether there is one.
func (p *product) addend() (bias, has opencl.Arg) {
	if p.bias == nil || p.args.Grad {
		return kernel.Buf(p.d.Tensor), kernel.Int(0)
	}
	return kernel.Buf(p.bias), kernel.Int(1)
}

func (p *product) beta() float32 {
	if !p.args.Accumulate {
		return 0
	}
	return p.args.Beta.Or(1)
}
