package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// adam holds the numbers of an Adam step.
type adam struct {
	lr, beta1, beta2, eps, decay float64
	c1, c2                       float64 // bias corrections
	mode                         optim.AdamMode
}

func newAdam(lr float64, beta1, beta2, eps, decay float32, step float64, mode optim.AdamMode, corrected bool) adam {
	s := adam{lr: lr, beta1: float64(beta1), beta2: float64(beta2), eps: float64(eps), decay: float64(decay), c1: 1, c2: 1, mode: mode}
	if corrected {
		s.c1 = 1 - math.Pow(s.beta1, step)
		s.c2 = 1 - math.Pow(s.beta2, step)
	}
	return s
}

func plainAdam(a optim.MultiTensorAdamArgs) adam {
	return newAdam(float64(a.LR), a.Beta1, a.Beta2, a.Epsilon, a.WeightDecay, float64(a.Step), a.Mode, a.BiasCorrection)
}

// step updates weights by gradients, which it may overwrite, and stores the moments.
func (s adam) step(g, p []float64, first, second *tensor.Tensor) error {
	m, v := first.Float64s(), second.Float64s()
	for i := range p {
		if s.mode == optim.AdamL2 {
			g[i] += s.decay * p[i]
		}
		m[i] = s.beta1*m[i] + (1-s.beta1)*g[i]
		v[i] = s.beta2*v[i] + (1-s.beta2)*g[i]*g[i]
		update := m[i] / s.c1 / (math.Sqrt(v[i]/s.c2) + s.eps)
		if s.mode == optim.AdamDecay {
			update += s.decay * p[i]
		}
		p[i] -= s.lr * update
	}
	if err := first.SetFloat64s(m); err != nil {
		return err
	}
	return second.SetFloat64s(v)
}

// stepWithMaster updates the weights of list entry i by g. With a fifth list it updates the master
// weights there, and the weights become their rounded copy.
func (s adam) stepWithMaster(lists [][]*tensor.Tensor, i int, g []float64) error {
	weights := lists[1][i]
	if len(lists) > 4 {
		weights = lists[4][i]
	}
	p := weights.Float64s()
	if err := s.step(g, p, lists[2][i], lists[3][i]); err != nil {
		return err
	}
	if err := weights.SetFloat64s(p); err != nil || len(lists) == 4 {
		return err
	}
	return lists[1][i].SetFloat64s(weights.Float64s())
}

// multiTensorAdam implements optim.MultiTensorAdam.
func multiTensorAdam(a optim.MultiTensorAdamArgs) error {
	for i, g := range a.TensorLists[0] {
		if err := plainAdam(a).stepWithMaster(a.TensorLists, i, g.Float64s()); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorAdamCapturable implements optim.MultiTensorAdamCapturable and, with a
// fifth list, optim.MultiTensorAdamCapturableMaster.
func multiTensorAdamCapturable(a optim.MultiTensorAdamCapturableArgs) error {
	if number(a.NoopFlag) == 1 {
		return nil
	}
	s := newAdam(number(a.LR), a.Beta1, a.Beta2, a.Epsilon, a.WeightDecay, number(a.Step), a.Mode, a.BiasCorrection)
	inv := number(a.InvScale)
	for i, grad := range a.TensorLists[0] {
		g := grad.Float64s()
		for j := range g {
			g[j] *= inv
		}
		if err := grad.SetFloat64s(g); err != nil {
			return err
		}
		if err := s.stepWithMaster(a.TensorLists, i, g); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorAdamFP8 implements optim.MultiTensorAdamFP8.
func multiTensorAdamFP8(a optim.MultiTensorAdamArgs) error {
	for i, g := range a.TensorLists[0] {
		at := func(list int) *tensor.Tensor { return a.TensorLists[list][i] }
		master := at(4)
		p := master.Float64s()
		if err := plainAdam(a).step(g.Float64s(), p, at(2), at(3)); err != nil {
			return err
		}
		if err := master.SetFloat64s(p); err != nil {
			return err
		}
		if err := castDelayed(at(1), master.Float64s(), number(at(5))); err != nil {
			return err
		}
		if err := at(6).SetFloat64s([]float64{max(number(at(6)), amaxOf(master.Float64s()))}); err != nil {
			return err
		}
		if err := at(7).SetFloat64s([]float64{1 / number(at(5))}); err != nil {
			return err
		}
	}
	return nil
}

// multiTensorAdamParamRemainder implements optim.MultiTensorAdamParamRemainder.
func multiTensorAdamParamRemainder(a optim.MultiTensorAdamArgs) error {
	for i, g := range a.TensorLists[0] {
		high, low := a.TensorLists[1][i], a.TensorLists[4][i]
		bits, rest := patterns(high), low.Float64s()
		p := make([]float64, len(bits))
		for j := range p {
			p[j] = float64(math.Float32frombits(uint32(int32(bits[j])<<16 + int32(rest[j]))))
		}
		if err := plainAdam(a).step(g.Float64s(), p, a.TensorLists[2][i], a.TensorLists[3][i]); err != nil {
			return err
		}
		for j, v := range p {
			whole := math.Float32bits(float32(v))
			rem := int16(whole)
			bits[j], rest[j] = tensor.BFloat16(whole>>16), float64(rem)
			if rem < 0 {
				bits[j]++
			}
		}
		if err := setPatterns(high, bits); err != nil {
			return err
		}
		if err := low.SetFloat64s(rest); err != nil {
			return err
		}
	}
	return nil
}

// patterns returns the elements of a bf16 tensor bit for bit.
func patterns(t *tensor.Tensor) []tensor.BFloat16 {
	bits := make([]tensor.BFloat16, t.NumElements())
	flat, err := tensor.FromSlice(bits, t.Shape()...)
	if err == nil {
		err = flat.CopyFrom(t)
	}
	if err != nil {
		panic("BUG: reference: " + err.Error())
	}
	return bits
}

func setPatterns(t *tensor.Tensor, bits []tensor.BFloat16) error {
	flat, err := tensor.FromSlice(bits, t.Shape()...)
	if err != nil {
		return err
	}
	return t.CopyFrom(flat)
}

// multiTensorSGD implements optim.MultiTensorSGD.
func multiTensorSGD(a optim.MultiTensorSGDArgs) error {
	if number(a.NoopFlag) != 0 {
		return nil
	}
	wd, momentum := float64(a.WD), float64(a.Momentum)
	for i, grad := range a.TensorLists[0] {
		weights, velocity := a.TensorLists[1][i], a.TensorLists[2][i]
		g, p, mom := grad.Float64s(), weights.Float64s(), velocity.Float64s()
		for j := range p {
			d := g[j] * float64(a.Scale)
			if wd != 0 && !a.WDAfterMomentum {
				d += wd * p[j]
			}
			if momentum != 0 {
				if a.FirstRun {
					mom[j] = d
				} else {
					mom[j] = momentum*mom[j] + (1-float64(a.Dampening))*d
				}
				if a.Nesterov {
					d += momentum * mom[j]
				} else {
					d = mom[j]
				}
			}
			if wd != 0 && a.WDAfterMomentum {
				d += wd * p[j]
			}
			p[j] -= float64(a.LR) * d
		}
		if err := weights.SetFloat64s(p); err != nil {
			return err
		}
		if momentum != 0 {
			if err := velocity.SetFloat64s(mom); err != nil {
				return err
			}
		}
		if len(a.TensorLists) == 4 {
			if err := a.TensorLists[3][i].SetFloat64s(p); err != nil {
				return err
			}
		}
	}
	return nil
}
