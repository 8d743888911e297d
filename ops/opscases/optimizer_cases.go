package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/opstest"
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
func optimizerCases[A any](d tensor.DType, lists func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor, args func(s *opstest.Stage, o optimizer) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	add := func(name string, l opstest.Layout, shapes [][]int, edit func(s *opstest.Stage, o *optimizer)) {
		cases = append(cases, opstest.Case[A]{Name: name, Make: func(s *opstest.Stage) A {
			o := optimizer{inv: 0.5, adam: optim.MultiTensorAdamArgs{
				TensorLists: lists(s, l, d, shapes...), LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 3,
				Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
			}}
			edit(s, &o)
			return args(s, o)
		}})
	}
	plain := func(*opstest.Stage, *optimizer) {}
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
		add(l.String(), l, nil, plain)
	}
	for _, mode := range []optim.AdamMode{optim.AdamL2, optim.AdamDecay} {
		for _, corrected := range []bool{false, true} {
			add(fmt.Sprintf("mode=%d/bias_correction=%v", mode, corrected), opstest.Dense, [][]int{{7}, {3, 11}}, func(_ *opstest.Stage, o *optimizer) {
				o.adam.Mode, o.adam.BiasCorrection = mode, corrected
			})
		}
	}
	add("step=1000", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.adam.Step, o.adam.Beta2 = 1000, 0.999 })
	add("step=2000", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.adam.Step, o.adam.Beta2 = 2000, 0.999 })
	add("step=30000", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.adam.Step, o.adam.Beta2 = 30000, 0.9999 })
	add("flag_of_1", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.flag = 1 })
	add("flag_of_2", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.flag = 2 })
	add("scale=3", opstest.Dense, [][]int{{7}}, func(_ *opstest.Stage, o *optimizer) { o.inv = 3 })
	add("no_tensors", opstest.Dense, [][]int{}, plain)
	add("nan_and_inf", opstest.Dense, [][]int{{7}, {5}}, func(_ *opstest.Stage, o *optimizer) {
		o.adam.TensorLists[0][0].Set(math.Inf(1), 3)
		o.adam.TensorLists[0][1].Set(math.NaN(), 4)
	})
	return cases
}

func adamLists(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
	return [][]*tensor.Tensor{list(s, l, d, shapes...), list(s, l, d, shapes...), list(s, l, tensor.F32, shapes...), s.Squares(list(s, l, tensor.F32, shapes...))}
}

func capturableCases(d tensor.DType) []opstest.Case[optim.MultiTensorAdamCapturableArgs] {
	return optimizerCases(d, adamLists, capturable)
}

func capturableMasterCases(d tensor.DType) []opstest.Case[optim.MultiTensorAdamCapturableArgs] {
	return optimizerCases(d, func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
		return append(adamLists(s, l, d, shapes...), list(s, l, tensor.F32, shapes...))
	}, capturable)
}

func capturable(s *opstest.Stage, o optimizer) optim.MultiTensorAdamCapturableArgs {
	a := o.adam
	return optim.MultiTensorAdamCapturableArgs{
		NoopFlag: s.Flag(o.flag), TensorLists: a.TensorLists, LR: s.Values(tensor.F32, float64(a.LR)), Beta1: a.Beta1, Beta2: a.Beta2,
		Epsilon: a.Epsilon, Step: s.Values(tensor.I32, float64(a.Step)), Mode: a.Mode, BiasCorrection: a.BiasCorrection,
		WeightDecay: a.WeightDecay, InvScale: s.Values(tensor.F32, o.inv),
	}
}

func plainAdam(s *opstest.Stage, o optimizer) optim.MultiTensorAdamArgs {
	o.adam.NoopFlag = s.Flag(o.flag)
	return o.adam
}

// remainderCases returns calls whose master weights are random f32 of magnitude 1: p and rem have
// random bits.
func remainderCases(d tensor.DType) []opstest.Case[optim.MultiTensorAdamArgs] {
	return optimizerCases(d, func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
		lists := append(adamLists(s, l, d, shapes...), nil)
		lists[1] = list(s, l, tensor.BF16, shapes...)
		for _, p := range lists[1] {
			rem := s.Out(l, tensor.I16, p.Shape()...)
			s.Seed++
			s.Fill(rem, s.Random(1<<15, p.NumElements()))
			lists[4] = append(lists[4], rem)
		}
		return lists
	}, plainAdam)
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

