package opstest

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// f64 makes operands for a gradient check.
func (s *stage) f64(shape ...int) *tensor.Tensor   { return s.in(dense, tensor.F64, shape...) }
func (s *stage) blank(shape ...int) *tensor.Tensor { return s.out(dense, tensor.F64, shape...) }

// gemmGradCases returns the three calls of a linear layer, y = gelu(x)·Wᵀ + b.
func gemmGradCases() []gradCase {
	type args = gemm.GenericGemmArgs
	const rows, in, out = 5, 4, 3
	return []gradCase{
		gradient("dgrad", gemm.GenericGemm, gemm.GenericGemm, func(s *stage) derivation[args, args] {
			x, w, y, dy, dx := s.f64(rows, in), s.f64(out, in), s.blank(rows, out), s.f64(rows, out), s.blank(rows, in)
			return derivation[args, args]{
				forward:  []args{{A: w, TransA: true, B: x, D: y}},
				backward: []args{{A: w, B: dy, D: dx, Grad: true}},
				y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
			}
		}),
		gradient("wgrad,bias", gemm.GenericGemm, gemm.GenericGemm, func(s *stage) derivation[args, args] {
			x, w, b := s.f64(2, rows, in), s.f64(out, in), s.f64(out)
			y, dy := s.blank(2, rows, out), s.f64(2, rows, out)
			dw, db := s.blank(out, in), s.blank(out)
			return derivation[args, args]{
				forward:  []args{{A: w, TransA: true, B: x, Bias: b, D: y, Alpha: opregistry.Float(0.5)}},
				backward: []args{{A: x, B: dy, TransB: true, D: dw, Bias: db, Grad: true, Alpha: opregistry.Float(0.5)}},
				y:        y, dy: dy, wrt: []derivative{{"W", w, dw}, {"bias", b, db}},
			}
		}),
		gradient("wgrad,accumulate", gemm.GenericGemm, gemm.GenericGemm, func(s *stage) derivation[args, args] {
			x1, x2, w := s.f64(rows, in), s.f64(rows, in), s.f64(out, in)
			y, dy, dw := s.blank(rows, out), s.f64(rows, out), s.blank(out, in)
			return derivation[args, args]{
				forward:  []args{{A: w, TransA: true, B: x1, D: y}, {A: w, TransA: true, B: x2, D: y, Accumulate: true}},
				backward: []args{{A: x1, B: dy, TransB: true, D: dw, Grad: true}, {A: x2, B: dy, TransB: true, D: dw, Grad: true, Accumulate: true}},
				y:        y, dy: dy, wrt: []derivative{{"W", w, dw}},
			}
		}),
		gradient("gelu", gemm.GenericGemm, gemm.GenericGemm, func(s *stage) derivation[args, args] {
			// There are two layers, the first with GELU. Its bias is added before GELU is applied,
			// so the gradients of both are the same rows.
			x, w1, b1, w2 := s.f64(rows, in), s.f64(6, in), s.scaled(3, dense, tensor.F64, 6), s.f64(out, 6)
			pre, h, y := s.blank(rows, 6), s.blank(rows, 6), s.blank(rows, out)
			dy, dpre, dw1, db1 := s.f64(rows, out), s.blank(rows, 6), s.blank(6, in), s.blank(6)
			first := args{A: w1, TransA: true, B: x, Bias: b1, Gelu: true, GeluIn: pre, D: h}
			s.gelu(first)
			return derivation[args, args]{
				forward: []args{first, {A: w2, TransA: true, B: h, D: y}},
				backward: []args{
					{A: w2, B: dy, D: dpre, Grad: true, Gelu: true, GeluIn: pre},
					{A: x, B: dpre, TransB: true, D: dw1, Bias: db1, Grad: true},
				},
				y: y, dy: dy, wrt: []derivative{{"W", w1, dw1}, {"bias", b1, db1}},
			}
		}),
	}
}

