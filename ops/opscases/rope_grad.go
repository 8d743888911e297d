package opscases

import (
	"fmt"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func ropeGradCases() []opstest.GradCase {
	type args = rope.FusedRopeArgs
	var cases []opstest.GradCase
	add := func(name string, edit func(s *opstest.Stage, a *args)) {
		for _, interleaved := range []bool{false, true} {
			cases = append(cases, opstest.NewGradCase(fmt.Sprintf("%s/interleaved=%v", name, interleaved), rope.FusedRopeForward, rope.FusedRopeBackward,
				func(s *opstest.Stage) opstest.Derivation[args, args] {
					f := args{Freqs: ropeAngles(s, 10, 20, 6), QKVFormat: attention.SBHD, Interleaved: interleaved}
					f.Input = s.F64In(4, 2, 1, 8)
					edit(s, &f)
					f.Output = s.F64Out(f.Input.Shape()...)
					b := f
					b.Input, b.Output = s.F64In(f.Input.Shape()...), s.F64Out(f.Input.Shape()...)
					return opstest.Derivation[args, args]{
						Forward: []args{f}, Backward: []args{b}, Y: f.Output, DY: b.Input, Wrt: []opstest.Derivative{{Name: "x", X: f.Input, DX: b.Output}},
					}
				}))
		}
	}
	add("sbhd", func(*opstest.Stage, *args) {})
	add("bshd/start_positions", func(s *opstest.Stage, a *args) {
		a.QKVFormat, a.StartPositions = attention.BSHD, s.Values(tensor.I32, 5, 0, 7, 2)
	})
	add("thd", func(s *opstest.Stage, a *args) {
		a.QKVFormat, a.Input, a.CuSeqlens = attention.THD, s.F64In(7, 2, 8), s.Values(tensor.I32, 0, 3, 7)
	})
	add("context_parallel", func(_ *opstest.Stage, a *args) { a.CPSize, a.CPRank = 2, 1 })
	return cases
}

func qkvRopeGradCases() []opstest.GradCase {
	type args = rope.FusedQKVRopeArgs
	var cases []opstest.GradCase
	add := func(name string, edit func(s *opstest.Stage, a *args)) {
		for part, of := range []string{"q", "k", "v"} {
			cases = append(cases, opstest.NewGradCase(name+"/"+of, rope.FusedQKVRopeForward, rope.FusedQKVRopeBackward, func(s *opstest.Stage) opstest.Derivation[args, args] {
				f := qkvRopeArgs(s, false, opstest.Dense, tensor.F64, attention.BSHD, qkvShape{4, 2, 1, []int{8, 4, 2}, 4, 2})
				edit(s, &f)
				b := qkvRopeArgs(s, true, opstest.Dense, tensor.F64, attention.BSHD, qkvShape{4, 2, 1, []int{8, 4, 2}, 4, 2})
				b.QFreqs, b.KFreqs, b.StartPositions, b.Interleaved = f.QFreqs, f.KFreqs, f.StartPositions, f.Interleaved
				b.CPSize, b.CPRank = f.CPSize, f.CPRank
				ys, dys := []*tensor.Tensor{f.Q, f.K, f.V}, []*tensor.Tensor{b.Q, b.K, b.V}
				for i, dy := range dys {
					if i != part {
						s.Fill(dy, make([]float64, dy.NumElements()))
					}
				}
				return opstest.Derivation[args, args]{
					Forward: []args{f}, Backward: []args{b}, Y: ys[part], DY: dys[part], Wrt: []opstest.Derivative{{Name: "qkv", X: f.QKV, DX: b.QKV}},
				}
			}))
		}
	}
	add("start_positions", func(s *opstest.Stage, a *args) { a.StartPositions = s.Values(tensor.I32, 3, 1) })
	add("interleaved/context_parallel", func(s *opstest.Stage, a *args) {
		a.Interleaved, a.CPSize, a.CPRank = true, 2, 1
	})
	return cases
}
