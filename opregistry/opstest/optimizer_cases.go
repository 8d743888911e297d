package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// optimizer is one call of an Adam op of any kind.
type optimizer struct {
	adam optim.MultiTensorAdamArgs
	flag float64
	inv  float64 // gradient scale
}

// optimizerCases returns the cases that every Adam op has. lists makes g, p, m, v and the other
// lists of the op.
func optimizerCases[A any](d tensor.DType, lists func(s *stage, l layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor, args func(s *stage, o optimizer) A) []testCase[A] {
	var cases []testCase[A]
	add := func(name string, l layout, shapes [][]int, edit func(s *stage, o *optimizer)) {
		cases = append(cases, testCase[A]{name, func(s *stage) A {
			o := optimizer{inv: 0.5, adam: optim.MultiTensorAdamArgs{
				TensorLists: lists(s, l, d, shapes...), LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 3,
				Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
			}}
			edit(s, &o)
			return args(s, o)
		}})
	}
	plain := func(*stage, *optimizer) {}
	for _, l := range []layout{dense, padded, turned} {
		add(l.String(), l, nil, plain)
	}
	for _, mode := range []optim.AdamMode{optim.AdamL2, optim.AdamDecay} {
		for _, corrected := range []bool{false, true} {
			add(fmt.Sprintf("mode=%d/bias_correction=%v", mode, corrected), dense, [][]int{{7}, {3, 11}}, func(_ *stage, o *optimizer) {
				o.adam.Mode, o.adam.BiasCorrection = mode, corrected
			})
		}
	}
	add("step=1000", dense, [][]int{{7}}, func(_ *stage, o *optimizer) { o.adam.Step, o.adam.Beta2 = 1000, 0.999 })
	add("flag_of_1", dense, [][]int{{7}}, func(_ *stage, o *optimizer) { o.flag = 1 })
	add("flag_of_2", dense, [][]int{{7}}, func(_ *stage, o *optimizer) { o.flag = 2 })
	add("scale=3", dense, [][]int{{7}}, func(_ *stage, o *optimizer) { o.inv = 3 })
	add("no_tensors", dense, [][]int{}, plain)
	add("nan_and_inf", dense, [][]int{{7}, {5}}, func(_ *stage, o *optimizer) {
		o.adam.TensorLists[0][0].Set(math.Inf(1), 3)
		o.adam.TensorLists[0][1].Set(math.NaN(), 4)
	})
	return cases
}

func (s *stage) adamLists(l layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
	return [][]*tensor.Tensor{s.list(l, d, shapes...), s.list(l, d, shapes...), s.list(l, tensor.F32, shapes...), s.squares(s.list(l, tensor.F32, shapes...))}
}

func capturableCases(d tensor.DType) []testCase[optim.MultiTensorAdamCapturableArgs] {
	return optimizerCases(d, (*stage).adamLists, (*stage).capturable)
}

func capturableMasterCases(d tensor.DType) []testCase[optim.MultiTensorAdamCapturableArgs] {
	return optimizerCases(d, func(s *stage, l layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
		return append(s.adamLists(l, d, shapes...), s.list(l, tensor.F32, shapes...))
	}, (*stage).capturable)
}

func (s *stage) capturable(o optimizer) optim.MultiTensorAdamCapturableArgs {
	a := o.adam
	return optim.MultiTensorAdamCapturableArgs{
		NoopFlag: s.flag(o.flag), TensorLists: a.TensorLists, LR: s.values(tensor.F32, float64(a.LR)), Beta1: a.Beta1, Beta2: a.Beta2,
		Epsilon: a.Epsilon, Step: s.values(tensor.I32, float64(a.Step)), Mode: a.Mode, BiasCorrection: a.BiasCorrection,
		WeightDecay: a.WeightDecay, InvScale: s.values(tensor.F32, o.inv),
	}
}

func (s *stage) plainAdam(o optimizer) optim.MultiTensorAdamArgs {
	o.adam.NoopFlag = s.flag(o.flag)
	return o.adam
}

// remainderCases returns calls whose master weights are random f32 of magnitude 1: p and rem have
// random bits.
func remainderCases(d tensor.DType) []testCase[optim.MultiTensorAdamArgs] {
	return optimizerCases(d, func(s *stage, l layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
		lists := append(s.adamLists(l, d, shapes...), nil)
		lists[1] = s.list(l, tensor.BF16, shapes...)
		for _, p := range lists[1] {
			rem := s.out(l, tensor.I16, p.Shape()...)
			s.seed++
			s.fill(rem, s.random(1<<15, p.NumElements()))
			lists[4] = append(lists[4], rem)
		}
		return lists
	}, (*stage).plainAdam)
}

// random returns n random integers in (-limit, limit).
func (s *stage) random(limit float64, n int) []float64 {
	s.t.Helper()
	v := s.in(dense, tensor.F64, n).Float64s()
	for i := range v {
		v[i] = math.Trunc(v[i] * limit)
	}
	return v
}

// remainderValues assembles the master weights.
func remainderValues(a optim.MultiTensorAdamArgs) []opregistry.Operand {
	var out []opregistry.Operand
	for i, p := range a.TensorLists[1] {
		high, low := p.Float64s(), a.TensorLists[4][i].Float64s()
		master := make([]float32, len(high))
		for j, v := range high {
			master[j] = math.Float32frombits(uint32(int32(math.Float32bits(float32(v))) + int32(low[j])))
		}
		x, err := tensor.FromSlice(master, p.Shape()...)
		if err != nil {
			panic("BUG: opstest: " + err.Error())
		}
		for l, t := range []*tensor.Tensor{x, a.TensorLists[2][i], a.TensorLists[3][i]} {
			out = append(out, opregistry.Operand{Name: fmt.Sprintf("%s of tensor %d", [...]string{"p and remainder", "m", "v"}[l], i), Tensor: t, Access: opregistry.AccessUpdate})
		}
	}
	return out
}

func adamFP8Cases(d tensor.DType) []testCase[optim.MultiTensorAdamArgs] {
	var cases []testCase[optim.MultiTensorAdamArgs]
	for _, narrow := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
		of := optimizerCases(d, func(s *stage, l layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
			lists := append(s.adamLists(l, d, shapes...), s.list(l, tensor.F32, shapes...), nil, nil, nil)
			for i, p := range lists[1] {
				lists[1][i] = s.out(l, narrow, p.Shape()...)
				lists[5] = append(lists[5], s.values(tensor.F32, 300)) // saturates E4M3
				lists[6] = append(lists[6], s.values(tensor.F32, 0.1))
				lists[7] = append(lists[7], s.out(dense, tensor.F32, 1))
			}
			return lists
		}, (*stage).plainAdam)
		for _, c := range of {
			cases = append(cases, testCase[optim.MultiTensorAdamArgs]{narrow.String() + "/" + c.name, c.make})
		}
	}
	return cases
}

