//go:build !amd64 || noasm

package layers

// Without assembly these functions leave every element to plain Go.

func momentsVector([]float32) (done int, sum, squares float64) { return 0, 0, 0 }

func centerVector(_, _, _, _ []float32, _, _, _ float32) int { return 0 }

func normGradVector(*Gradient) bool { return false }

func rotateHalvesVector(_ Turns, _, _ []float32, _ Pitch, _, _ []float32, _ Pitch, _, _, _, _ []float32) int {
	return 0
}

func rotatePairsVector(_, _, _, _ []float32) int { return 0 }

func sinCosVector(_, _, _ []float32) int { return 0 }

func copyHeadsVector(_ Turns, _ []float32, _ Pitch, _ []float32, _ Pitch) bool { return false }

func routerVectors() bool { return false }

func largestVector(_, _ []float32, _ int) bool { return false }

func chooseAVX512(*byte, *float32, *float32, int, float32) int { return 0 }

func selectAVX512(*float32, *float32, *byte, int, float32) {}

func softmaxGradientAVX512(*float32, int, *float32, int, *float32, int, *byte, int, int, int, float32, int) {
}

func sigmoidGradientAVX512(*float32, int, *float32, int, *float32, int, *byte, int, int, int, float32, float32) {
}

func deltaStepVector([]float32, *DeltaPosition, []float32, []float32) (done int) { return 0 }
