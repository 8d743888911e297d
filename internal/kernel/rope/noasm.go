//go:build !amd64 || noasm

package rope

// Without assembly these functions leave every element to plain Go.

func rotateHalvesVector(_ Turns, _, _ []float32, _ Pitch, _, _ []float32, _ Pitch, _, _, _, _ []float32) int {
	return 0
}

func rotatePairsVector(_, _, _, _ []float32) int { return 0 }

func sinCosVector(_, _, _ []float32) int { return 0 }

func copyHeadsVector(_ Turns, _ []float32, _ Pitch, _ []float32, _ Pitch) bool { return false }
