package opstest

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	dropoutops "github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// functionGrad is the derivation of a function of one operand.
func functionGrad(x, y, dy, dx *tensor.Tensor) derivation[activation.ActivationArgs, activation.DActivationArgs] {
	return derivation[activation.ActivationArgs, activation.DActivationArgs]{
		forward: []activation.ActivationArgs{{Input: x, Output: y}}, backward: []activation.DActivationArgs{{Grad: dy, FwdInput: x, Output: dx}},
		y: y, dy: dy, wrt: []derivative{{"x", x, dx}},
	}
}

func activationGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DActivationArgs]) func() []gradCase {
	return func() []gradCase {
		return []gradCase{gradient("elements", forward, backward, func(s *stage) derivation[activation.ActivationArgs, activation.DActivationArgs] {
			return functionGrad(s.scaled(3, dense, tensor.F64, 30), s.blank(30), s.f64(30), s.blank(30))
		})}
	}
}

func gluGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DActivationArgs]) func() []gradCase {
	return func() []gradCase {
		return []gradCase{gradient("rows", forward, backward, func(s *stage) derivation[activation.ActivationArgs, activation.DActivationArgs] {
			return functionGrad(s.scaled(3, dense, tensor.F64, 3, 10), s.blank(3, 5), s.f64(3, 5), s.blank(3, 10))
		})}
	}
}

// dbiasGradCases check dx, and dbias with an x whose rows are all one bias.
func dbiasGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DBiasDActivationArgs]) func() []gradCase {
	type derived = derivation[activation.ActivationArgs, activation.DBiasDActivationArgs]
	const rows, cols = 4, 6
	return func() []gradCase {
		return []gradCase{
			gradient("x", forward, backward, func(s *stage) derived {
				x, y, dy, dx := s.scaled(3, dense, tensor.F64, rows, cols), s.blank(rows, cols), s.f64(rows, cols), s.blank(rows, cols)
				return derived{
					forward:  []activation.ActivationArgs{{Input: x, Output: y}},
					backward: []activation.DBiasDActivationArgs{{Grad: dy, FwdInput: x, DBias: s.blank(cols), Output: dx}},
					y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
				}
			}),
			gradient("bias", forward, backward, func(s *stage) derived {
				bias, y, dy, dbias := s.scaled(3, dense, tensor.F64, cols), s.blank(rows, cols), s.f64(rows, cols), s.blank(cols)
				x, err := bias.AsStrided([]int{rows, cols}, []int{0, 1}, bias.Offset())
				if err != nil {
					s.t.Fatalf("opstest: %v", err)
				}
				return derived{
					forward:  []activation.ActivationArgs{{Input: x, Output: y}},
					backward: []activation.DBiasDActivationArgs{{Grad: dy, FwdInput: x, DBias: dbias, Output: s.blank(rows, cols)}},
					y:        y, dy: dy, wrt: []derivative{{"bias", bias, dbias}},
				}
			}),
		}
	}
}

func clampedGradCases() []gradCase {
	type derived = derivation[activation.ClampedSwiGLUArgs, activation.ClampedDSwiGLUArgs]
	var cases []gradCase
	for _, c := range clampConstants() {
		cases = append(cases, gradient(c.name, activation.ClampedSwiGLU, activation.ClampedDSwiGLU, func(s *stage) derived {
			x, y, dy, dx := s.scaled(10, dense, tensor.F64, 3, 10), s.blank(3, 5), s.f64(3, 5), s.blank(3, 10)
			return derived{
				forward:  []activation.ClampedSwiGLUArgs{{Input: x, Output: y, Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}},
				backward: []activation.ClampedDSwiGLUArgs{{Grad: dy, FwdInput: x, Output: dx, Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}},
				y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
			}
		}))
	}
	return cases
}

func softmaxGradCases(forward *opregistry.Op[softmax.SoftmaxArgs], backward *opregistry.Op[softmax.SoftmaxBackwardArgs], shape ...int) func() []gradCase {
	type derived = derivation[softmax.SoftmaxArgs, softmax.SoftmaxBackwardArgs]
	return func() []gradCase {
		return []gradCase{gradient("rows", forward, backward, func(s *stage) derived {
			x, dy, dx := s.scaled(2, dense, tensor.F64, shape...), s.f64(shape...), s.blank(shape...)
			var causal hides
			if forward != softmax.ScaledSoftmaxForward {
				causal = bottomRight
			}
			y := s.blank(shape...)
			s.fill(y, s.softmax(x, 0.75, causal, nil))
			return derived{
				forward:  []softmax.SoftmaxArgs{{Input: x, Output: y, ScaleFactor: 0.75}},
				backward: []softmax.SoftmaxBackwardArgs{{OutputGrads: dy, SoftmaxResults: y, Output: dx, ScaleFactor: 0.75}},
				y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
			}
		})}
	}
}

