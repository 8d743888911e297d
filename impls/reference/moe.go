package reference

import (
	"slices"

	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// moePermuteFwd implements moe.MoEPermuteFwd.
func moePermuteFwd(a moe.MoEPermuteFwdArgs) error {
	experts := indexes(a.Indices)
	tokens, topk := a.Indices.Shape()[0], a.Indices.Shape()[1]
	pairs := make([]int, len(experts)) // t·topk + k
	for i := range pairs {
		pairs[i] = i
	}
	slices.SortStableFunc(pairs, func(x, y int) int { return experts[x] - experts[y] })
	rowIDMap := make([]float64, len(pairs))
	rows := make([]int, a.Output.Shape()[0])
	for position, pair := range pairs {
		t, k := pair/topk, pair%topk
		rowIDMap[k*tokens+t] = -1
		if position < len(rows) {
			rowIDMap[k*tokens+t] = float64(position)
			rows[position] = t
		}
	}
	if err := copyRows(a.Output, a.Input, rows); err != nil {
		return err
	}
	return a.RowIDMap.SetFloat64s(rowIDMap)
}

// copyRows copies row rows[i] of a matrix to row i of another, bit for bit.
func copyRows(dst, src *tensor.Tensor, rows []int) error {
	for i, r := range rows {
		from, err := src.Select(0, r)
		if err != nil {
			return err
		}
		to, err := dst.Select(0, i)
		if err != nil {
			return err
		}
		if err := to.CopyFrom(from); err != nil {
			return err
		}
	}
	return nil
}

// moeUnpermute implements moe.MoEUnpermuteFwd; the terms of a token are added in ascending k.
func moeUnpermute(a moe.MoEUnpermuteArgs) error {
	tokens, h := a.Output.Shape()[0], a.Output.Shape()[1]
	x, out := a.Input.Float64s(), make([]float64, tokens*h)
	prob := orAll(a.Prob, a.RowIDMap.NumElements(), 1)
	eachEntry(a.RowIDMap, tokens, func(t, k, topk, r int) {
		addScaled(out[t*h:(t+1)*h], prob[t*topk+k], x[r*h:(r+1)*h])
	})
	return a.Output.SetFloat64s(out)
}

// moeUnpermuteBwd implements moe.MoEUnpermuteBwd.
func moeUnpermuteBwd(a moe.MoEUnpermuteBwdArgs) error {
	tokens, h := a.InputBwd.Shape()[0], a.InputBwd.Shape()[1]
	dy, x := a.InputBwd.Float64s(), a.InputFwd.Float64s()
	prob := orAll(a.Prob, a.RowIDMap.NumElements(), 1)
	dx, dprob := make([]float64, len(x)), make([]float64, len(prob))
	eachEntry(a.RowIDMap, tokens, func(t, k, topk, r int) {
		addScaled(dx[r*h:(r+1)*h], prob[t*topk+k], dy[t*h:(t+1)*h])
		dprob[t*topk+k] = dot(dy[t*h:(t+1)*h], x[r*h:(r+1)*h])
	})
	if a.ProbGrad != nil {
		if err := a.ProbGrad.SetFloat64s(dprob); err != nil {
			return err
		}
	}
	return a.ActGrad.SetFloat64s(dx)
}

// eachEntry calls f with token t, choice k of topk, and row r of each entry of a row_id_map that
// has a row.
func eachEntry(rowIDMap *tensor.Tensor, tokens int, f func(t, k, topk, r int)) {
	for i, r := range indexes(rowIDMap) {
		if r >= 0 {
			f(i%tokens, i/tokens, rowIDMap.NumElements()/tokens, r)
		}
	}
}

// moePermuteWithRoutingMap implements moe.MoEPermuteWithRoutingMap.
func moePermuteWithRoutingMap(a moe.MoEPermuteWithRoutingMapArgs) error {
	tokens, experts := a.RoutingMap.Shape()[0], a.RoutingMap.Shape()[1]
	var rows []int
	var index, probs []float64
	for e := range experts {
		for t := range tokens {
			if a.RoutingMap.At(t, e) == 0 {
				continue
			}
			rows, index = append(rows, t), append(index, float64(t))
			if a.Probs != nil {
				probs = append(probs, a.Probs.At(t, e))
			}
		}
	}
	if a.Probs != nil {
		if err := a.OutputProbs.SetFloat64s(probs); err != nil {
			return err
		}
	}
	if err := copyRows(a.Output, a.Tokens, rows); err != nil {
		return err
	}
	return a.SortedIndices.SetFloat64s(index)
}

// moeUnpermuteWithRoutingMap implements moe.MoEUnpermuteWithRoutingMap.
func moeUnpermuteWithRoutingMap(a moe.MoEUnpermuteWithRoutingMapArgs) error {
	h := a.Output.Shape()[1]
	x, out := a.PermutedTokens.Float64s(), make([]float64, a.Output.NumElements())
	for r, t := range indexes(a.SortedIndices) {
		addScaled(out[t*h:(t+1)*h], 1, x[r*h:(r+1)*h])
	}
	return a.Output.SetFloat64s(out)
}

// moeSortChunksFwd implements moe.MoESortChunksFwd.
func moeSortChunksFwd(a moe.MoESortChunksFwdArgs) error {
	sizes := indexes(a.SplitSizes)
	first := make([]int, len(sizes)+1)
	for c, n := range sizes {
		first[c+1] = first[c] + n
	}
	var rows []int
	inverse := make([]float64, a.Input.Shape()[0])
	for _, c := range indexes(a.SortedIdxs) {
		for r := first[c]; r < first[c+1]; r++ {
			inverse[r] = float64(len(rows))
			rows = append(rows, r)
		}
	}
	if err := gather(a.OutputProbs, a.Probs, rows); err != nil {
		return err
	}
	if err := copyRows(a.Output, a.Input, rows); err != nil {
		return err
	}
	return a.InverseRowMap.SetFloat64s(inverse)
}

// moeSortChunksBwd implements moe.MoESortChunksBwd.
func moeSortChunksBwd(a moe.MoESortChunksBwdArgs) error {
	rows := indexes(a.InverseRowMap)
	if err := gather(a.GradInProbs, a.GradProbs, rows); err != nil {
		return err
	}
	return copyRows(a.GradInput, a.GradOutput, rows)
}

// gather copies element index[i] of a vector to element i of another. Both may be nil.
func gather(dst, src *tensor.Tensor, index []int) error {
	if src == nil {
		return nil
	}
	x := src.Float64s()
	out := make([]float64, len(index))
	for i, j := range index {
		out[i] = x[j]
	}
	return dst.SetFloat64s(out)
}

// multiRow implements moe.FusedMultiRowPadding and moe.FusedMultiRowUnpadding.
func multiRow(a moe.MultiRowPaddingArgs) error {
	if err := a.Output.SetFloat64s(make([]float64, a.Output.NumElements())); err != nil {
		return err
	}
	from, to := 0, 0
	for g := range a.InputRows {
		n := min(a.InputRows[g], a.OutputRows[g])
		if err := copyRange(a.Output, to, a.Input, from, n); err != nil {
			return err
		}
		from, to = from+a.InputRows[g], to+a.OutputRows[g]
	}
	return nil
}
