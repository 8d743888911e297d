//go:build !amd64 || noasm

package fused

// On machines without assembly these functions leave every element to plain Go.

func mulScaleVector(_, _, _ []float32, _ float32) int { return 0 }

func scaleVector(_, _ []float32, _ float32) (int, bool) { return 0, true }

func momentsVector(_ []float32) (done int, sum, squares float64) { return 0, 0, 0 }

func centerVector(_, _, _, _ []float32, _, _, _ float32) int { return 0 }

func normGradVector(_ *Gradient) bool { return false }

func rotateHalvesVector(_ Turns, _, _ []float32, _ Pitch, _, _ []float32, _ Pitch, _, _, _, _ []float32) int {
	return 0
}

func rotatePairsVector(_, _, _, _ []float32) int { return 0 }

func sinCosVector(_, _, _ []float32) int { return 0 }

func adamVector(_, _, _, _ []float32, _ *AdamStep) int { return 0 }

func sumSquaresVector(_ []float32) (int, float64) { return 0, 0 }
