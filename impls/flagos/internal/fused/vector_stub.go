//go:build !amd64 || noasm

package fused

// The forms of machines without assembly: they leave every element to plain Go.

func mulScaleVector(_, _, _ []float32, _ float32) int { return 0 }

func scaleVector(_, _ []float32, _ float32) (int, bool) { return 0, true }

func dot3Vector(_, _, _ []float32) (int, float32) { return 0, 0 }

func normGradRows(_, _, _ Rows, _, _, _ []float32) bool { return false }

func normGradVector(_, _, _, _, _ []float32, _, _ float32) int { return 0 }

func rotateHalvesVector(_ Turns, _, _ []float32, _ Pitch, _, _ []float32, _ Pitch, _, _, _, _ []float32) int {
	return 0
}

func rotatePairsVector(_, _, _, _ []float32) int { return 0 }

func sinCosVector(_, _, _ []float32) int { return 0 }

func adamVector(_, _, _, _ []float32, _ *AdamStep) int { return 0 }

func sumSquaresVector(_ []float32) (int, float64) { return 0, 0 }
