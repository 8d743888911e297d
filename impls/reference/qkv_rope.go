package reference

import (
	ropeops "github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// fusedQKVRopeForward implements rope.FusedQKVRopeForward.
func fusedQKVRopeForward(a ropeops.FusedQKVRopeArgs) error {
	qkv, at := a.QKV.Float64s(), positions(tokens(a))
	parts := make([][]float64, 3)
	eachPart(a, func(part, lo, hi int) { parts[part] = append(parts[part], qkv[lo:hi]...) })
	turn(parts[0], a.Q.Shape()[2], a.QFreqs, at, a.Interleaved, rotated)
	turn(parts[1], a.K.Shape()[2], a.KFreqs, at, a.Interleaved, rotated)
	for i, t := range []*tensor.Tensor{a.Q, a.K, a.V} {
		if err := t.SetFloat64s(parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// fusedQKVRopeBackward implements rope.FusedQKVRopeBackward.
func fusedQKVRopeBackward(a ropeops.FusedQKVRopeArgs) error {
	qkv, at := make([]float64, a.QKV.NumElements()), positions(tokens(a))
	parts := [][]float64{a.Q.Float64s(), a.K.Float64s(), a.V.Float64s()}
	turn(parts[0], a.Q.Shape()[2], a.QFreqs, at, a.Interleaved, rotatedBack)
	turn(parts[1], a.K.Shape()[2], a.KFreqs, at, a.Interleaved, rotatedBack)
	eachPart(a, func(part, lo, hi int) {
		copy(qkv[lo:hi], parts[part])
		parts[part] = parts[part][hi-lo:]
	})
	return a.QKV.SetFloat64s(qkv)
}

// eachPart calls f with the range of each part, 0 to 2, of each group of each token in the elements
// of the fused projection.
func eachPart(a ropeops.FusedQKVRopeArgs, f func(part, lo, hi int)) {
	at := 0
	for range a.QKV.Shape().Rows() {
		for part, n := range a.QKVSplitArgList {
			f(part, at, at+n)
			at += n
		}
	}
}

// tokens returns a call whose positions are those of the fused projection.
func tokens(a ropeops.FusedQKVRopeArgs) ropeops.FusedRopeArgs {
	t := ropeops.FusedRopeArgs{Input: a.QKV, QKVFormat: a.QKVFormat, StartPositions: a.StartPositions, CPSize: a.CPSize, CPRank: a.CPRank}
	if a.CPSize > 1 {
		t.StartPositions = nil
	}
	return t
}
