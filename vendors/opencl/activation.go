package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
)

//go:embed activation.cl
var source string

var program = newProgram("activation", source, []string{"X"}, nil)

// function is a function with the number that activation.cl has for it.
type function int32

const (
	gelu function = iota
	geluErf
	qgelu
	relu
	srelu
	silu
	logistic
)

// Impls returns the impls of the family.
func Impls() []opregistry.Impl {
	return []opregistry.Impl{
		gelu.forward(activation.GELU, plain), gelu.backward(activation.DGELU, plain), gelu.withBias(activation.DBiasDGELU),
		geluErf.forward(activation.GELUErf, plain), geluErf.backward(activation.DGELUErf, plain), geluErf.withBias(activation.DBiasDGELUErf),
		qgelu.forward(activation.QGELU, plain), qgelu.backward(activation.DQGELU, plain), qgelu.withBias(activation.DBiasDQGELU),
		relu.forward(activation.ReLU, plain), relu.backward(activation.DReLU, plain), relu.withBias(activation.DBiasDReLU),
		srelu.forward(activation.SReLU, plain), srelu.backward(activation.DSReLU, plain), srelu.withBias(activation.DBiasDSReLU),
		silu.forward(activation.SiLU, plain), silu.backward(activation.DSiLU, plain), silu.withBias(activation.DBiasDSiLU),

		silu.forward(activation.SwiGLU, gate), silu.backward(activation.DSwiGLU, gate),
		gelu.forward(activation.GEGLU, gate), gelu.backward(activation.DGEGLU, gate),
		geluErf.forward(activation.GEGLUErf, gate), geluErf.backward(activation.DGEGLUErf, gate),
		logistic.forward(activation.GLU, gate), logistic.backward(activation.DGLU, gate),
		qgelu.forward(activation.QGEGLU, gate), qgelu.backward(activation.DQGEGLU, gate),
		relu.forward(activation.ReGLU, gate), relu.backward(activation.DReGLU, gate),
		srelu.forward(activation.SReGLU, gate), srelu.backward(activation.DSReGLU, gate),

		openclImpl(activation.ClampedSwiGLU, clampedForward, Storage),
		openclImpl(activation.ClampedDSwiGLU, clampedBackward, Storage),
	}
}

// The kernels of functions that gate the other half of a row or do not.
const (
	plain = "act"
	gate  = "glu"
)

// forward returns the impl of a function.
func (f function) forward(op *opregistry.Op[activation.ActivationArgs], kernel string) opregistry.Impl {
	return openclImpl(op, func(e *opregistry.Exec, a activation.ActivationArgs) error {
		c := begin(e)
		x, y := c.rows("input", a.Input), c.rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		return c.each(program, kernel+"_fwd", typeList{a.Input.DType()}, 0, y.Rows, y.Cols, x, y).i32(int32(f)).Run()
	}, Storage)
}

// backward returns the impl of the gradient of a function.
func (f function) backward(op *opregistry.Op[activation.DActivationArgs], kernel string) opregistry.Impl {
	return openclImpl(op, func(e *opregistry.Exec, a activation.DActivationArgs) error {
		c := begin(e)
		dy, x, dx := c.rows("grad", a.Grad), c.rows("fwd_input", a.FwdInput), c.rows("output", a.Output)
		if c.Err != nil {
			return c.Err
		}
		return c.each(program, kernel+"_bwd", typeList{a.FwdInput.DType()}, 0, dy.Rows, dy.Cols, dy, x, dx).i32(int32(f)).Run()
	}, Storage)
}

// withBias returns the impl of the gradients of an elementwise function and of a bias. The gradient
// of the bias is summed over the rows of each part and then over the parts, in order.
func (f function) withBias(op *opregistry.Op[activation.DBiasDActivationArgs]) opregistry.Impl {
	return openclImpl(op, func(e *opregistry.Exec, a activation.DBiasDActivationArgs) error {
		c := begin(e)
		dy, x, dx := c.rows("grad", a.Grad), c.rows("fwd_input", a.FwdInput), c.rows("output", a.Output)
		c.vector("dbias", a.DBias)
		if c.Err != nil || x.Cols == 0 {
			return c.Err
		}
		sums, err := c.sums(x.Rows, x.Cols)
		if err != nil {
			return err
		}
		defer sums.Release()
		l := c.kernel(program, "act_bwd_bias", typeList{a.FwdInput.DType()}, 0).mat(dy, x, dx).vec(sums.At(0))
		if err := l.u32(x.Rows, x.Cols, sums.Per).i32(int32(f)).runGroups(l.across(x.Cols), sums.Parts); err != nil {
			return err
		}
		return sums.add(a.DBias, 0)
	}, Storage)
}

func clampedForward(e *opregistry.Exec, a activation.ClampedSwiGLUArgs) error {
	c := begin(e)
	x, y := c.rows("input", a.Input), c.rows("output", a.Output)
	if c.Err != nil {
		return c.Err
	}
	l := c.each(program, "clamped_fwd", typeList{a.Input.DType()}, 0, y.Rows, y.Cols, x, y)
	return l.f32(constants(a.Limit, a.Alpha, a.GLULinearOffset)...).Run()
}

func clampedBackward(e *opregistry.Exec, a activation.ClampedDSwiGLUArgs) error {
	c := begin(e)
	dy, x, dx := c.rows("grad", a.Grad), c.rows("fwd_input", a.FwdInput), c.rows("output", a.Output)
	if c.Err != nil {
		return c.Err
	}
	l := c.each(program, "clamped_bwd", typeList{a.FwdInput.DType()}, 0, dy.Rows, dy.Cols, dy, x, dx)
	return l.f32(constants(a.Limit, a.Alpha, a.GLULinearOffset)...).Run()
}

// constants returns limit, alpha and the offset of the linear half, or what they are when left out.
func constants(limit, alpha, offset opregistry.OptionalFloat) []float32 {
	return []float32{limit.Or(7), alpha.Or(1.702), offset.Or(1)}
}
