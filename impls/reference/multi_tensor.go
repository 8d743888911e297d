package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// multiTensorScale implements optim.MultiTensorScale.
func multiTensorScale(a optim.MultiTensorScaleArgs) error {
	return scaleLists(a.TensorLists, float64(a.Scale), a.NoopFlag)
}

// multiTensorScaleTensor implements optim.MultiTensorScaleTensor.
func multiTensorScaleTensor(a optim.MultiTensorScaleTensorArgs) error {
	return scaleLists(a.TensorLists, number(a.Scale), a.NoopFlag)
}

func scaleLists(lists [][]*tensor.Tensor, scale float64, flag *tensor.Tensor) error {
	for i, in := range lists[0] {
		v := in.Float64s()
		for j, x := range v {
			if !isFinite(x) {
				if err := raise(flag); err != nil {
					return err
				}
			}
			v[j] = x * scale
		}
		if err := lists[1][i].SetFloat64s(v); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorL2Norm implements optim.MultiTensorL2Norm.
func multiTensorL2Norm(a optim.MultiTensorL2NormArgs) error {
	return l2norm(a.TensorLists[0], 1, a.NoopFlag, a.Norm, a.PerTensor)
}

// multiTensorUnscaleL2Norm implements optim.MultiTensorUnscaleL2Norm.
func multiTensorUnscaleL2Norm(a optim.MultiTensorUnscaleL2NormArgs) error {
	return l2norm(a.TensorLists[0], number(a.InvScale), a.NoopFlag, a.Norm, a.PerTensor)
}

func l2norm(list []*tensor.Tensor, scale float64, flag, norm, perTensor *tensor.Tensor) error {
	total := 0.0
	norms := make([]float64, len(list))
	for i, t := range list {
		sum := 0.0
		for _, x := range t.Float64s() {
			sum += x * scale * x * scale
		}
		norms[i] = math.Sqrt(sum)
		total += sum
	}
	if !isFinite(total) {
		if err := raise(flag); err != nil {
			return err
		}
	}
	if perTensor != nil {
		if err := perTensor.SetFloat64s(norms); err != nil {
			return err
		}
	}
	return norm.SetFloat64s([]float64{math.Sqrt(total)})
}

// raise sets a flag of one element.
func raise(flag *tensor.Tensor) error { return flag.SetFloat64s([]float64{1}) }
