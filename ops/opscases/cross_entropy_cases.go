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

const ignored = -100

func logitShapes() [][]int {
	return [][]int{{1, 1}, {3, 2}, {5, 7}, {4, 33}, {2, 1000}, {0, 5}, {2, 3, 16}, {9}}
}

// targets returns a target for each row, every third of them ignored.
func targets(s *opstest.Stage, d tensor.DType, rows, vocab int) *tensor.Tensor {
	t := s.Indexes(d, rows, vocab)
	for i := 2; i < rows; i += 3 {
		t.Set(ignored, i)
	}
	return t
}

func crossEntropyFwdArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, shape ...int) loss.CrossEntropyFwdArgs {
	rows, vocab := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	return loss.CrossEntropyFwdArgs{
		Logits: s.Scaled(3, l, d, shape...), Targets: targets(s, index, rows, vocab),
		Losses: s.Out(opstest.Dense, tensor.F32, rows), LSE: s.Out(opstest.Dense, tensor.F32, rows),
		IgnoreIndex: ignored, Saved: new(opregistry.Saved),
	}
}

func crossEntropyFwdCases(d tensor.DType) []opstest.Case[loss.CrossEntropyFwdArgs] {
	var cases []opstest.Case[loss.CrossEntropyFwdArgs]
	add := func(name string, make func(*opstest.Stage) loss.CrossEntropyFwdArgs) {
		cases = append(cases, opstest.Case[loss.CrossEntropyFwdArgs]{Name: name, Make: make})
	}
	for _, shape := range logitShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				add(fmt.Sprintf("%v/%v/%v", tensor.Shape(shape), l, index), func(s *opstest.Stage) loss.CrossEntropyFwdArgs {
					return crossEntropyFwdArgs(s, l, d, index, shape...)
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *loss.CrossEntropyFwdArgs)) {
		add(name, func(s *opstest.Stage) loss.CrossEntropyFwdArgs {
			a := crossEntropyFwdArgs(s, opstest.Dense, d, tensor.I32, 5, 12)
			change(s, &a)
			return a
		})
	}
	edit("ignore_index_inside_the_vocabulary", func(s *opstest.Stage, a *loss.CrossEntropyFwdArgs) {
		a.Targets, a.IgnoreIndex = s.Values(tensor.I32, 0, 3, 0, 11, 1), 0
	})
	edit("all_ignored", func(s *opstest.Stage, a *loss.CrossEntropyFwdArgs) {
		a.Targets = s.Values(tensor.I32, ignored, ignored, ignored, ignored, ignored)
	})
	edit("large_logits", func(s *opstest.Stage, a *loss.CrossEntropyFwdArgs) { shift(s, a.Logits, 190) })
	edit("very_negative_logits", func(s *opstest.Stage, a *loss.CrossEntropyFwdArgs) { shift(s, a.Logits, -190) })
	edit("masked_vocabulary", func(s *opstest.Stage, a *loss.CrossEntropyFwdArgs) {
		a.Targets = s.Values(tensor.I32, 1, 2, ignored, 3, 4)
		for r := range 5 {
			for v := 6; v < 12; v++ {
				a.Logits.Set(math.Inf(-1), r, v)
			}
		}
	})
	edit("nan", func(_ *opstest.Stage, a *loss.CrossEntropyFwdArgs) { a.Logits.Set(math.NaN(), 1, 4) })
	edit("infinite_lse", func(_ *opstest.Stage, a *loss.CrossEntropyFwdArgs) { infiniteLSE(a.Logits) })
	return cases
}

// shift adds f to every element.
func shift(s *opstest.Stage, x *tensor.Tensor, f float64) {
	v := x.Float64s()
	for i := range v {
		v[i] += f
	}
	s.Fill(x, v)
}

func crossEntropyBwdArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, shape ...int) loss.CrossEntropyBwdArgs {
	fwd := crossEntropyFwdArgs(s, l, d, index, shape...)
	a := loss.CrossEntropyBwdArgs{
		Logits: fwd.Logits, Targets: fwd.Targets, LSE: fwd.LSE,
		DLosses: s.In(opstest.Dense, tensor.F32, fwd.LSE.NumElements()), DLogits: s.Out(l, d, shape...),
		IgnoreIndex: ignored, Saved: fwd.Saved,
	}
	saveLSE(s, a)
	return a
}

