package opbench

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// activationCases returns the cases of the activation functions, of rows × cols elements of their
// output.
func activationCases() map[string]builder {
	cases := map[string]builder{
		ops.ClampedSwiGLU.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, ops.ClampedSwiGLU, shape, ops.ClampedSwiGLUArgs{Input: m.random(rows, 2*cols), Output: m.fresh(m.dtype, rows, cols)})
		},
		ops.ClampedDSwiGLU.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, ops.ClampedDSwiGLU, shape, ops.ClampedDSwiGLUArgs{
				Grad: m.random(rows, cols), FwdInput: m.random(rows, 2*cols), Output: m.fresh(m.dtype, rows, 2*cols),
			})
		},
	}
	type forward = opregistry.Op[ops.ActivationArgs]
	type backward = opregistry.Op[ops.DActivationArgs]
	activations := func(halves int, fwd []*forward, bwd []*backward) {
		for _, op := range fwd {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return newCase(m, op, shape, ops.ActivationArgs{Input: m.random(rows, halves*cols), Output: m.fresh(m.dtype, rows, cols)})
			}
		}
		for _, op := range bwd {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return newCase(m, op, shape, ops.DActivationArgs{
					Grad: m.random(rows, cols), FwdInput: m.random(rows, halves*cols), Output: m.fresh(m.dtype, rows, halves*cols),
				})
			}
		}
	}
	activations(1, []*forward{ops.GELU, ops.QGELU, ops.ReLU, ops.SReLU, ops.SiLU},
		[]*backward{ops.DGELU, ops.DQGELU, ops.DReLU, ops.DSReLU, ops.DSiLU})
	activations(2, []*forward{ops.GLU, ops.SwiGLU, ops.GEGLU, ops.QGEGLU, ops.ReGLU, ops.SReGLU},
		[]*backward{ops.DGLU, ops.DSwiGLU, ops.DGEGLU, ops.DQGEGLU, ops.DReGLU, ops.DSReGLU})
	for _, op := range []*opregistry.Op[ops.DBiasDActivationArgs]{ops.DBiasDGELU, ops.DBiasDQGELU, ops.DBiasDReLU, ops.DBiasDSReLU, ops.DBiasDSiLU} {
		cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, op, shape, ops.DBiasDActivationArgs{
				Grad: m.random(rows, cols), FwdInput: m.random(rows, cols), DBias: m.fresh(m.dtype, cols), Output: m.fresh(m.dtype, rows, cols),
			})
		}
	}
	return cases
}

// softmaxScale is the scale of attention scores of heads of 64.
const softmaxScale = 0.125

// softmaxCases returns the cases of the softmaxes, of rows rows of cols scores each. With a causal
// mask they are square matrices of cols columns, as many as have about that many rows together.
func softmaxCases() map[string]builder {
	cases := map[string]builder{
		ops.ScaledMaskedSoftmaxForward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, ops.ScaledMaskedSoftmaxForward, shape, ops.ScaledMaskedSoftmaxForwardArgs{
				Input: m.random(1, 1, rows, cols), Mask: m.fresh(tensor.U8, 1, 1, rows, cols), Output: m.fresh(m.dtype, 1, 1, rows, cols),
				ScaleFactor: softmaxScale,
			})
		},
	}
	type scores func(rows, cols int) []int
	plain := scores(func(rows, cols int) []int { return []int{1, 1, rows, cols} })
	squares := scores(func(rows, cols int) []int { return []int{1, max(rows/max(cols, 1), 1), cols, cols} })
	triangles := scores(func(rows, cols int) []int { return squares(rows, cols)[1:] })
	softmax := func(scores scores, fwd *opregistry.Op[ops.SoftmaxArgs], bwd *opregistry.Op[ops.SoftmaxBackwardArgs]) {
		if fwd != nil {
			cases[fwd.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				s := scores(rows, cols)
				return newCase(m, fwd, shape, ops.SoftmaxArgs{Input: m.random(s...), Output: m.fresh(m.dtype, s...), ScaleFactor: softmaxScale})
			}
		}
		cases[bwd.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			s := scores(rows, cols)
			return newCase(m, bwd, shape, ops.SoftmaxBackwardArgs{
				OutputGrads: m.random(s...), SoftmaxResults: m.random(s...), Output: m.fresh(m.dtype, s...), ScaleFactor: softmaxScale,
			})
		}
	}
	softmax(plain, ops.ScaledSoftmaxForward, ops.ScaledSoftmaxBackward)
	softmax(plain, nil, ops.ScaledMaskedSoftmaxBackward)
	softmax(triangles, ops.ScaledUpperTriangMaskedSoftmaxForward, ops.ScaledUpperTriangMaskedSoftmaxBackward)
	softmax(squares, ops.ScaledAlignedCausalMaskedSoftmaxForward, ops.ScaledAlignedCausalMaskedSoftmaxBackward)
	return cases
}
