package opscases

import (
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func crossEntropyGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("with_ignored_rows", loss.CrossEntropyFwd, loss.CrossEntropyBwd,
		func(s *opstest.Stage) opstest.Derivation[loss.CrossEntropyFwdArgs, loss.CrossEntropyBwdArgs] {
			b := crossEntropyBwdArgs(s, opstest.Dense, tensor.F64, tensor.I64, 4, 7)
			rows := b.LSE.NumElements()
			f := loss.CrossEntropyFwdArgs{
				Logits: b.Logits, Targets: b.Targets, Losses: s.Out(opstest.Dense, tensor.F32, rows), LSE: s.Out(opstest.Dense, tensor.F32, rows),
				IgnoreIndex: b.IgnoreIndex, Saved: b.Saved,
			}
			return opstest.Derivation[loss.CrossEntropyFwdArgs, loss.CrossEntropyBwdArgs]{
				Forward: []loss.CrossEntropyFwdArgs{f}, Backward: []loss.CrossEntropyBwdArgs{b},
				Y: f.Losses, DY: b.DLosses, Wrt: []opstest.Derivative{{Name: "logits", X: b.Logits, DX: b.DLogits}}, Refresh: crossEntropyRefresh,
			}
		})}
}