func adamFP8Cases(d tensor.DType) []opstest.Case[optim.MultiTensorAdamArgs] {
	var cases []opstest.Case[optim.MultiTensorAdamArgs]
	for _, narrow := range []tensor.DType{tensor.F8E4M3, tensor.F8E5M2} {
		of := optimizerCases(d, func(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) [][]*tensor.Tensor {
			lists := append(adamLists(s, l, d, shapes...), list(s, l, tensor.F32, shapes...), nil, nil, nil)
			for i, p := range lists[1] {
				lists[1][i] = s.Out(l, narrow, p.Shape()...)
				lists[5] = append(lists[5], s.Values(tensor.F32, 300)) // saturates E4M3
				lists[6] = append(lists[6], s.Values(tensor.F32, 0.1))
				lists[7] = append(lists[7], s.Out(opstest.Dense, tensor.F32, 1))
			}
			return lists
		}, plainAdam)
		for _, c := range of {
			cases = append(cases, opstest.Case[optim.MultiTensorAdamArgs]{Name: narrow.String() + "/" + c.Name, Make: c.Make})
		}
	}
	return cases
}

func sgdCases(d tensor.DType) []opstest.Case[optim.MultiTensorSGDArgs] {
	var cases []opstest.Case[optim.MultiTensorSGDArgs]
	add := func(name string, l opstest.Layout, shapes [][]int, edit func(s *opstest.Stage, a *optim.MultiTensorSGDArgs)) {
		cases = append(cases, opstest.Case[optim.MultiTensorSGDArgs]{Name: name, Make: func(s *opstest.Stage) optim.MultiTensorSGDArgs {
			a := optim.MultiTensorSGDArgs{
				NoopFlag: s.Flag(0), TensorLists: [][]*tensor.Tensor{list(s, l, d, shapes...), list(s, l, d, shapes...), list(s, l, d, shapes...)},
				WD: 0.1, Momentum: 0.9, Dampening: 0.2, LR: 0.05, Scale: 0.5,
			}
			edit(s, &a)
			return a
		}})
	}
	plain := func(*opstest.Stage, *optim.MultiTensorSGDArgs) {}
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
		add(l.String(), l, nil, plain)
	}
	small := [][]int{{7}, {3, 11}}
	for _, nesterov := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				add(fmt.Sprintf("nesterov=%v/first_run=%v/wd_after_momentum=%v", nesterov, first, after), opstest.Dense, small, func(_ *opstest.Stage, a *optim.MultiTensorSGDArgs) {
					a.Nesterov, a.FirstRun, a.WDAfterMomentum = nesterov, first, after
				})
			}
		}
	}
	add("no_momentum", opstest.Dense, small, func(_ *opstest.Stage, a *optim.MultiTensorSGDArgs) { a.Momentum = 0 })
	add("no_decay", opstest.Dense, small, func(_ *opstest.Stage, a *optim.MultiTensorSGDArgs) { a.WD = 0 })
	add("flag_of_1", opstest.Dense, small, func(s *opstest.Stage, a *optim.MultiTensorSGDArgs) { a.NoopFlag = s.Flag(1) })
	add("flag_of_-1", opstest.Dense, small, func(s *opstest.Stage, a *optim.MultiTensorSGDArgs) { a.NoopFlag = s.Flag(-1) })
	add("no_tensors", opstest.Dense, [][]int{}, plain)
	add("nan_and_inf", opstest.Dense, small, func(_ *opstest.Stage, a *optim.MultiTensorSGDArgs) {
		a.TensorLists[0][0].Set(math.Inf(-1), 2)
		a.TensorLists[1][0].Set(math.NaN(), 3)
	})
	for _, to := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
		add("copy_of_"+to.String(), opstest.Dense, small, func(s *opstest.Stage, a *optim.MultiTensorSGDArgs) {
			a.TensorLists = append(a.TensorLists, list(s, opstest.Dense, to, small...))
		})
	}
	return cases
}

func scaleTensorCases(d tensor.DType) []opstest.Case[optim.MultiTensorScaleTensorArgs] {
	var cases []opstest.Case[optim.MultiTensorScaleTensorArgs]
	for _, c := range scaleCases(d) {
		cases = append(cases, opstest.Case[optim.MultiTensorScaleTensorArgs]{Name: c.Name, Make: func(s *opstest.Stage) optim.MultiTensorScaleTensorArgs {
			a := c.Make(s)
			return optim.MultiTensorScaleTensorArgs{NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, Scale: s.Values(tensor.F32, float64(a.Scale))}
		}})
	}
	return cases
}

func unscaleL2NormCases(d tensor.DType) []opstest.Case[optim.MultiTensorUnscaleL2NormArgs] {
	var cases []opstest.Case[optim.MultiTensorUnscaleL2NormArgs]
	for _, c := range l2normCases(d) {
		for _, inv := range []float64{0.25, -3} {
			cases = append(cases, opstest.Case[optim.MultiTensorUnscaleL2NormArgs]{Name: fmt.Sprintf("%s/inv_scale=%g", c.Name, inv), Make: func(s *opstest.Stage) optim.MultiTensorUnscaleL2NormArgs {
				a := c.Make(s)
				return optim.MultiTensorUnscaleL2NormArgs{
					NoopFlag: a.NoopFlag, TensorLists: a.TensorLists, InvScale: s.Values(tensor.F32, inv), Norm: a.Norm, PerTensor: a.PerTensor,
				}
			}})
		}
	}
	return cases
}
