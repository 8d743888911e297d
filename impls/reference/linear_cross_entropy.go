package reference

import (
	"math"

	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

// linearCrossEntropyFwd implements loss.LinearCrossEntropyFwd.
func linearCrossEntropyFwd(a loss.LinearCrossEntropyFwdArgs) error {
	vocab, logits := a.Weight.Shape()[0], outputLogits(a.Hidden, a.Weight)
	targets := indexes(a.Targets)
	losses, lse := make([]float64, len(targets)), make([]float64, len(targets))
	for i, target := range targets {
		row := logits[i*vocab : (i+1)*vocab]
		lse[i] = logSumExp(row)
		switch at := target - a.First; {
		case target == a.IgnoreIndex || at < 0 || at >= vocab:
		case math.IsInf(lse[i], 0):
			losses[i] = math.NaN()
		default:
			losses[i] = lse[i] - row[at]
		}
	}
	if err := a.Losses.SetFloat64s(losses); err != nil {
		return err
	}
	if err := a.LSE.SetFloat64s(lse); err != nil || a.DLosses == nil {
		return err
	}
	return linearEntropyGradient(loss.LinearCrossEntropyBwdArgs{
		Hidden: a.Hidden, Weight: a.Weight, Targets: a.Targets, DLosses: a.DLosses, DHidden: a.DHidden, DWeight: a.DWeight,
		IgnoreIndex: a.IgnoreIndex, First: a.First, Accumulate: a.Accumulate,
	}, logits, lse)
}

// linearCrossEntropyBwd implements loss.LinearCrossEntropyBwd.
func linearCrossEntropyBwd(a loss.LinearCrossEntropyBwdArgs) error {
	vocab, logits, lse := a.Weight.Shape()[0], outputLogits(a.Hidden, a.Weight), a.LSE.Float64s()
	for i, shift := range lse {
		if exact := logSumExp(logits[i*vocab : (i+1)*vocab]); math.Abs(exact-shift) <= math.Abs(exact)*0x1p-22 {
			lse[i] = exact // some ulps apart: lse is that of this row, rounded
		}
	}
	return linearEntropyGradient(a, logits, lse)
}

// outputLogits returns hidden·weightᵀ.
func outputLogits(hidden, weight *tensor.Tensor) []float64 {
	return matmul(operand(hidden, false), operand(weight, true), hidden.Shape().Rows(), weight.Shape()[0], weight.Shape().Cols())
}

// linearEntropyGradient writes dhidden and dweight. It overwrites the logits.
func linearEntropyGradient(a loss.LinearCrossEntropyBwdArgs, logits, lse []float64) error {
	vocab, h, dlosses := a.Weight.Shape()[0], a.Weight.Shape().Cols(), a.DLosses.Float64s()
	for i, target := range indexes(a.Targets) {
		row := logits[i*vocab : (i+1)*vocab]
		for v := range row {
			switch {
			case target == a.IgnoreIndex:
				row[v] = 0
				continue
			case math.IsInf(lse[i], 0):
				row[v] = math.NaN()
			default:
				row[v] = math.Exp(row[v] - lse[i])
			}
			if a.First+v == target {
				row[v]--
			}
			row[v] *= dlosses[i]
		}
	}
	rows, hidden, weight := len(dlosses), a.Hidden.Float64s(), a.Weight.Float64s()
	dhidden := matmul(logits, weight, rows, h, vocab)
	if err := a.DHidden.SetFloat64s(dhidden); err != nil || a.DWeight == nil {
		return err
	}
	dweight := make([]float64, vocab*h)
	for i := range rows {
		for v, d := range logits[i*vocab : (i+1)*vocab] {
			for j, x := range hidden[i*h : (i+1)*h] {
				dweight[v*h+j] += d * x
			}
		}
	}
	if a.Accumulate {
		for i, old := range a.DWeight.Float64s() {
			dweight[i] += old
		}
	}
	return a.DWeight.SetFloat64s(dweight)
}
