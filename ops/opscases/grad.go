package opscases

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// functionGrad is the derivation of a function of one operand.
func functionGrad(x, y, dy, dx *tensor.Tensor) opstest.Derivation[activation.ActivationArgs, activation.DActivationArgs] {
	return opstest.Derivation[activation.ActivationArgs, activation.DActivationArgs]{
		Forward: []activation.ActivationArgs{{Input: x, Output: y}}, Backward: []activation.DActivationArgs{{Grad: dy, FwdInput: x, Output: dx}},
		Y: y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
	}
}

func activationGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DActivationArgs]) func() []opstest.GradCase {
	return func() []opstest.GradCase {
		return []opstest.GradCase{opstest.NewGradCase("elements", forward, backward, func(s *opstest.Stage) opstest.Derivation[activation.ActivationArgs, activation.DActivationArgs] {
			return functionGrad(s.Scaled(3, opstest.Dense, tensor.F64, 30), s.F64Out(30), s.F64In(30), s.F64Out(30))
		})}
	}
}

func gluGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DActivationArgs]) func() []opstest.GradCase {
	return func() []opstest.GradCase {
		return []opstest.GradCase{opstest.NewGradCase("rows", forward, backward, func(s *opstest.Stage) opstest.Derivation[activation.ActivationArgs, activation.DActivationArgs] {
			return functionGrad(s.Scaled(3, opstest.Dense, tensor.F64, 3, 10), s.F64Out(3, 5), s.F64In(3, 5), s.F64Out(3, 10))
		})}
	}
}

// dbiasGradCases check dx, and dbias with an x whose rows are all one bias.
func dbiasGradCases(forward *opregistry.Op[activation.ActivationArgs], backward *opregistry.Op[activation.DBiasDActivationArgs]) func() []opstest.GradCase {
	type derived = opstest.Derivation[activation.ActivationArgs, activation.DBiasDActivationArgs]
	const rows, cols = 4, 6
	return func() []opstest.GradCase {
		return []opstest.GradCase{
			opstest.NewGradCase("x", forward, backward, func(s *opstest.Stage) derived {
				x, y, dy, dx := s.Scaled(3, opstest.Dense, tensor.F64, rows, cols), s.F64Out(rows, cols), s.F64In(rows, cols), s.F64Out(rows, cols)
				return derived{
					Forward:  []activation.ActivationArgs{{Input: x, Output: y}},
					Backward: []activation.DBiasDActivationArgs{{Grad: dy, FwdInput: x, DBias: s.F64Out(cols), Output: dx}},
					Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
				}
			}),
			opstest.NewGradCase("bias", forward, backward, func(s *opstest.Stage) derived {
				bias, y, dy, dbias := s.Scaled(3, opstest.Dense, tensor.F64, cols), s.F64Out(rows, cols), s.F64In(rows, cols), s.F64Out(cols)
				x, err := bias.AsStrided([]int{rows, cols}, []int{0, 1}, bias.Offset())
				if err != nil {
					s.T.Fatalf("opstest: %v", err)
				}
				return derived{
					Forward:  []activation.ActivationArgs{{Input: x, Output: y}},
					Backward: []activation.DBiasDActivationArgs{{Grad: dy, FwdInput: x, DBias: dbias, Output: s.F64Out(rows, cols)}},
					Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "bias", X: bias, DX: dbias}},
				}
			}),
		}
	}
}

func softcapGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[activation.SoftcapArgs, activation.DSoftcapArgs]
	return []opstest.GradCase{opstest.NewGradCase("elements", activation.Softcap, activation.DSoftcap, func(s *opstest.Stage) derived {
		x, y, dy, dx := s.Scaled(3, opstest.Dense, tensor.F64, 30), s.F64Out(30), s.F64In(30), s.F64Out(30)
		return derived{
			Forward:  []activation.SoftcapArgs{{Input: x, Output: y, Limit: 2}},
			Backward: []activation.DSoftcapArgs{{Grad: dy, FwdInput: x, Output: dx, Limit: 2}},
			Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
		}
	})}
}

func clampedGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[activation.ClampedSwiGLUArgs, activation.ClampedDSwiGLUArgs]
	var cases []opstest.GradCase
	for _, c := range clampConstants() {
		cases = append(cases, opstest.NewGradCase(c.name, activation.ClampedSwiGLU, activation.ClampedDSwiGLU, func(s *opstest.Stage) derived {
			x, y, dy, dx := s.Scaled(10, opstest.Dense, tensor.F64, 3, 10), s.F64Out(3, 5), s.F64In(3, 5), s.F64Out(3, 10)
			return derived{
				Forward:  []activation.ClampedSwiGLUArgs{{Input: x, Output: y, Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}},
				Backward: []activation.ClampedDSwiGLUArgs{{Grad: dy, FwdInput: x, Output: dx, Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}},
				Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
			}
		}))
	}
	return cases
}
