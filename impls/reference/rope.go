package reference

import (
	"math"
	"slices"

	attentionops "github.com/primus-fl/primus/ops/attention"
	ropeops "github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// fusedRopeForward implements rope.FusedRopeForward.
func fusedRopeForward(a ropeops.FusedRopeArgs) error { return rope(a, rotated) }

// fusedRopeBackward implements rope.FusedRopeBackward.
func fusedRopeBackward(a ropeops.FusedRopeArgs) error { return rope(a, rotatedBack) }

// rotation writes the pair (i, j) of a head vector, rotated by the angles of its position.
type rotation func(x, y, theta []float64, i, j int)

func rotated(x, y, theta []float64, i, j int) {
	y[i] = x[i]*math.Cos(theta[i]) - x[j]*math.Sin(theta[i])
	y[j] = x[j]*math.Cos(theta[j]) + x[i]*math.Sin(theta[j])
}

func rotatedBack(dy, dx, theta []float64, i, j int) {
	dx[i] = dy[i]*math.Cos(theta[i]) + dy[j]*math.Sin(theta[j])
	dx[j] = dy[j]*math.Cos(theta[j]) - dy[i]*math.Sin(theta[i])
}

func rope(a ropeops.FusedRopeArgs, pair rotation) error {
	shape := a.Input.Shape()
	heads := shape[len(shape)-2]
	x := a.Input.Float64s()
	turn(x, heads, a.Freqs, positions(a), a.Interleaved, pair)
	return a.Output.SetFloat64s(x)
}

// turn rotates the vectors of all heads of each token in place.
func turn(x []float64, heads int, angles *tensor.Tensor, positions []int, interleaved bool, pair rotation) {
	d2, freqs := angles.Shape().Cols(), angles.Float64s()
	d := len(x) / max(heads*len(positions), 1)
	for token, position := range positions {
		theta := freqs[position*d2 : (position+1)*d2]
		for h := range heads {
			y := x[(token*heads+h)*d:][:d]
			old := slices.Clone(y)
			for p := range d2 / 2 {
				i, j := p, p+d2/2
				if interleaved {
					i, j = 2*p, 2*p+1
				}
				pair(old, y, theta, i, j)
			}
		}
	}
}

// positions returns the row of the angle table of each token, in the order of the input.
func positions(a ropeops.FusedRopeArgs) []int {
	shape := a.Input.Shape()
	start := func(int) int { return 0 }
	if a.StartPositions != nil {
		given := indexes(a.StartPositions)
		start = func(b int) int { return given[b] }
	}
	var out []int
	switch a.QKVFormat {
	case attentionops.SBHD:
		for s := range shape[0] {
			for b := range shape[1] {
				out = append(out, start(b)+globalPosition(a, s, shape[0]))
			}
		}
	case attentionops.BSHD:
		for b := range shape[0] {
			for s := range shape[1] {
				out = append(out, start(b)+globalPosition(a, s, shape[1]))
			}
		}
	default:
		ends := indexes(a.CuSeqlens)
		for b := range len(ends) - 1 {
			length := (ends[b+1] - ends[b]) / max(a.CPSize, 1)
			for s := range length {
				out = append(out, start(b)+globalPosition(a, s, length))
			}
		}
	}
	return out
}

// globalPosition returns the position, in the sequence that context parallelism has cut into
// 2·CPSize chunks, of local position s of a sequence of local length n.
func globalPosition(a ropeops.FusedRopeArgs, s, n int) int {
	if a.CPSize <= 1 {
		return s
	}
	chunk, within := a.CPRank, s
	if s >= n/2 {
		chunk, within = 2*a.CPSize-1-a.CPRank, s-n/2
	}
	return chunk*(n/2) + within
}