// gelu writes gelu_in of a layer with bias.
func (s *stage) gelu(a gemm.GenericGemmArgs) {
	for i := range a.GeluIn.Shape()[0] {
		for j := range a.GeluIn.Shape()[1] {
			v := a.Bias.At(j)
			for l := range a.B.Shape()[1] {
				v += a.B.At(i, l) * a.A.At(j, l)
			}
			a.GeluIn.Set(v, i, j)
		}
	}
}

func rmsnormGradCases() []gradCase {
	var cases []gradCase
	for _, zero := range []bool{false, true} {
		cases = append(cases, gradient(fmt.Sprintf("zero_centered=%v", zero), norm.RMSNormFwd, norm.RMSNormBwd,
			func(s *stage) derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdArgs] {
				b := rmsnormBwdArgs(s, dense, tensor.F64, 4, 6)
				f := rmsnormFwdArgs(s, dense, tensor.F64, 4, 6)
				f.Input, f.Weight = b.X, b.Gamma
				b.ZeroCenteredGamma, f.ZeroCenteredGamma = zero, zero
				return derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdArgs]{
					forward: []norm.RMSNormFwdArgs{f}, backward: []norm.RMSNormBwdArgs{b},
					y: f.Output, dy: b.DZ, wrt: []derivative{{"x", b.X, b.DX}, {"gamma", b.Gamma, b.DGamma}}, refresh: rmsnormRefresh,
				}
			}))
	}
	return cases
}

// residualAddGradCases adds up the gradients of the two uses of x in y = (x+a)+(x+b).
func residualAddGradCases() []gradCase {
	type args = norm.ResidualAddArgs
	return []gradCase{gradient("two_uses", norm.ResidualAdd, norm.ResidualAdd, func(s *stage) derivation[args, args] {
		x, a, b, l, r, y, dy, dx := s.f64(7), s.f64(7), s.f64(7), s.blank(7), s.blank(7), s.blank(7), s.f64(7), s.blank(7)
		return derivation[args, args]{
			forward:  []args{{A: x, B: a, Output: l}, {A: x, B: b, Output: r}, {A: l, B: r, Output: y}},
			backward: []args{{A: dy, B: dy, Output: dx}},
			y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
		}
	})}
}

func attnGradCases() []gradCase {
	var cases []gradCase
	add := func(name string, make func(*stage) attention.FusedAttnBwdArgs) {
		cases = append(cases, gradient(name, attention.FusedAttnFwd, attention.FusedAttnBwd, func(s *stage) derivation[attention.FusedAttnFwdArgs, attention.FusedAttnBwdArgs] {
			b := make(s)
			fwd := b.Fwd()
			fwd.O, fwd.Stats = s.blank(b.O.Shape()...), s.out(dense, tensor.F32, b.Stats.Shape()...)
			wrt := []derivative{{"Q", b.Q, b.DQ}, {"K", b.K, b.DK}, {"V", b.V, b.DV}}
			if b.DBias != nil {
				wrt = append(wrt, derivative{"bias", b.Bias, b.DBias})
			}
			if b.DSoftmaxOffset != nil {
				wrt = append(wrt, derivative{"softmax_offset", b.SoftmaxOffset, b.DSoftmaxOffset})
			}
			return derivation[attention.FusedAttnFwdArgs, attention.FusedAttnBwdArgs]{
				forward: []attention.FusedAttnFwdArgs{fwd}, backward: []attention.FusedAttnBwdArgs{b},
				y: fwd.O, dy: b.DO, wrt: wrt, refresh: attnRefresh,
			}
		}))
	}
	for _, n := range []attnShape{{2, 4, 4, 2, 2, 3, 3}, {1, 4, 4, 4, 2, 3, 2}, {1, 3, 5, 2, 1, 2, 3}, {1, 5, 3, 2, 1, 2, 3}} {
		for _, m := range maskTypes() {
			for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
				add(fmt.Sprintf("%v/%v/%v", n, m, f), func(s *stage) attention.FusedAttnBwdArgs { return attnBwdArgs(s, dense, tensor.F64, f, m, n) })
			}
		}
	}
	for _, o := range attnOptionCases() {
		f := o.formats[0]
		add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *stage) attention.FusedAttnBwdArgs {
			return attnOptionBwdArgs(s, tensor.F64, f, o, attnShape{2, 6, 7, 2, 1, 2, 2})
		})
	}
	return cases
}

