package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func listShapes() [][]int {
	return [][]int{{1}, {7}, {3, 11}, {0}, {64, 17}, {2000}, {2, 3, 5}}
}

// list returns a tensor of each shape, or of listShapes.
func list(s *opstest.Stage, l opstest.Layout, d tensor.DType, shapes ...[]int) []*tensor.Tensor {
	if shapes == nil {
		shapes = listShapes()
	}
	out := make([]*tensor.Tensor, 0, len(shapes))
	for _, shape := range shapes {
		out = append(out, s.In(l, d, shape...))
	}
	return out
}

func adamCases(d tensor.DType) []opstest.Case[optim.MultiTensorAdamArgs] {
	var cases []opstest.Case[optim.MultiTensorAdamArgs]
	add := func(name string, make func(*opstest.Stage) optim.MultiTensorAdamArgs) {
		cases = append(cases, opstest.Case[optim.MultiTensorAdamArgs]{Name: name, Make: make})
	}
	call := func(s *opstest.Stage, l opstest.Layout, moments tensor.DType, master bool) optim.MultiTensorAdamArgs {
		a := optim.MultiTensorAdamArgs{
			NoopFlag:    s.Flag(0),
			TensorLists: [][]*tensor.Tensor{list(s, l, d), list(s, l, d), list(s, l, moments), s.Squares(list(s, l, moments))},
			LR:          1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Step: 3, Mode: optim.AdamDecay, BiasCorrection: true, WeightDecay: 0.1,
		}
		if master {
			a.TensorLists = append(a.TensorLists, list(s, l, tensor.F32))
		}
		return a
	}
	for _, mode := range []optim.AdamMode{optim.AdamL2, optim.AdamDecay} {
		for _, corrected := range []bool{false, true} {
			for _, master := range []bool{false, true} {
				add(fmt.Sprintf("mode=%d/bias_correction=%v/master=%v", mode, corrected, master), func(s *opstest.Stage) optim.MultiTensorAdamArgs {
					a := call(s, opstest.Dense, tensor.F32, master)
					a.Mode, a.BiasCorrection = mode, corrected
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *optim.MultiTensorAdamArgs)) {
		add(name, func(s *opstest.Stage) optim.MultiTensorAdamArgs {
			a := call(s, opstest.Dense, tensor.F32, false)
			change(s, &a)
			return a
		})
	}
	for _, step := range []int{1, 10, 2000, 100000} {
		edit(fmt.Sprintf("step=%d", step), func(_ *opstest.Stage, a *optim.MultiTensorAdamArgs) { a.Step, a.Beta2 = step, 0.999 })
	}
	edit("first_step_from_zero", func(s *opstest.Stage, a *optim.MultiTensorAdamArgs) {
		a.Step = 1
		for _, list := range a.TensorLists[2:] {
			for _, t := range list {
				s.Fill(t, make([]float64, t.NumElements()))
			}
		}
	})
	edit("without_decay", func(_ *opstest.Stage, a *optim.MultiTensorAdamArgs) { a.WeightDecay = 0 })
	edit("large_epsilon", func(_ *opstest.Stage, a *optim.MultiTensorAdamArgs) { a.Epsilon = 0.5 })
	edit("flag_is_ignored", func(s *opstest.Stage, a *optim.MultiTensorAdamArgs) { a.NoopFlag = s.Flag(1) })
	edit("empty_lists", func(_ *opstest.Stage, a *optim.MultiTensorAdamArgs) { a.TensorLists = make([][]*tensor.Tensor, 4) })
	edit("nan_and_inf", func(_ *opstest.Stage, a *optim.MultiTensorAdamArgs) {
		a.TensorLists[0][1].Set(math.Inf(1), 3)
		a.TensorLists[0][5].Set(math.NaN(), 1999)
	})
	add("moments_of_"+d.String(), func(s *opstest.Stage) optim.MultiTensorAdamArgs { return call(s, opstest.Dense, d, true) })
	add("padded", func(s *opstest.Stage) optim.MultiTensorAdamArgs { return call(s, opstest.Padded, tensor.F32, true) })
	add("gradients_of_f32", func(s *opstest.Stage) optim.MultiTensorAdamArgs {
		a := call(s, opstest.Dense, tensor.F32, true)
		a.TensorLists[0] = list(s, opstest.Dense, tensor.F32)
		return a
	})
	return cases
}

func l2normCases(d tensor.DType) []opstest.Case[optim.MultiTensorL2NormArgs] {
	var cases []opstest.Case[optim.MultiTensorL2NormArgs]
	add := func(name string, flag float64, per bool, list func(s *opstest.Stage) []*tensor.Tensor) {
		cases = append(cases, opstest.Case[optim.MultiTensorL2NormArgs]{Name: name, Make: func(s *opstest.Stage) optim.MultiTensorL2NormArgs {
			a := optim.MultiTensorL2NormArgs{
				NoopFlag: s.Flag(flag), TensorLists: [][]*tensor.Tensor{list(s)}, Norm: s.Out(opstest.Dense, tensor.F32, 1),
			}
			if per {
				a.PerTensor = s.Out(opstest.Dense, tensor.F32, len(a.TensorLists[0]))
			}
			return a
		}})
	}
	plain := func(s *opstest.Stage) []*tensor.Tensor { return list(s, opstest.Dense, d) }
	with := func(v float64) func(s *opstest.Stage) []*tensor.Tensor {
		return func(s *opstest.Stage) []*tensor.Tensor {
			list := plain(s)
			list[4].Set(v, 63, 16)
			return list
		}
	}
	for _, per := range []bool{false, true} {
		suffix := fmt.Sprintf("/per_tensor=%v", per)
		add("plain"+suffix, 0, per, plain)
		add("padded"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor { return list(s, opstest.Padded, d) })
		add("turned"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor { return list(s, opstest.Turned, d) })
		add("long"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor { return list(s, opstest.Dense, d, []int{5000}, []int{3}) })
		add("no_tensors"+suffix, 0, per, func(*opstest.Stage) []*tensor.Tensor { return nil })
		add("no_elements"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor { return list(s, opstest.Dense, d, []int{0}, []int{3, 0}) })
		add("zeros"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor { return []*tensor.Tensor{s.Values(d, 0, 0, 0)} })
		add("flag_stays_set"+suffix, 1, per, plain)
		add("nan"+suffix, 0, per, with(math.NaN()))
		add("inf"+suffix, 0, per, with(math.Inf(-1)))
		add("mixed_dtypes"+suffix, 0, per, func(s *opstest.Stage) []*tensor.Tensor {
			return append(plain(s), s.In(opstest.Dense, tensor.F32, 9), s.In(opstest.Dense, tensor.BF16, 9))
		})
	}
	return cases
}

func scaleCases(d tensor.DType) []opstest.Case[optim.MultiTensorScaleArgs] {
	var cases []opstest.Case[optim.MultiTensorScaleArgs]
	add := func(name string, flag float64, scale float32, lists func(s *opstest.Stage) (in, out []*tensor.Tensor)) {
		cases = append(cases, opstest.Case[optim.MultiTensorScaleArgs]{Name: name, Make: func(s *opstest.Stage) optim.MultiTensorScaleArgs {
			in, out := lists(s)
			return optim.MultiTensorScaleArgs{NoopFlag: s.Flag(flag), TensorLists: [][]*tensor.Tensor{in, out}, Scale: scale}
		}})
	}
	outputs := func(s *opstest.Stage, l opstest.Layout, d tensor.DType) []*tensor.Tensor {
		var out []*tensor.Tensor
		for _, shape := range listShapes() {
			out = append(out, s.Out(l, d, shape...))
		}
		return out
	}
	plain := func(s *opstest.Stage) (in, out []*tensor.Tensor) {
		return list(s, opstest.Dense, d), outputs(s, opstest.Dense, d)
	}
	with := func(v float64) func(s *opstest.Stage) (in, out []*tensor.Tensor) {
		return func(s *opstest.Stage) (in, out []*tensor.Tensor) {
			in, out = plain(s)
			in[5].Set(v, 1999)
			return in, out
		}
	}
	add("plain", 0, 0.3, plain)
	add("scale=0", 0, 0, plain)
	add("flag_stays_set", 1, 2, plain)
	add("nan", 0, 2, with(math.NaN()))
	add("inf", 0, 2, with(math.Inf(1)))
	add("inf_times_zero", 0, 0, with(math.Inf(-1)))
	if d != tensor.F64 { // which f32 arithmetic may overflow
		add("overflow_is_no_input", 0, 3e38, with(1e4))
	}
	add("in_place", 0, -1.7, func(s *opstest.Stage) (in, out []*tensor.Tensor) {
		in = list(s, opstest.Dense, d)
		return in, in
	})
	for _, l := range []opstest.Layout{opstest.Padded, opstest.Turned} {
		add(l.String(), 0, 0.3, func(s *opstest.Stage) (in, out []*tensor.Tensor) { return list(s, l, d), outputs(s, l, d) })
	}
	for _, to := range opstest.ComputeDTypes() {
		add("into_"+to.String(), 0, 1.3, func(s *opstest.Stage) (in, out []*tensor.Tensor) {
			return list(s, opstest.Dense, d), outputs(s, opstest.Dense, to)
		})
	}
	add("no_tensors", 0, 1, func(*opstest.Stage) (in, out []*tensor.Tensor) { return nil, nil })
	return cases
}
