package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// outputLayer is the shape of an output layer: tokens, hidden size and classes.
type outputLayer struct{ rows, hidden, vocab int }

func (o outputLayer) String() string { return fmt.Sprintf("%dx%dx%d", o.rows, o.hidden, o.vocab) }

func outputLayers() []outputLayer {
	return []outputLayer{{1, 1, 1}, {3, 4, 2}, {5, 7, 33}, {9, 16, 130}, {34, 24, 257}, {0, 5, 3}, {4, 0, 3}}
}

// linearEntropyFwdArgs are arguments whose logits have a deviation near 3.
func linearEntropyFwdArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, o outputLayer) loss.LinearCrossEntropyFwdArgs {
	return loss.LinearCrossEntropyFwdArgs{
		Hidden: s.Scaled(3/math.Sqrt(float64(max(o.hidden, 1))), l, d, o.rows, o.hidden), Weight: s.In(l, d, o.vocab, o.hidden),
		Targets: targets(s, index, o.rows, o.vocab), Losses: s.Out(opstest.Dense, tensor.F32, o.rows), LSE: s.Out(opstest.Dense, tensor.F32, o.rows),
		IgnoreIndex: ignored, Saved: new(opregistry.Saved),
	}
}

// withGradients asks for the gradients, too.
func withGradients(s *opstest.Stage, l opstest.Layout, d tensor.DType, a loss.LinearCrossEntropyFwdArgs) loss.LinearCrossEntropyFwdArgs {
	a.DLosses = s.In(opstest.Dense, tensor.F32, a.Losses.NumElements())
	a.DHidden, a.DWeight = s.Out(l, d, a.Hidden.Shape()...), s.Out(l, d, a.Weight.Shape()...)
	return a
}

func linearEntropyFwdCases(d tensor.DType) []opstest.Case[loss.LinearCrossEntropyFwdArgs] {
	type args = loss.LinearCrossEntropyFwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, o := range outputLayers() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				name := fmt.Sprintf("%v/%v/%v", o, l, index)
				add(name, func(s *opstest.Stage) args { return linearEntropyFwdArgs(s, l, d, index, o) })
				add(name+"/gradients", func(s *opstest.Stage) args {
					return withGradients(s, l, d, linearEntropyFwdArgs(s, l, d, index, o))
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := linearEntropyFwdArgs(s, opstest.Dense, d, tensor.I32, outputLayer{5, 6, 12})
			change(s, &a)
			return a
		})
	}
	edit("ignore_index_inside_the_vocabulary", func(s *opstest.Stage, a *args) {
		a.Targets, a.IgnoreIndex = s.Values(tensor.I32, 0, 3, 0, 11, 1), 0
		*a = withGradients(s, opstest.Dense, d, *a)
	})
	edit("all_ignored", func(s *opstest.Stage, a *args) {
		a.Targets = s.Values(tensor.I32, ignored, ignored, ignored, ignored, ignored)
		*a = withGradients(s, opstest.Dense, d, *a)
	})
	edit("part_of_the_vocabulary", func(s *opstest.Stage, a *args) {
		a.Targets, a.First, a.Classes = s.Values(tensor.I32, 0, 20, 23, 31, ignored), 20, 40
	})
	edit("accumulate", func(s *opstest.Stage, a *args) {
		*a = withGradients(s, opstest.Dense, d, *a)
		a.DWeight, a.Accumulate = s.In(opstest.Dense, d, 12, 6), true
	})
	edit("frozen_weight", func(s *opstest.Stage, a *args) {
		*a = withGradients(s, opstest.Dense, d, *a)
		a.DWeight = nil
	})
	edit("sure_targets", func(s *opstest.Stage, a *args) {
		*a = withGradients(s, opstest.Dense, d, *a)
		scale(s, a.Weight, 8)
	})
	edit("infinite_lse", func(s *opstest.Stage, a *args) { a.Hidden.Set(math.Inf(1), 1, 4) })
	edit("nan", func(s *opstest.Stage, a *args) { a.Hidden.Set(math.NaN(), 1, 4) })
	return cases
}

// scale multiplies every element by f.
func scale(s *opstest.Stage, x *tensor.Tensor, f float64) {
	v := x.Float64s()
	for i := range v {
		v[i] *= f
	}
	s.Fill(x, v)
}

func linearEntropyBwdArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, o outputLayer) loss.LinearCrossEntropyBwdArgs {
	f := withGradients(s, l, d, linearEntropyFwdArgs(s, l, d, index, o))
	a := loss.LinearCrossEntropyBwdArgs{
		Hidden: f.Hidden, Weight: f.Weight, Targets: f.Targets, LSE: f.LSE, DLosses: f.DLosses, DHidden: f.DHidden, DWeight: f.DWeight,
		IgnoreIndex: ignored, Saved: f.Saved,
	}
	saveLinearLSE(s, a, 0)
	return a
}

// saveLinearLSE writes the log-sum-exp that the documentation of linear_cross_entropy_fwd defines,
// of the logits and of other classes whose log-sum-exp is that of more exponentials of 0.
func saveLinearLSE(s *opstest.Stage, a loss.LinearCrossEntropyBwdArgs, more int) {
	hidden, weight, h := a.Hidden.Float64s(), a.Weight.Float64s(), a.Weight.Shape().Cols()
	lse := make([]float64, a.LSE.NumElements())
	for i := range lse {
		sum := float64(more)
		for v := range a.Weight.Shape()[0] {
			logit := 0.0
			for j := range h {
				logit += hidden[i*h+j] * weight[v*h+j]
			}
			sum += math.Exp(logit)
		}
		lse[i] = math.Log(sum)
	}
	s.Fill(a.LSE, lse)
}