func maskedSoftmaxGradCases() []gradCase {
	type derived = derivation[softmax.ScaledMaskedSoftmaxForwardArgs, softmax.SoftmaxBackwardArgs]
	shape := []int{2, 2, 3, 4}
	var cases []gradCase
	for _, d := range []tensor.DType{tensor.U8, tensor.F64} {
		cases = append(cases, gradient("mask_of_"+d.String(), softmax.ScaledMaskedSoftmaxForward, softmax.ScaledMaskedSoftmaxBackward, func(s *stage) derived {
			x, dy, dx := s.scaled(2, dense, tensor.F64, shape...), s.f64(shape...), s.blank(shape...)
			mask := s.in(dense, d, 1, 1, 3, 4)
			if d == tensor.U8 {
				s.fill(mask, []float64{0, 1, 2, 0, 1, 1, 1, 1, 0, 0, 0, 0}) // one row is masked completely
			}
			y := s.blank(shape...)
			s.fill(y, s.softmax(x, 0.75, nil, mask))
			return derived{
				forward:  []softmax.ScaledMaskedSoftmaxForwardArgs{{Input: x, Mask: mask, Output: y, ScaleFactor: 0.75}},
				backward: []softmax.SoftmaxBackwardArgs{{OutputGrads: dy, SoftmaxResults: y, Output: dx, ScaleFactor: 0.75}},
				y:        y, dy: dy, wrt: []derivative{{"x", x, dx}},
			}
		}))
	}
	return cases
}

func rmsnormAddGradCases() []gradCase {
	type derived = derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdAddArgs]
	return []gradCase{gradient("nothing_added", norm.RMSNormFwd, norm.RMSNormBwdAdd, func(s *stage) derived {
		b := rmsnormBwdAddArgs(s, dense, tensor.F64, 4, 6)
		s.fill(b.Add, make([]float64, 24))
		f := rmsnormFwdArgs(s, dense, tensor.F64, 4, 6)
		f.Input, f.Weight = b.X, b.Gamma
		return derived{
			forward: []norm.RMSNormFwdArgs{f}, backward: []norm.RMSNormBwdAddArgs{b},
			y: f.Output, dy: b.DZ, wrt: []derivative{{"x", b.X, b.DX}, {"gamma", b.Gamma, b.DGamma}},
		}
	})}
}

func layernormGradCases() []gradCase {
	type derived = derivation[norm.LayerNormFwdArgs, norm.LayerNormBwdArgs]
	var cases []gradCase
	for _, zero := range []bool{false, true} {
		cases = append(cases, gradient(fmt.Sprintf("zero_centered=%v", zero), norm.LayerNormFwd, norm.LayerNormBwd, func(s *stage) derived {
			b := layernormBwdArgs(s, dense, tensor.F64, 4, 6)
			f := layernormFwdArgs(s, dense, tensor.F64, 4, 6)
			f.Input, f.Weight = b.X, b.Gamma
			b.ZeroCenteredGamma, f.ZeroCenteredGamma = zero, zero
			return derived{
				forward: []norm.LayerNormFwdArgs{f}, backward: []norm.LayerNormBwdArgs{b}, y: f.Output, dy: b.DZ, refresh: layernormRefresh,
				wrt: []derivative{{"x", b.X, b.DX}, {"gamma", b.Gamma, b.DGamma}, {"beta", f.Bias, b.DBeta}},
			}
		}))
	}
	return cases
}

func qkvRopeGradCases() []gradCase {
	type args = rope.FusedQKVRopeArgs
	var cases []gradCase
	add := func(name string, edit func(s *stage, a *args)) {
		for part, of := range []string{"q", "k", "v"} {
			cases = append(cases, gradient(name+"/"+of, rope.FusedQKVRopeForward, rope.FusedQKVRopeBackward, func(s *stage) derivation[args, args] {
				f := qkvRopeArgs(s, false, dense, tensor.F64, attention.BSHD, qkvShape{4, 2, 1, []int{8, 4, 2}, 4, 2})
				edit(s, &f)
				b := qkvRopeArgs(s, true, dense, tensor.F64, attention.BSHD, qkvShape{4, 2, 1, []int{8, 4, 2}, 4, 2})
				b.QFreqs, b.KFreqs, b.StartPositions, b.Interleaved = f.QFreqs, f.KFreqs, f.StartPositions, f.Interleaved
				b.CPSize, b.CPRank = f.CPSize, f.CPRank
				ys, dys := []*tensor.Tensor{f.Q, f.K, f.V}, []*tensor.Tensor{b.Q, b.K, b.V}
				for i, dy := range dys {
					if i != part {
						s.fill(dy, make([]float64, dy.NumElements()))
					}
				}
				return derivation[args, args]{
					forward: []args{f}, backward: []args{b}, y: ys[part], dy: dys[part], wrt: []derivative{{"qkv", f.QKV, b.QKV}},
				}
			}))
		}
	}
	add("start_positions", func(s *stage, a *args) { a.StartPositions = s.values(tensor.I32, 3, 1) })
	add("interleaved/context_parallel", func(s *stage, a *args) {
		a.Interleaved, a.CPSize, a.CPRank = true, 2, 1
	})
	return cases
}

func dropoutGradCases() []gradCase {
	type derived = derivation[dropoutops.DropoutFwdArgs, dropoutops.DropoutBwdArgs]
	return []gradCase{gradient("elements", dropoutops.DropoutFwd, dropoutops.DropoutBwd, func(s *stage) derived {
		f, b := dropoutFwdArgs(s, dense, tensor.F64, 3, 7), dropoutBwdArgs(s, dense, tensor.F64, 3, 7)
		return derived{
			forward: []dropoutops.DropoutFwdArgs{f}, backward: []dropoutops.DropoutBwdArgs{b},
			y: f.Out, dy: b.GradOutput, wrt: []derivative{{"x", f.Input, b.GradInput}}, refresh: dropoutRefresh,
		}
	})}
}
