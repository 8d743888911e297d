package reference

import (
	"math"

	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// multiTensorAdam follows ops.MultiTensorAdam.
func multiTensorAdam(a ops.MultiTensorAdamArgs) error {
	for i := range a.TensorLists[0] {
		weights := a.TensorLists[1][i]
		if len(a.TensorLists) == 5 {
			weights = a.TensorLists[4][i]
		}
		if err := adamStep(a, a.TensorLists[0][i], weights, a.TensorLists[2][i], a.TensorLists[3][i]); err != nil {
			return err
		}
		if len(a.TensorLists) == 5 {
			if err := a.TensorLists[1][i].SetFloat64s(weights.Float64s()); err != nil {
				return err
			}
		}
	}
	return nil
}

// adamStep updates the weights and both moments of one tensor.
func adamStep(a ops.MultiTensorAdamArgs, grad, weights, first, second *tensor.Tensor) error {
	lr, beta1, beta2 := float64(a.LR), float64(a.Beta1), float64(a.Beta2)
	eps, decay := float64(a.Epsilon), float64(a.WeightDecay)
	c1, c2 := 1.0, 1.0
	if a.BiasCorrection {
		c1 = 1 - math.Pow(beta1, float64(a.Step))
		c2 = 1 - math.Pow(beta2, float64(a.Step))
	}
	g, p, m, v := grad.Float64s(), weights.Float64s(), first.Float64s(), second.Float64s()
	for i := range p {
		if a.Mode == ops.AdamL2 {
			g[i] += decay * p[i]
		}
		m[i] = beta1*m[i] + (1-beta1)*g[i]
		v[i] = beta2*v[i] + (1-beta2)*g[i]*g[i]
		update := m[i] / c1 / (math.Sqrt(v[i]/c2) + eps)
		if a.Mode == ops.AdamDecay {
			update += decay * p[i]
		}
		p[i] -= lr * update
	}
	if err := weights.SetFloat64s(p); err != nil {
		return err
	}
	if err := first.SetFloat64s(m); err != nil {
		return err
	}
	return second.SetFloat64s(v)
}

// multiTensorScale follows ops.MultiTensorScale.
func multiTensorScale(a ops.MultiTensorScaleArgs) error {
	for i, in := range a.TensorLists[0] {
		v := in.Float64s()
		for j, x := range v {
			if !isFinite(x) {
				if err := raise(a.NoopFlag); err != nil {
					return err
				}
			}
			v[j] = x * float64(a.Scale)
		}
		if err := a.TensorLists[1][i].SetFloat64s(v); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorL2Norm follows ops.MultiTensorL2Norm.
func multiTensorL2Norm(a ops.MultiTensorL2NormArgs) error {
	total := 0.0
	norms := make([]float64, len(a.TensorLists[0]))
	for i, t := range a.TensorLists[0] {
		sum := 0.0
		for _, x := range t.Float64s() {
			sum += x * x
		}
		norms[i] = math.Sqrt(sum)
		total += sum
	}
	if !isFinite(total) {
		if err := raise(a.NoopFlag); err != nil {
			return err
		}
	}
	if a.PerTensor != nil {
		if err := a.PerTensor.SetFloat64s(norms); err != nil {
			return err
		}
	}
	return a.Norm.SetFloat64s([]float64{math.Sqrt(total)})
}

// raise sets a flag of one element.
func raise(flag *tensor.Tensor) error { return flag.SetFloat64s([]float64{1}) }

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
