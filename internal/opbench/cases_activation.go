package opbench

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	softmaxops "github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// activationCases returns the cases of the activation functions, of rows × cols elements of their
// output.
func activationCases() map[string]builder {
	cases := map[string]builder{
		activation.ClampedSwiGLU.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, activation.ClampedSwiGLU, shape, activation.ClampedSwiGLUArgs{Input: m.Random(rows, 2*cols), Output: m.Fresh(m.dtype, rows, cols)})
		},
		activation.ClampedDSwiGLU.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, activation.ClampedDSwiGLU, shape, activation.ClampedDSwiGLUArgs{
				Grad: m.Random(rows, cols), FwdInput: m.Random(rows, 2*cols), Output: m.Fresh(m.dtype, rows, 2*cols),
			})
		},
		activation.Softcap.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, activation.Softcap, shape, activation.SoftcapArgs{Input: m.Random(rows, cols), Output: m.Fresh(m.dtype, rows, cols), Limit: 30})
		},
		activation.DSoftcap.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, activation.DSoftcap, shape, activation.DSoftcapArgs{
				Grad: m.Random(rows, cols), FwdInput: m.Random(rows, cols), Output: m.Fresh(m.dtype, rows, cols), Limit: 30,
			})
		},
	}
	type forward = opregistry.Op[activation.ActivationArgs]
	type backward = opregistry.Op[activation.DActivationArgs]
	activations := func(halves int, fwd []*forward, bwd []*backward) {
		for _, op := range fwd {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return NewCase(m, op, shape, activation.ActivationArgs{Input: m.Random(rows, halves*cols), Output: m.Fresh(m.dtype, rows, cols)})
			}
		}
		for _, op := range bwd {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return NewCase(m, op, shape, activation.DActivationArgs{
					Grad: m.Random(rows, cols), FwdInput: m.Random(rows, halves*cols), Output: m.Fresh(m.dtype, rows, halves*cols),
				})
			}
		}
	}
	activations(1, []*forward{activation.GELU, activation.GELUErf, activation.QGELU, activation.ReLU, activation.SReLU, activation.SiLU},
		[]*backward{activation.DGELU, activation.DGELUErf, activation.DQGELU, activation.DReLU, activation.DSReLU, activation.DSiLU})
	activations(2, []*forward{activation.GLU, activation.SwiGLU, activation.GEGLU, activation.GEGLUErf, activation.QGEGLU, activation.ReGLU, activation.SReGLU},
		[]*backward{activation.DGLU, activation.DSwiGLU, activation.DGEGLU, activation.DGEGLUErf, activation.DQGEGLU, activation.DReGLU, activation.DSReGLU})
	for _, op := range []*opregistry.Op[activation.DBiasDActivationArgs]{activation.DBiasDGELU, activation.DBiasDGELUErf, activation.DBiasDQGELU, activation.DBiasDReLU, activation.DBiasDSReLU, activation.DBiasDSiLU} {
		cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, op, shape, activation.DBiasDActivationArgs{
				Grad: m.Random(rows, cols), FwdInput: m.Random(rows, cols), DBias: m.Fresh(m.dtype, cols), Output: m.Fresh(m.dtype, rows, cols),
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
		softmaxops.ScaledMaskedSoftmaxForward.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, softmaxops.ScaledMaskedSoftmaxForward, shape, softmaxops.ScaledMaskedSoftmaxForwardArgs{
				Input: m.Random(1, 1, rows, cols), Mask: m.Fresh(tensor.U8, 1, 1, rows, cols), Output: m.Fresh(m.dtype, 1, 1, rows, cols),
				ScaleFactor: softmaxScale,
			})
		},
	}
	type scores func(rows, cols int) []int
	plain := scores(func(rows, cols int) []int { return []int{1, 1, rows, cols} })
	squares := scores(func(rows, cols int) []int { return []int{1, max(rows/max(cols, 1), 1), cols, cols} })
	triangles := scores(func(rows, cols int) []int { return squares(rows, cols)[1:] })
	softmax := func(scores scores, fwd *opregistry.Op[softmaxops.SoftmaxArgs], bwd *opregistry.Op[softmaxops.SoftmaxBackwardArgs]) {
		if fwd != nil {
			cases[fwd.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				s := scores(rows, cols)
				return NewCase(m, fwd, shape, softmaxops.SoftmaxArgs{Input: m.Random(s...), Output: m.Fresh(m.dtype, s...), ScaleFactor: softmaxScale})
			}
		}
		cases[bwd.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			s := scores(rows, cols)
			return NewCase(m, bwd, shape, softmaxops.SoftmaxBackwardArgs{
				OutputGrads: m.Random(s...), SoftmaxResults: m.Random(s...), Output: m.Fresh(m.dtype, s...), ScaleFactor: softmaxScale,
			})
		}
	}
	softmax(plain, softmaxops.ScaledSoftmaxForward, softmaxops.ScaledSoftmaxBackward)
	softmax(plain, nil, softmaxops.ScaledMaskedSoftmaxBackward)
	softmax(triangles, softmaxops.ScaledUpperTriangMaskedSoftmaxForward, softmaxops.ScaledUpperTriangMaskedSoftmaxBackward)
	softmax(squares, softmaxops.ScaledAlignedCausalMaskedSoftmaxForward, softmaxops.ScaledAlignedCausalMaskedSoftmaxBackward)
	return cases
}
