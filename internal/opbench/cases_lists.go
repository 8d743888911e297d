package opbench

import (
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// listCases returns the cases of the ops over lists of tensors, of one tensor each.
func listCases() map[string]builder {
	return map[string]builder{
		optim.MultiTensorAdam.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorAdam, shape, optim.MultiTensorAdamArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols), m.Random(rows, cols), m.Positive(rows, cols), m.Positive(rows, cols)),
				LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 100, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
			})
		},
		optim.MultiTensorL2Norm.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorL2Norm, shape, optim.MultiTensorL2NormArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols)), Norm: m.Fresh(tensor.F32, 1),
			})
		},
		optim.MultiTensorScale.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorScale, shape, optim.MultiTensorScaleArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols), m.Fresh(m.dtype, rows, cols)), Scale: 0.5,
			})
		},
		optim.MultiTensorAdamParamRemainder.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorAdamParamRemainder, shape, optim.MultiTensorAdamArgs{
				NoopFlag:    m.Fresh(tensor.I32, 1),
				TensorLists: lists(m.Random(rows, cols), m.Fresh(tensor.BF16, rows, cols), m.Positive(rows, cols), m.Positive(rows, cols), m.Fresh(tensor.I16, rows, cols)),
				LR:          1e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 100, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
			})
		},
		optim.MultiTensorAdamCapturable.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorAdamCapturable, shape, m.capturable(
				m.Random(rows, cols), m.Random(rows, cols), m.Positive(rows, cols), m.Positive(rows, cols)))
		},
		optim.MultiTensorAdamCapturableMaster.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorAdamCapturableMaster, shape, m.capturable(
				m.Random(rows, cols), m.Random(rows, cols), m.Positive(rows, cols), m.Positive(rows, cols), m.Positive(rows, cols)))
		},
		optim.MultiTensorSGD.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorSGD, shape, optim.MultiTensorSGDArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols), m.Random(rows, cols), m.Positive(rows, cols)),
				WD: 0.1, Momentum: 0.9, LR: 1e-3, Nesterov: true, Scale: 1,
			})
		},
		optim.MultiTensorUnscaleL2Norm.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorUnscaleL2Norm, shape, optim.MultiTensorUnscaleL2NormArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols)), InvScale: m.Positive(1), Norm: m.Fresh(tensor.F32, 1),
			})
		},
		optim.MultiTensorScaleTensor.Name(): func(m *Maker, shape string, rows, cols int) (Case, error) {
			return NewCase(m, optim.MultiTensorScaleTensor, shape, optim.MultiTensorScaleTensorArgs{
				NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(m.Random(rows, cols), m.Fresh(m.dtype, rows, cols)), Scale: m.Positive(1),
			})
		},
	}
}

// capturable returns a step of Adam over lists of one tensor each.
func (m *Maker) capturable(tensors ...*tensor.Tensor) optim.MultiTensorAdamCapturableArgs {
	return optim.MultiTensorAdamCapturableArgs{
		NoopFlag: m.Fresh(tensor.I32, 1), TensorLists: lists(tensors...), LR: m.Positive(1), Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
		Step: m.Indexes(100, 1), Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1, InvScale: m.Positive(1),
	}
}

// lists returns lists of one tensor each.
func lists(tensors ...*tensor.Tensor) [][]*tensor.Tensor {
	all := make([][]*tensor.Tensor, len(tensors))
	for i, t := range tensors {
		all[i] = []*tensor.Tensor{t}
	}
	return all
}
