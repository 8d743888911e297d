package oracle

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// elementwise returns calls of activations and of other ops that treat each element separately.
func elementwise() []subject {
	var all []subject
	for _, op := range []*opregistry.Op[ops.ActivationArgs]{ops.GELU, ops.QGELU, ops.ReLU, ops.SReLU, ops.SiLU} {
		all = append(all, call[ops.ActivationArgs]{op, func(m *maker) ops.ActivationArgs {
			return ops.ActivationArgs{Input: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[ops.DActivationArgs]{ops.DGELU, ops.DQGELU, ops.DReLU, ops.DSReLU, ops.DSiLU} {
		all = append(all, call[ops.DActivationArgs]{op, func(m *maker) ops.DActivationArgs {
			return ops.DActivationArgs{Grad: m.ones(m.rows, m.cols), FwdInput: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[ops.SwiGLUArgs]{ops.SwiGLU, ops.GEGLU, ops.GLU, ops.QGEGLU, ops.ReGLU, ops.SReGLU} {
		all = append(all, call[ops.SwiGLUArgs]{op, func(m *maker) ops.SwiGLUArgs {
			return ops.SwiGLUArgs{Input: m.of(m.rows, 2*m.cols), Output: m.of(m.rows, m.cols)}
		}})
	}
	for _, op := range []*opregistry.Op[ops.DSwiGLUArgs]{ops.DSwiGLU, ops.DGEGLU, ops.DGLU, ops.DQGEGLU, ops.DReGLU, ops.DSReGLU} {
		all = append(all, call[ops.DSwiGLUArgs]{op, func(m *maker) ops.DSwiGLUArgs {
			return ops.DSwiGLUArgs{Grad: m.ones(m.rows, m.cols), FwdInput: m.of(m.rows, 2*m.cols), Output: m.of(m.rows, 2*m.cols)}
		}})
	}
	return all
}

// linear returns calls whose results grow with their operands.
func linear() []subject {
	return []subject{
		call[ops.ResidualAddArgs]{ops.ResidualAdd, func(m *maker) ops.ResidualAddArgs {
			return ops.ResidualAddArgs{A: m.of(m.rows, m.cols), B: m.of(m.rows, m.cols), Output: m.of(m.rows, m.cols)}
		}},
		call[ops.GenericGemmArgs]{ops.GenericGemm, func(m *maker) ops.GenericGemmArgs {
			return ops.GenericGemmArgs{A: m.ones(m.cols, m.cols), TransA: true, B: m.of(m.rows, m.cols), D: m.of(m.rows, m.cols)}
		}},
		call[ops.MultiTensorScaleArgs]{ops.MultiTensorScale, func(m *maker) ops.MultiTensorScaleArgs {
			in, out := m.of(m.rows, m.cols), m.of(m.rows, m.cols)
			return ops.MultiTensorScaleArgs{NoopFlag: m.flag(), TensorLists: [][]*tensor.Tensor{{in}, {out}}, Scale: 0.75}
		}},
		call[ops.EmbeddingBwdArgs]{ops.EmbeddingBwd, func(m *maker) ops.EmbeddingBwdArgs {
			return ops.EmbeddingBwdArgs{Grad: m.of(m.rows, m.cols), Indices: m.values(tensor.I32, make([]float64, m.rows), m.rows), DWeight: m.of(2, m.cols)}
		}},
	}
}

// reductions returns calls of ops that add up products or squares.
func reductions() []subject {
	const eps = 1e-5
	all := []subject{
		call[ops.RMSNormFwdArgs]{ops.RMSNormFwd, func(m *maker) ops.RMSNormFwdArgs {
			return ops.RMSNormFwdArgs{
				Input: m.of(m.rows, m.cols), Weight: m.ones(m.cols), Output: m.of(m.rows, m.cols), RSigma: m.scaled(tensor.F32, 1, m.rows),
				Eps: eps, Saved: new(opregistry.Saved),
			}
		}},
		call[ops.RMSNormBwdArgs]{ops.RMSNormBwd, func(m *maker) ops.RMSNormBwdArgs {
			x := m.of(m.rows, m.cols)
			_, rsigma := m.statistics(x, eps, false)
			return ops.RMSNormBwdArgs{
				DZ: m.ones(m.rows, m.cols), X: x, RSigma: rsigma, Gamma: m.ones(m.cols), DX: m.of(m.rows, m.cols), DGamma: m.of(m.cols),
				Saved: new(opregistry.Saved),
			}
		}},
		call[ops.LayerNormFwdArgs]{ops.LayerNormFwd, func(m *maker) ops.LayerNormFwdArgs {
			return ops.LayerNormFwdArgs{
				Input: m.of(m.rows, m.cols), Weight: m.ones(m.cols), Bias: m.ones(m.cols), Output: m.of(m.rows, m.cols),
				Mu: m.scaled(tensor.F32, 1, m.rows), RSigma: m.scaled(tensor.F32, 1, m.rows), Eps: eps, Saved: new(opregistry.Saved),
			}
		}},
		call[ops.LayerNormBwdArgs]{ops.LayerNormBwd, func(m *maker) ops.LayerNormBwdArgs {
			x := m.of(m.rows, m.cols)
			mu, rsigma := m.statistics(x, eps, true)
			return ops.LayerNormBwdArgs{
				DZ: m.ones(m.rows, m.cols), X: x, Mu: mu, RSigma: rsigma, Gamma: m.ones(m.cols), DX: m.of(m.rows, m.cols),
				DGamma: m.of(m.cols), DBeta: m.of(m.cols), Saved: new(opregistry.Saved),
			}
		}},
		call[ops.MultiTensorL2NormArgs]{ops.MultiTensorL2Norm, func(m *maker) ops.MultiTensorL2NormArgs {
			return ops.MultiTensorL2NormArgs{
				NoopFlag: m.flag(), TensorLists: [][]*tensor.Tensor{{m.of(m.rows, m.cols), m.of(m.cols)}}, Norm: m.scaled(tensor.F32, 1, 1),
			}
		}},
	}
	for _, op := range []*opregistry.Op[ops.SoftmaxBackwardArgs]{ops.ScaledSoftmaxBackward, ops.ScaledMaskedSoftmaxBackward} {
		all = append(all, call[ops.SoftmaxBackwardArgs]{op, func(m *maker) ops.SoftmaxBackwardArgs {
			shape := []int{1, 1, m.rows, m.cols}
			return ops.SoftmaxBackwardArgs{OutputGrads: m.of(shape...), SoftmaxResults: m.probabilities(shape...), Output: m.of(shape...), ScaleFactor: 1}
		}})
	}
	return append(all, call[ops.SoftmaxArgs]{ops.ScaledSoftmaxForward, func(m *maker) ops.SoftmaxArgs {
		return ops.SoftmaxArgs{Input: m.of(1, 1, m.rows, m.cols), Output: m.of(1, 1, m.rows, m.cols), ScaleFactor: 0.5}
	}})
}
