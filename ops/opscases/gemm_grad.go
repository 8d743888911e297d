package opscases

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// gemmGradCases returns the three calls of a linear layer, y = gelu(x)·Wᵀ + b.
func gemmGradCases() []opstest.GradCase {
	type args = gemm.GenericGemmArgs
	const rows, in, out = 5, 4, 3
	return []opstest.GradCase{
		opstest.NewGradCase("dgrad", gemm.GenericGemm, gemm.GenericGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			x, w, y, dy, dx := s.F64In(rows, in), s.F64In(out, in), s.F64Out(rows, out), s.F64In(rows, out), s.F64Out(rows, in)
			return opstest.Derivation[args, args]{
				Forward:  []args{{A: w, TransA: true, B: x, D: y}},
				Backward: []args{{A: w, B: dy, D: dx, Grad: true}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
			}
		}),
		opstest.NewGradCase("wgrad,bias", gemm.GenericGemm, gemm.GenericGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			x, w, b := s.F64In(2, rows, in), s.F64In(out, in), s.F64In(out)
			y, dy := s.F64Out(2, rows, out), s.F64In(2, rows, out)
			dw, db := s.F64Out(out, in), s.F64Out(out)
			return opstest.Derivation[args, args]{
				Forward:  []args{{A: w, TransA: true, B: x, Bias: b, D: y, Alpha: opregistry.Float(0.5)}},
				Backward: []args{{A: x, B: dy, TransB: true, D: dw, Bias: db, Grad: true, Alpha: opregistry.Float(0.5)}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "W", X: w, DX: dw}, {Name: "bias", X: b, DX: db}},
			}
		}),
		opstest.NewGradCase("wgrad,accumulate", gemm.GenericGemm, gemm.GenericGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			x1, x2, w := s.F64In(rows, in), s.F64In(rows, in), s.F64In(out, in)
			y, dy, dw := s.F64Out(rows, out), s.F64In(rows, out), s.F64Out(out, in)
			return opstest.Derivation[args, args]{
				Forward:  []args{{A: w, TransA: true, B: x1, D: y}, {A: w, TransA: true, B: x2, D: y, Accumulate: true}},
				Backward: []args{{A: x1, B: dy, TransB: true, D: dw, Grad: true}, {A: x2, B: dy, TransB: true, D: dw, Grad: true, Accumulate: true}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "W", X: w, DX: dw}},
			}
		}),
		opstest.NewGradCase("gelu", gemm.GenericGemm, gemm.GenericGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			// There are two layers, the first with GELU. Its bias is added before GELU is applied,
			// so the gradients of both are the same rows.
			x, w1, b1, w2 := s.F64In(rows, in), s.F64In(6, in), s.Scaled(3, opstest.Dense, tensor.F64, 6), s.F64In(out, 6)
			pre, h, y := s.F64Out(rows, 6), s.F64Out(rows, 6), s.F64Out(rows, out)
			dy, dpre, dw1, db1 := s.F64In(rows, out), s.F64Out(rows, 6), s.F64Out(6, in), s.F64Out(6)
			first := args{A: w1, TransA: true, B: x, Bias: b1, Gelu: true, GeluIn: pre, D: h}
			gelu(s, first)
			return opstest.Derivation[args, args]{
				Forward: []args{first, {A: w2, TransA: true, B: h, D: y}},
				Backward: []args{
					{A: w2, B: dy, D: dpre, Grad: true, Gelu: true, GeluIn: pre},
					{A: x, B: dpre, TransB: true, D: dw1, Bias: db1, Grad: true},
				},
				Y: y, DY: dy, Wrt: []opstest.Derivative{{Name: "W", X: w1, DX: dw1}, {Name: "bias", X: b1, DX: db1}},
			}
		}),
	}
}

// gelu writes gelu_in of a layer with bias.
func gelu(s *opstest.Stage, a gemm.GenericGemmArgs) {
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
