package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// subject is a call of an op that every source can make.
type subject interface {
	name() string
	compare(torch *process, all []opregistry.Source, newMaker func() *maker) int
}

type call[A any] struct {
	op   *opregistry.Op[A]
	make func(*maker) A
}

func (c call[A]) name() string { return c.op.Name() }

// maker makes the operands of a call. Two makers make equal operands for the same requests in the
// same order.
type maker struct {
	t          *testing.T
	dtype      tensor.DType
	rows, cols int
	scale      float64
	seed       uint64
}

// of returns random values in [-1, 1], times the scale.
func (m *maker) of(shape ...int) *tensor.Tensor { return m.scaled(m.dtype, m.scale, shape...) }

// ones returns random values in [-1, 1].
func (m *maker) ones(shape ...int) *tensor.Tensor { return m.scaled(m.dtype, 1, shape...) }

func (m *maker) scaled(d tensor.DType, f float64, shape ...int) *tensor.Tensor {
	m.seed++
	x := tensortest.Random(m.t, m.seed, tensor.F64, shape...)
	values := x.Float64s()
	for i := range values {
		values[i] *= f
	}
	return m.values(d, values, shape...)
}

func (m *maker) values(d tensor.DType, v []float64, shape ...int) *tensor.Tensor {
	x := tensortest.Random(m.t, 1, d, shape...)
	require.NoError(m.t, x.SetFloat64s(v))
	return x
}

// statistics returns what a normalisation of x saves: the mean of each row when it is centred, and
// the reciprocal of its deviation.
func (m *maker) statistics(x *tensor.Tensor, eps float32, centred bool) (mu, rsigma *tensor.Tensor) {
	means, reciprocals := make([]float64, m.rows), make([]float64, m.rows)
	v := x.Float64s()
	for r := range means {
		row := v[r*m.cols : (r+1)*m.cols]
		if centred {
			for _, f := range row {
				means[r] += f / float64(m.cols)
			}
		}
		squares := 0.0
		for _, f := range row {
			squares += (f - means[r]) * (f - means[r]) / float64(m.cols)
		}
		reciprocals[r] = 1 / math.Sqrt(squares+float64(eps))
	}
	return m.values(tensor.F32, means, m.rows), m.values(tensor.F32, reciprocals, m.rows)
}

// compare makes the call with every impl of the sources that serves it and compares with PyTorch.
// It returns the number of those impls.
func (c call[A]) compare(torch *process, all []opregistry.Source, newMaker func() *maker) int {
	served := 0
	var want *A
	for _, src := range all {
		for _, impl := range src.Impls {
			if impl.Op != opregistry.Handle(c.op) || impl.Available != nil && impl.Available() != nil {
				continue
			}
			m := newMaker()
			got := c.make(m)
			err := opregistry.Serves(&impl.Support, c.op, got)
			if err == nil {
				require.NoError(m.t, c.op.Validate(got), "%s: the call itself is wrong", c.op.Name())
				err = impl.Run.(opregistry.Func[A])(opregistry.NewExec(nil, 0), got)
			}
			if errors.Is(err, opregistry.ErrUnsupported) {
				continue
			}
			require.NoError(m.t, err, "%s by %s", c.op.Name(), impl.ID)
			if want == nil {
				a := c.make(newMaker())
				require.NoError(m.t, torch.call(c.op.Name(), a))
				want = &a
			}
			served++
			c.near(m.t, impl.ID, *want, got)
		}
	}
	return served
}

func (c call[A]) near(t *testing.T, id string, want, got A) {
	wanted := c.op.Operands(want)
	for i, o := range c.op.Operands(got) {
		if o.Access == opregistry.AccessRead {
			continue
		}
		tol := c.op.Tolerance().Of(o.Tensor.DType())
		// The table is for results of magnitude 1.
		tol.Abs = tol.Abs*largest(wanted[i].Tensor) + subnormal(c.op)
		if !tensortest.Close(t, wanted[i].Tensor, o.Tensor, tol) {
			t.Errorf("%s: operand %q of %s is not what PyTorch computes", c.op.Name(), o.Name, id)
		}
	}
}

// subnormal returns the error that a result may have because subnormals of f32 have fewer digits,
// or are lost where package ops allows it: after an exponential.
func subnormal(op opregistry.Handle) float64 {
	exponentials := []opregistry.Handle{
		activation.GELU, activation.GELUErf, activation.QGELU, activation.SiLU, activation.DGELU, activation.DGELUErf, activation.DQGELU, activation.DSiLU, activation.SwiGLU, activation.GEGLU, activation.GEGLUErf, activation.GLU, activation.QGEGLU,
		activation.DSwiGLU, activation.DGEGLU, activation.DGEGLUErf, activation.DGLU, activation.DQGEGLU, softmax.ScaledSoftmaxForward,
	}
	if slices.Contains(exponentials, op) {
		return 0x1p-126
	}
	return 0x1p-148
}

// largest returns the largest finite magnitude of a tensor.
func largest(x *tensor.Tensor) float64 {
	most := 0.0
	for _, v := range x.Float64s() {
		if v = math.Abs(v); v > most && !math.IsInf(v, 0) {
			most = v
		}
	}
	return most
}

// flag returns a no-op flag that is not set.
func (m *maker) flag() *tensor.Tensor { return m.values(tensor.I32, []float64{0}, 1) }

// probabilities returns rows of positive numbers that add up to 1 before rounding.
func (m *maker) probabilities(shape ...int) *tensor.Tensor {
	v := m.scaled(tensor.F64, 1, shape...).Float64s()
	for row := range slices.Chunk(v, m.cols) {
		total := 0.0
		for i, f := range row {
			row[i] = math.Exp(4 * f)
			total += row[i]
		}
		for i := range row {
			row[i] /= total
		}
	}
	return m.values(m.dtype, v, shape...)
}

// The numbers go from the smallest to the largest of a dtype: intermediate products leave the range
// of f32, exponentials overflow or vanish, and there are subnormals.
func TestExtremeMagnitudes(t *testing.T) {
	torch, all := start(t), sources()
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		scales := []float64{1e-40, 1e-30, 1e-18, 1e15, 1e30, 1e36}
		squares := []float64{1e-40, 1e-30, 1e-15, 1e15, 1e30}
		if d == tensor.F16 {
			scales, squares = []float64{6e-8, 1e-5, 250, 65504}, []float64{1e-5, 250, 65504}
		}
		for _, group := range []struct {
			scales   []float64
			subjects []subject
		}{{scales, append(elementwise(), linear()...)}, {squares, reductions()}} {
			for _, scale := range group.scales {
				for _, s := range group.subjects {
					t.Run(fmt.Sprintf("%v/%g/%s", d, scale, s.name()), func(t *testing.T) {
						served := s.compare(torch, all, func() *maker {
							return &maker{t: t, dtype: d, rows: 7, cols: 131, scale: scale}
						})
						require.Positive(t, served)
					})
				}
			}
		}
	}
}

// oneDNN serves norms and softmaxes from a million elements on.
func TestMillionElements(t *testing.T) {
	torch, all := start(t), sources()
	for _, s := range reductions() {
		t.Run(s.name(), func(t *testing.T) {
			served := s.compare(torch, all, func() *maker {
				return &maker{t: t, dtype: tensor.BF16, rows: 1024, cols: 1024, scale: 1}
			})
			require.Positive(t, served)
		})
	}
}