// linearEntropyRefresh replaces the log-sum-exp by what a forward impl saves.
func linearEntropyRefresh(t tensortest.TB, x *opregistry.Exec, a loss.LinearCrossEntropyBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	if a.Classes != 0 {
		return nil // lse is that of other parts of the vocabulary, too
	}
	s := &opstest.Stage{T: t}
	return opstest.RunForward(t, x, loss.LinearCrossEntropyFwd, forward, loss.LinearCrossEntropyFwdArgs{
		Hidden: a.Hidden, Weight: a.Weight, Targets: a.Targets, Losses: s.Out(opstest.Dense, tensor.F32, a.LSE.NumElements()), LSE: a.LSE,
		IgnoreIndex: a.IgnoreIndex, Saved: a.Saved,
	})
}

func linearEntropyBwdCases(d tensor.DType) []opstest.Case[loss.LinearCrossEntropyBwdArgs] {
	type args = loss.LinearCrossEntropyBwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, o := range outputLayers() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				add(fmt.Sprintf("%v/%v/%v", o, l, index), func(s *opstest.Stage) args { return linearEntropyBwdArgs(s, l, d, index, o) })
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := linearEntropyBwdArgs(s, opstest.Dense, d, tensor.I32, outputLayer{5, 6, 12})
			change(s, &a)
			return a
		})
	}
	edit("ignore_index_inside_the_vocabulary", func(s *opstest.Stage, a *args) {
		a.Targets, a.IgnoreIndex = s.Values(tensor.I32, 0, 3, 0, 11, 1), 0
	})
	edit("part_of_the_vocabulary", func(s *opstest.Stage, a *args) {
		a.Targets, a.First, a.Classes = s.Values(tensor.I32, 0, 20, 23, 31, ignored), 20, 40
		saveLinearLSE(s, *a, 28)
	})
	edit("accumulate", func(s *opstest.Stage, a *args) { a.DWeight, a.Accumulate = s.In(opstest.Dense, d, 12, 6), true })
	edit("frozen_weight", func(_ *opstest.Stage, a *args) { a.DWeight = nil })
	edit("large_logits", func(s *opstest.Stage, a *args) {
		scale(s, a.Weight, 8)
		saveLinearLSE(s, *a, 0)
	})
	return cases
}

func linearEntropyGradCases() []opstest.GradCase {
	type (
		fwd = loss.LinearCrossEntropyFwdArgs
		bwd = loss.LinearCrossEntropyBwdArgs
	)
	return []opstest.GradCase{opstest.NewGradCase("with_ignored_rows", loss.LinearCrossEntropyFwd, loss.LinearCrossEntropyBwd,
		func(s *opstest.Stage) opstest.Derivation[fwd, bwd] {
			b := linearEntropyBwdArgs(s, opstest.Dense, tensor.F64, tensor.I64, outputLayer{4, 3, 7})
			rows := b.LSE.NumElements()
			f := fwd{
				Hidden: b.Hidden, Weight: b.Weight, Targets: b.Targets, Losses: s.Out(opstest.Dense, tensor.F32, rows), LSE: s.Out(opstest.Dense, tensor.F32, rows),
				IgnoreIndex: b.IgnoreIndex, Saved: b.Saved,
			}
			return opstest.Derivation[fwd, bwd]{
				Forward: []fwd{f}, Backward: []bwd{b}, Y: f.Losses, DY: b.DLosses,
				Wrt: []opstest.Derivative{{Name: "hidden", X: b.Hidden, DX: b.DHidden}, {Name: "weight", X: b.Weight, DX: b.DWeight}}, Refresh: linearEntropyRefresh,
			}
		})}
}

// linearEntropyFwdModels and linearEntropyBwdModels are the calls of output layers of models. They
// are never whole: the oracle would compute three products of that size.
func linearEntropyFwdModels(d tensor.DType, _ bool) []opstest.Case[loss.LinearCrossEntropyFwdArgs] {
	return sized[loss.LinearCrossEntropyFwdArgs]{
		lengths: []length{tokens, vocab, hidden.in(24)}, terms: longestOf, work: outputWork,
		make: func(s *opstest.Stage, d tensor.DType, n []int) loss.LinearCrossEntropyFwdArgs {
			return withGradients(s, opstest.Dense, d, linearEntropyFwdArgs(s, opstest.Dense, d, tensor.I32, outputLayer{n[0], n[2], n[1]}))
		},
	}.cases(d, false)
}

func linearEntropyBwdModels(d tensor.DType, _ bool) []opstest.Case[loss.LinearCrossEntropyBwdArgs] {
	return sized[loss.LinearCrossEntropyBwdArgs]{
		lengths: []length{tokens, vocab, hidden.in(24)}, terms: longestOf, work: outputWork,
		make: func(s *opstest.Stage, d tensor.DType, n []int) loss.LinearCrossEntropyBwdArgs {
			return linearEntropyBwdArgs(s, opstest.Dense, d, tensor.I64, outputLayer{n[0], n[2], n[1]})
		},
	}.cases(d, false)
}

// longestOf returns the length of the longest sum: over tokens, classes or the hidden size.
func longestOf(n []int) int { return max(n[0], n[1], n[2]) }

// outputWork is the number of multiplications and additions of three products.
func outputWork(n []int) float64 { return 3 * 2 * float64(n[0]) * float64(n[1]) * float64(n[2]) }