// saveLSE writes the log-sum-exp that the documentation of cross_entropy_fwd defines. A float64 can
// hold the exponentials of the logits that the cases make.
func saveLSE(s *opstest.Stage, a loss.CrossEntropyBwdArgs) {
	logits, vocab := a.Logits.Float64s(), a.Logits.Shape().Cols()
	lse := make([]float64, a.LSE.NumElements())
	for i := range lse {
		sum := 0.0
		for _, x := range logits[i*vocab : (i+1)*vocab] {
			sum += math.Exp(x)
		}
		lse[i] = math.Log(sum)
	}
	s.Fill(a.LSE, lse)
}

// crossEntropyRefresh replaces the log-sum-exp by what a forward impl saves.
func crossEntropyRefresh(t tensortest.TB, x *opregistry.Exec, a loss.CrossEntropyBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &opstest.Stage{T: t}
	return opstest.RunForward(t, x, loss.CrossEntropyFwd, forward, loss.CrossEntropyFwdArgs{
		Logits: a.Logits, Targets: a.Targets, Losses: s.Out(opstest.Dense, tensor.F32, a.LSE.NumElements()), LSE: a.LSE,
		IgnoreIndex: a.IgnoreIndex, Saved: a.Saved,
	})
}

// infiniteLSE makes the log-sum-exp of two rows infinite.
func infiniteLSE(logits *tensor.Tensor) {
	logits.Set(math.Inf(1), 1, 4)
	for v := range logits.Shape().Cols() {
		logits.Set(math.Inf(-1), 3, v)
	}
}

func crossEntropyBwdCases(d tensor.DType) []opstest.Case[loss.CrossEntropyBwdArgs] {
	var cases []opstest.Case[loss.CrossEntropyBwdArgs]
	add := func(name string, make func(*opstest.Stage) loss.CrossEntropyBwdArgs) {
		cases = append(cases, opstest.Case[loss.CrossEntropyBwdArgs]{Name: name, Make: make})
	}
	for _, shape := range logitShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				call := func(s *opstest.Stage) loss.CrossEntropyBwdArgs { return crossEntropyBwdArgs(s, l, d, index, shape...) }
				name := fmt.Sprintf("%v/%v/%v", tensor.Shape(shape), l, index)
				add(name, call)
				add(name+"/in_place", func(s *opstest.Stage) loss.CrossEntropyBwdArgs {
					a := call(s)
					a.DLogits = a.Logits
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *loss.CrossEntropyBwdArgs)) {
		add(name, func(s *opstest.Stage) loss.CrossEntropyBwdArgs {
			a := crossEntropyBwdArgs(s, opstest.Dense, d, tensor.I32, 5, 12)
			change(s, &a)
			saveLSE(s, a)
			return a
		})
	}
	edit("ignore_index_inside_the_vocabulary", func(s *opstest.Stage, a *loss.CrossEntropyBwdArgs) {
		a.Targets, a.IgnoreIndex = s.Values(tensor.I32, 0, 3, 0, 11, 1), 0
	})
	edit("large_logits", func(s *opstest.Stage, a *loss.CrossEntropyBwdArgs) { shift(s, a.Logits, 190) })
	edit("larger_logits", func(s *opstest.Stage, a *loss.CrossEntropyBwdArgs) { shift(s, a.Logits, 690) })
	edit("infinite_lse", func(_ *opstest.Stage, a *loss.CrossEntropyBwdArgs) { infiniteLSE(a.Logits) })
	edit("masked_vocabulary", func(s *opstest.Stage, a *loss.CrossEntropyBwdArgs) {
		a.Targets = s.Values(tensor.I32, 1, 2, ignored, 3, 4)
		for r := range 5 {
			for v := 6; v < 12; v++ {
				a.Logits.Set(math.Inf(-1), r, v)
			}
		}
	})
	edit("ignored_row_of_nan", func(s *opstest.Stage, a *loss.CrossEntropyBwdArgs) {
		a.Targets = s.Values(tensor.I32, 1, ignored, 2, 3, 4)
		for v := range 12 {
			a.Logits.Set(math.NaN(), 1, v)
		}
	})
	edit("nan", func(_ *opstest.Stage, a *loss.CrossEntropyBwdArgs) { a.Logits.Set(math.NaN(), 1, 4) })
	return cases
}
