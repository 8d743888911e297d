package opscases

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func softmaxGradCases(forward *opregistry.Op[softmax.SoftmaxArgs], backward *opregistry.Op[softmax.SoftmaxBackwardArgs], shape ...int) func() []opstest.GradCase {
	type derived = opstest.Derivation[softmax.SoftmaxArgs, softmax.SoftmaxBackwardArgs]
	return func() []opstest.GradCase {
		return []opstest.GradCase{opstest.NewGradCase("rows", forward, backward, func(s *opstest.Stage) derived {
			x, dy, dx := s.Scaled(2, opstest.Dense, tensor.F64, shape...), s.F64In(shape...), s.F64Out(shape...)
			var causal hides
			if forward != softmax.ScaledSoftmaxForward {
				causal = bottomRight
			}
			y := s.F64Out(shape...)
			s.Fill(y, fillSoftmax(s, x, 0.75, causal, nil))
			return derived{
				Forward:  []softmax.SoftmaxArgs{{Input: x, Output: y, ScaleFactor: 0.75}},
				Backward: []softmax.SoftmaxBackwardArgs{{OutputGrads: dy, SoftmaxResults: y, Output: dx, ScaleFactor: 0.75}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
			}
		})}
	}
}

func maskedSoftmaxGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[softmax.ScaledMaskedSoftmaxForwardArgs, softmax.SoftmaxBackwardArgs]
	shape := []int{2, 2, 3, 4}
	var cases []opstest.GradCase
	for _, d := range []tensor.DType{tensor.U8, tensor.F64} {
		cases = append(cases, opstest.NewGradCase("mask_of_"+d.String(), softmax.ScaledMaskedSoftmaxForward, softmax.ScaledMaskedSoftmaxBackward, func(s *opstest.Stage) derived {
			x, dy, dx := s.Scaled(2, opstest.Dense, tensor.F64, shape...), s.F64In(shape...), s.F64Out(shape...)
			mask := s.In(opstest.Dense, d, 1, 1, 3, 4)
			if d == tensor.U8 {
				s.Fill(mask, []float64{0, 1, 2, 0, 1, 1, 1, 1, 0, 0, 0, 0}) // one row is masked completely
			}
			y := s.F64Out(shape...)
			s.Fill(y, fillSoftmax(s, x, 0.75, nil, mask))
			return derived{
				Forward:  []softmax.ScaledMaskedSoftmaxForwardArgs{{Input: x, Mask: mask, Output: y, ScaleFactor: 0.75}},
				Backward: []softmax.SoftmaxBackwardArgs{{OutputGrads: dy, SoftmaxResults: y, Output: dx, ScaleFactor: 0.75}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
			}
		}))
	}
	return cases
}