func ropeGradCases() []gradCase {
	type args = rope.FusedRopeArgs
	var cases []gradCase
	add := func(name string, edit func(s *stage, a *args)) {
		for _, interleaved := range []bool{false, true} {
			cases = append(cases, gradient(fmt.Sprintf("%s/interleaved=%v", name, interleaved), rope.FusedRopeForward, rope.FusedRopeBackward,
				func(s *stage) derivation[args, args] {
					f := args{Freqs: ropeAngles(s, 10, 20, 6), QKVFormat: attention.SBHD, Interleaved: interleaved}
					f.Input = s.f64(4, 2, 1, 8)
					edit(s, &f)
					f.Output = s.blank(f.Input.Shape()...)
					b := f
					b.Input, b.Output = s.f64(f.Input.Shape()...), s.blank(f.Input.Shape()...)
					return derivation[args, args]{
						forward: []args{f}, backward: []args{b}, y: f.Output, dy: b.Input, wrt: []derivative{{"x", f.Input, b.Output}},
					}
				}))
		}
	}
	add("sbhd", func(*stage, *args) {})
	add("bshd/start_positions", func(s *stage, a *args) {
		a.QKVFormat, a.StartPositions = attention.BSHD, s.values(tensor.I32, 5, 0, 7, 2)
	})
	add("thd", func(s *stage, a *args) {
		a.QKVFormat, a.Input, a.CuSeqlens = attention.THD, s.f64(7, 2, 8), s.values(tensor.I32, 0, 3, 7)
	})
	add("context_parallel", func(_ *stage, a *args) { a.CPSize, a.CPRank = 2, 1 })
	return cases
}

func embeddingGradCases() []gradCase {
	return []gradCase{gradient("repeated", embedding.EmbeddingFwd, embedding.EmbeddingBwd, func(s *stage) derivation[embedding.EmbeddingFwdArgs, embedding.EmbeddingBwdArgs] {
		index := s.values(tensor.I64, 3, 0, 3, 3, 1)
		w, y, dy, dw := s.f64(5, 3), s.blank(5, 3), s.f64(5, 3), s.blank(5, 3)
		return derivation[embedding.EmbeddingFwdArgs, embedding.EmbeddingBwdArgs]{
			forward:  []embedding.EmbeddingFwdArgs{{Indices: index, Weight: w, Output: y}},
			backward: []embedding.EmbeddingBwdArgs{{Grad: dy, Indices: index, DWeight: dw}},
			y:        y, dy: dy, wrt: []derivative{{"weight", w, dw}},
		}
	})}
}

func crossEntropyGradCases() []gradCase {
	return []gradCase{gradient("with_ignored_rows", loss.CrossEntropyFwd, loss.CrossEntropyBwd,
		func(s *stage) derivation[loss.CrossEntropyFwdArgs, loss.CrossEntropyBwdArgs] {
			b := crossEntropyBwdArgs(s, dense, tensor.F64, tensor.I64, 4, 7)
			rows := b.LSE.NumElements()
			f := loss.CrossEntropyFwdArgs{
				Logits: b.Logits, Targets: b.Targets, Losses: s.out(dense, tensor.F32, rows), LSE: s.out(dense, tensor.F32, rows),
				IgnoreIndex: b.IgnoreIndex, Saved: b.Saved,
			}
			return derivation[loss.CrossEntropyFwdArgs, loss.CrossEntropyBwdArgs]{
				forward: []loss.CrossEntropyFwdArgs{f}, backward: []loss.CrossEntropyBwdArgs{b},
				y: f.Losses, dy: b.DLosses, wrt: []derivative{{"logits", b.Logits, b.DLogits}}, refresh: crossEntropyRefresh,
			}
		})}
}