func sgdCases(d tensor.DType) []testCase[optim.MultiTensorSGDArgs] {
	var cases []testCase[optim.MultiTensorSGDArgs]
	add := func(name string, l layout, shapes [][]int, edit func(s *stage, a *optim.MultiTensorSGDArgs)) {
		cases = append(cases, testCase[optim.MultiTensorSGDArgs]{name, func(s *stage) optim.MultiTensorSGDArgs {
			a := optim.MultiTensorSGDArgs{
				NoopFlag: s.flag(0), TensorLists: [][]*tensor.Tensor{s.list(l, d, shapes...), s.list(l, d, shapes...), s.list(l, d, shapes...)},
				WD: 0.1, Momentum: 0.9, Dampening: 0.2, LR: 0.05, Scale: 0.5,
			}
			edit(s, &a)
			return a
		}})
	}
	plain := func(*stage, *optim.MultiTensorSGDArgs) {}
	for _, l := range []layout{dense, padded, turned} {
		add(l.String(), l, nil, plain)
	}
	small := [][]int{{7}, {3, 11}}
	for _, nesterov := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				add(fmt.Sprintf("nesterov=%v/first_run=%v/wd_after_momentum=%v", nesterov, first, after), dense, small, func(_ *stage, a *optim.MultiTensorSGDArgs) {
					a.Nesterov, a.FirstRun, a.WDAfterMomentum = nesterov, first, after
				})
			}
		}
	}
	add("no_momentum", dense, small, func(_ *stage, a *optim.MultiTensorSGDArgs) { a.Momentum = 0 })
	add("no_decay", dense, small, func(_ *stage, a *optim.MultiTensorSGDArgs) { a.WD = 0 })
	add("flag_of_1", dense, small, func(s *stage, a *optim.MultiTensorSGDArgs) { a.NoopFlag = s.flag(1) })
	add("flag_of_-1", dense, small, func(s *stage, a *optim.MultiTensorSGDArgs) { a.NoopFlag = s.flag(-1) })
	add("no_tensors", dense, [][]int{}, plain)
	add("nan_and_inf", dense, small, func(_ *stage, a *optim.MultiTensorSGDArgs) {
		a.TensorLists[0][0].Set(math.Inf(-1), 2)
		a.TensorLists[1][0].Set(math.NaN(), 3)
	})
	for _, to := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
		add("copy_of_"+to.String(), dense, small, func(s *stage, a *optim.MultiTensorSGDArgs) {
			a.TensorLists = append(a.TensorLists, s.list(dense, to, small...))
		})
	}
	return cases
}

func scaleTensorCases(d tensor.DType) []testCase[optim.MultiTensorScaleTensorArgs] {
	var cases []testCase[optim.MultiTensorScaleTensorArgs]
	for _, c := range scaleCases(d) {
		cases = append(cases, testCase[optim.MultiTensorScaleTensorArgs]{c.name, func(s *stage) optim.MultiTensorScaleTensorArgs {
			a := c.make(s)
			return optim.MultiTensorScaleTensorArgs{NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, Scale: s.values(tensor.F32, float64(a.Scale))}
		}})
	}
	return cases
}

func unscaleL2NormCases(d tensor.DType) []testCase[optim.MultiTensorUnscaleL2NormArgs] {
	var cases []testCase[optim.MultiTensorUnscaleL2NormArgs]
	for _, c := range l2normCases(d) {
		for _, inv := range []float64{0.25, -3} {
			cases = append(cases, testCase[optim.MultiTensorUnscaleL2NormArgs]{fmt.Sprintf("%s/inv_scale=%g", c.name, inv), func(s *stage) optim.MultiTensorUnscaleL2NormArgs {
				a := c.make(s)
				return optim.MultiTensorUnscaleL2NormArgs{
					NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, InvScale: s.values(tensor.F32, inv), Norm: a.Norm, PerTensor: a.PerTensor,
				}
			}})
		}
	}
	return cases
}
