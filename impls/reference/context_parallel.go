package reference

import (
	"math"

	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// thdGetPartitionedIndices implements attention.THDGetPartitionedIndices.
func thdGetPartitionedIndices(a attentionops.THDGetPartitionedIndicesArgs) error {
	var out []float64
	cu := indexes(a.CuSeqlens)
	for b := range len(cu) - 1 {
		chunk := (cu[b+1] - cu[b]) / (2 * a.WorldSize)
		for _, c := range []int{a.Rank, 2*a.WorldSize - 1 - a.Rank} {
			for i := range chunk {
				out = append(out, float64(cu[b]+c*chunk+i))
			}
		}
	}
	return a.Output.SetFloat64s(out)
}

// thdReadHalfTensor implements attention.THDReadHalfTensor.
func thdReadHalfTensor(a attentionops.THDReadHalfTensorArgs) error {
	if err := a.Half.SetFloat64s(make([]float64, a.Half.NumElements())); err != nil {
		return err
	}
	src, dst, err := parts(a.Tensor, a.Half)
	if err != nil {
		return err
	}
	cu := indexes(a.CuSeqlens)
	for n := range src {
		for b := range len(cu) - 1 {
			half := (cu[b+1] - cu[b]) / 2
			if err := copyRange(dst[n], cu[b]/2, src[n], cu[b]+a.HalfIdx*half, half); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns two tensors, or the entries of their first axis when they have four.
func parts(x, y *tensor.Tensor) (xs, ys []*tensor.Tensor, err error) {
	if len(x.Shape()) == 3 {
		return []*tensor.Tensor{x}, []*tensor.Tensor{y}, nil
	}
	for n := range x.Shape()[0] {
		px, err := x.Select(0, n)
		if err != nil {
			return nil, nil, err
		}
		py, err := y.Select(0, n)
		if err != nil {
			return nil, nil, err
		}
		xs, ys = append(xs, px), append(ys, py)
	}
	return xs, ys, nil
}

// lseIndex returns the index of position i of sequence b and a head in log-sum-exps; packed
// sequences begin at first.
func lseIndex(lse *tensor.Tensor, packed bool, first, b, head, i int) int {
	s := lse.Shape()
	if packed {
		return head*s[1] + first + i
	}
	return (b*s[1]+head)*s[2] + i
}

// secondHalves calls f with the indexes, in lse and in half, of each log-sum-exp of the second half
// of a sequence.
func secondHalves(lse, half, cuSeqlens *tensor.Tensor, packed bool, f func(at, atHalf int)) {
	cu, heads := indexes(cuSeqlens), lse.Shape()[len(lse.Shape())-2]
	for b := range len(cu) - 1 {
		n := (cu[b+1] - cu[b]) / 2
		for h := range heads {
			for i := range n {
				f(lseIndex(lse, packed, cu[b], b, h, n+i), lseIndex(half, packed, cu[b]/2, b, h, i))
			}
		}
	}
}

// thdReadSecondHalfLSE implements attention.THDReadSecondHalfLSE.
func thdReadSecondHalfLSE(a attentionops.THDReadSecondHalfLSEArgs) error {
	lse, out := a.LSE.Float64s(), make([]float64, a.HalfLSE.NumElements())
	secondHalves(a.LSE, a.HalfLSE, a.CuSeqlens, a.LSEPacked, func(at, atHalf int) { out[atHalf] = lse[at] })
	return a.HalfLSE.SetFloat64s(out)
}

// thdSecondHalfLSECorrection implements attention.THDSecondHalfLSECorrection.
func thdSecondHalfLSECorrection(a attentionops.THDSecondHalfLSECorrectionArgs) error {
	lse, step := a.LSE.Float64s(), a.LSEPerStep.Float64s()
	secondHalves(a.LSE, a.LSEPerStep, a.CuSeqlens, a.LSEPacked, func(at, atHalf int) {
		lse[at] = logSumExp([]float64{lse[at], step[atHalf]})
	})
	return a.LSE.SetFloat64s(lse)
}

// thdOutCorrection implements attention.THDOutCorrection.
func thdOutCorrection(a attentionops.THDOutCorrectionArgs) error {
	out, step := a.Out.Float64s(), a.OutPerStep.Float64s()
	lse, lseStep := a.LSE.Float64s(), a.LSEPerStep.Float64s()
	heads, d := a.Out.Shape()[1], a.Out.Shape()[2]
	cu := indexes(a.CuSeqlens)
	for b := range len(cu) - 1 {
		n, skip, first := cu[b+1]-cu[b], 0, cu[b]
		if a.OnlySecondHalf {
			n, skip, first = n/2, n/2, cu[b]/2
		}
		for i := range n {
			for h := range heads {
				f := math.Exp(lseStep[lseIndex(a.LSEPerStep, a.LSEPacked, first, b, h, i)] - lse[lseIndex(a.LSE, a.LSEPacked, cu[b], b, h, skip+i)])
				y, x := out[((cu[b]+skip+i)*heads+h)*d:], step[((first+i)*heads+h)*d:]
				for e := range d {
					if x[e] != 0 {
						y[e] += x[e] * f
					}
				}
			}
		}
	}
	return a.Out.SetFloat64s(out)
}

// thdGradCorrection implements attention.THDGradCorrection.
func thdGradCorrection(a attentionops.THDGradCorrectionArgs) error {
	s := a.Grad.Shape()
	last := len(s) - 3
	tokens, stepTokens, size := s[last], a.GradPerStep.Shape()[last], s[last+1]*s[last+2]
	copies := 1
	if last > 0 {
		copies = s[0]
	}
	grad, step := a.Grad.Float64s(), a.GradPerStep.Float64s()
	cu := indexes(a.CuSeqlens)
	correct := func(x attentionops.Correction, to, from int) {
		for e := range size {
			switch x {
			case attentionops.AddCorrection:
				grad[to*size+e] += step[from*size+e]
			case attentionops.CopyCorrection:
				grad[to*size+e] = step[from*size+e]
			case attentionops.NoCorrection:
			default:
				panic("BUG: attention: unknown correction")
			}
		}
	}
	for n := range copies {
		for b := range len(cu) - 1 {
			half := (cu[b+1] - cu[b]) / 2
			for i := range half {
				first, second := cu[b]+i, cu[b]+half+i
				fromFirst, fromSecond := first, second
				if a.FirstHalf == attentionops.NoCorrection || a.SecondHalf == attentionops.NoCorrection {
					fromFirst, fromSecond = cu[b]/2+i, cu[b]/2+i
				}
				correct(a.FirstHalf, n*tokens+first, n*stepTokens+fromFirst)
				correct(a.SecondHalf, n*tokens+second, n*stepTokens+fromSecond)
			}
		}
	}
	return a.Grad.SetFloat64s(grad)
}
