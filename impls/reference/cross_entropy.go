package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/loss"
)

// crossEntropyFwd implements loss.CrossEntropyFwd.
func crossEntropyFwd(a loss.CrossEntropyFwdArgs) error {
	vocab, logits := a.Logits.Shape().Cols(), a.Logits.Float64s()
	targets := indexes(a.Targets)
	losses, lse := make([]float64, len(targets)), make([]float64, len(targets))
	for i, target := range targets {
		row := logits[i*vocab : (i+1)*vocab]
		lse[i] = logSumExp(row)
		switch {
		case target == a.IgnoreIndex:
		case math.IsInf(lse[i], 0):
			losses[i] = math.NaN()
		default:
			losses[i] = lse[i] - row[target]
		}
	}
	if err := a.Losses.SetFloat64s(losses); err != nil {
		return err
	}
	return a.LSE.SetFloat64s(lse)
}

// crossEntropyBwd implements loss.CrossEntropyBwd.
func crossEntropyBwd(a loss.CrossEntropyBwdArgs) error {
	vocab, logits := a.Logits.Shape().Cols(), a.Logits.Float64s()
	lse, dlosses := a.LSE.Float64s(), a.DLosses.Float64s()
	dlogits := make([]float64, len(logits))
	for i, target := range indexes(a.Targets) {
		if target == a.IgnoreIndex {
			continue
		}
		row, shift := logits[i*vocab:(i+1)*vocab], lse[i]
		if exact := logSumExp(row); math.Abs(exact-shift) <= math.Abs(exact)*0x1p-22 {
			shift = exact // some ulps apart: lse is that of this row, rounded
		}
		for v := range vocab {
			p := math.NaN()
			if !math.IsInf(shift, 0) {
				p = math.Exp(row[v] - shift)
			}
			if v == target {
				p--
			}
			dlogits[i*vocab+v] = dlosses[i] * p
		}
	}
	return a.DLogits.SetFloat64s(dlogits)
}
