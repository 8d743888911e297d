package opscases

import (
	"fmt"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func attnGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	add := func(name string, make func(*opstest.Stage) attention.FusedAttnBwdArgs) {
		cases = append(cases, opstest.NewGradCase(name, attention.FusedAttnFwd, attention.FusedAttnBwd, func(s *opstest.Stage) opstest.Derivation[attention.FusedAttnFwdArgs, attention.FusedAttnBwdArgs] {
			b := make(s)
			fwd := b.Fwd()
			fwd.O, fwd.Stats = s.F64Out(b.O.Shape()...), s.Out(opstest.Dense, tensor.F32, b.Stats.Shape()...)
			wrt := []opstest.Derivative{{Name: "Q", X: b.Q, DX: b.DQ}, {Name: "K", X: b.K, DX: b.DK}, {Name: "V", X: b.V, DX: b.DV}}
			if b.DBias != nil {
				wrt = append(wrt, opstest.Derivative{Name: "bias", X: b.Bias, DX: b.DBias})
			}
			if b.DSoftmaxOffset != nil {
				wrt = append(wrt, opstest.Derivative{Name: "softmax_offset", X: b.SoftmaxOffset, DX: b.DSoftmaxOffset})
			}
			return opstest.Derivation[attention.FusedAttnFwdArgs, attention.FusedAttnBwdArgs]{
				Forward: []attention.FusedAttnFwdArgs{fwd}, Backward: []attention.FusedAttnBwdArgs{b},
				Y: fwd.O, DY: b.DO, Wrt: wrt, Refresh: attnRefresh,
			}
		}))
	}
	for _, n := range []attnShape{{2, 4, 4, 2, 2, 3, 3}, {1, 4, 4, 4, 2, 3, 2}, {1, 3, 5, 2, 1, 2, 3}, {1, 5, 3, 2, 1, 2, 3}} {
		for _, m := range maskTypes() {
			for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
				add(fmt.Sprintf("%v/%v/%v", n, m, f), func(s *opstest.Stage) attention.FusedAttnBwdArgs {
					return attnBwdArgs(s, opstest.Dense, tensor.F64, f, m, n)
				})
			}
		}
	}
	for _, o := range attnOptionCases() {
		f := o.formats[0]
		add(fmt.Sprintf("%s/%v/%v", o.name, o.mask, f), func(s *opstest.Stage) attention.FusedAttnBwdArgs {
			return attnOptionBwdArgs(s, tensor.F64, f, o, attnShape{2, 6, 7, 2, 1, 2, 2})
		})
	}
	return cases
}
