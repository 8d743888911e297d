package host

import "github.com/primus-fl/primus/internal/kernel/vector"

// MaxSumParts bounds the partial sums of the gradient of a vector.
const MaxSumParts = 32

// PartRows cuts memory into one row per part; no two rows share a cache line.
func PartRows(memory []float32, parts, cols int) Matrix {
	return Matrix{Data: memory, Rows: parts, Cols: cols, Pitch: RoundUp(cols, LineFloats)}
}

// AddParts adds up the rows of all parts, in order, and stores the sum to a row.
func AddParts(sum, parts Matrix) {
	var buf [LineFloats * LineFloats]float32
	for at := 0; at < sum.Cols; at += len(buf) {
		line := buf[:min(len(buf), sum.Cols-at)]
		clear(line)
		for part := range parts.Rows {
			vector.Add(line, line, parts.Row(part)[at:])
		}
		sum.Put(0, at, line)
	}
}

// LineFloats is the number of float32s in a cache line.
const LineFloats = 16

// RoundUp returns the smallest multiple of unit that is at least n.
func RoundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
