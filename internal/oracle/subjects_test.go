package oracle

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// elementwise returns calls of activations and of other ops that treat each element separately.
func elementwise() []subject {
	var all []subject
	for _, op := range []*opregistry.Op[activation.ActivationArgs]{activation.GELU, activation.GELUErf, activation.QGELU, activation.ReLU, activation.SReLU, activation.SiLU} {
		all = append(all, call[activation.ActivationArgs]{op, func(m *maker) activation.ActivationArgs {
			return activation.ActivationArgs{Input: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[activation.DActivationArgs]{activation.DGELU, activation.DGELUErf, activation.DQGELU, activation.DReLU, activation.DSReLU, activation.DSiLU} {
		all = append(all, call[activation.DActivationArgs]{op, func(m *maker) activation.DActivationArgs {
			return activation.DActivationArgs{Grad: m.ones(m.rows, m.cols), FwdInput: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[activation.SwiGLUArgs]{activation.SwiGLU, activation.GEGLU, activation.GEGLUErf, activation.GLU, activation.QGEGLU, activation.ReGLU, activation.SReGLU} {
		all = append(all, call[activation.SwiGLUArgs]{op, func(m *maker) activation.SwiGLUArgs {
			return activation.SwiGLUArgs{Input: m.of(m.rows, 2*m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[activation.DSwiGLUArgs]{activation.DSwiGLU, activation.DGEGLU, activation.DGEGLUErf, activation.DGLU, activation.DQGEGLU, activation.DReGLU, activation.DSReGLU} {
		all = append(all, call[activation.DSwiGLUArgs]{op, func(m *maker) activation.DSwiGLUArgs {
			return activation.DSwiGLUArgs{Grad: m.ones(m.rows, m.cols), FwdInput: m.of(m.rows, 2*m.cols), Output: m.of(m.rows, 2*m.cols)}
		}})
	}
	return all
}

// linear returns calls whose results grow with their operands.
func linear() []subject {
	return []subject{
		call[norm.ResidualAddArgs]{norm.ResidualAdd, func(m *maker) norm.ResidualAddArgs {
			return norm.ResidualAddArgs{A: m.of(m.rows, m.cols), B: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}},
		call[gemm.GenericGemmArgs]{gemm.GenericGemm, func(m *maker) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: m.ones(m.cols, m.cols), TransA: true, B: m.of(m.rows, m.cols), D: m.of(m.rows, m.cols)}
		}},
		call[optim.MultiTensorScaleArgs]{optim.MultiTensorScale, func(m *maker) optim.MultiTensorScaleArgs {
			in, out := m.of(m.rows, m.cols), m.of(m.rows, m.cols)
			return optim.MultiTensorScaleArgs{NoopFlag: m.flag(), TensorLists: [][]*tensor.Tensor{{in}, {out}}, Scale: 0.75}
		}},
		call[embedding.EmbeddingBwdArgs]{embedding.EmbeddingBwd, func(m *maker) embedding.EmbeddingBwdArgs {
			return embedding.EmbeddingBwdArgs{Grad: m.of(m.rows, m.cols), Indices: m.values(tensor.I32, make([]float64, m.rows), m.rows), DWeight: m.of(2, m.cols)}
		}},
	}
}

// reductions returns calls of ops that add up products or squares.
func reductions() []subject {
	const eps = 1e-5
	all := []subject{
		call[norm.RMSNormFwdArgs]{norm.RMSNormFwd, func(m *maker) norm.RMSNormFwdArgs {
			return norm.RMSNormFwdArgs{
				Input: m.of(m.rows, m.cols), Weight: m.ones(m.cols), Output: m.of(m.rows, m.cols), RSigma: m.scaled(tensor.F32, 1, m.rows),
				Eps: eps, Saved: new(opregistry.Saved),
			}
		}},
		call[norm.RMSNormBwdArgs]{norm.RMSNormBwd, func(m *maker) norm.RMSNormBwdArgs {
			x := m.of(m.rows, m.cols)
			_, rsigma := m.statistics(x, eps, false)
			return norm.RMSNormBwdArgs{
				DZ: m.ones(m.rows, m.cols), X: x, RSigma: rsigma, Gamma: m.ones(m.cols), DX: m.of(m.rows, m.cols), DGamma: m.of(m.cols),
				Saved: new(opregistry.Saved),
			}
		}},
		call[norm.LayerNormFwdArgs]{norm.LayerNormFwd, func(m *maker) norm.LayerNormFwdArgs {
			return norm.LayerNormFwdArgs{
				Input: m.of(m.rows, m.cols), Weight: m.ones(m.cols), Bias: m.ones(m.cols), Output: m.of(m.rows, m.cols),
				Mu: m.scaled(tensor.F32, 1, m.rows), RSigma: m.scaled(tensor.F32, 1, m.rows), Eps: eps, Saved: new(opregistry.Saved),
			}
		}},
		call[norm.LayerNormBwdArgs]{norm.LayerNormBwd, func(m *maker) norm.LayerNormBwdArgs {
			x := m.of(m.rows, m.cols)
			mu, rsigma := m.statistics(x, eps, true)
			return norm.LayerNormBwdArgs{
				DZ: m.ones(m.rows, m.cols), X: x, Mu: mu, RSigma: rsigma, Gamma: m.ones(m.cols), DX: m.of(m.rows, m.cols),
				DGamma: m.of(m.cols), DBeta: m.of(m.cols), Saved: new(opregistry.Saved),
			}
		}},
		call[optim.MultiTensorL2NormArgs]{optim.MultiTensorL2Norm, func(m *maker) optim.MultiTensorL2NormArgs {
			return optim.MultiTensorL2NormArgs{
				NoopFlag: m.flag(), TensorLists: [][]*tensor.Tensor{{m.of(m.rows, m.cols), m.of(m.cols)}}, Norm: m.scaled(tensor.F32, 1, 1),
			}
		}},
	}
	for _, op := range []*opregistry.Op[softmax.SoftmaxBackwardArgs]{softmax.ScaledSoftmaxBackward, softmax.ScaledMaskedSoftmaxBackward} {
		all = append(all, call[softmax.SoftmaxBackwardArgs]{op, func(m *maker) softmax.SoftmaxBackwardArgs {
			shape := []int{1, 1, m.rows, m.cols}
			return softmax.SoftmaxBackwardArgs{OutputGrads: m.of(shape...), SoftmaxResults: m.probabilities(shape...), Output: m.of(shape...), ScaleFactor: 1}
		}})
	}
	return append(all, call[softmax.SoftmaxArgs]{softmax.ScaledSoftmaxForward, func(m *maker) softmax.SoftmaxArgs {
		return softmax.SoftmaxArgs{Input: m.of(1, 1, m.rows, m.cols), Output: m.of(1, 1, m.rows, m.cols), ScaleFactor: 0.5}
	}})
}
