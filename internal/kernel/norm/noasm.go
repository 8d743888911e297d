//go:build !amd64 || noasm

package norm

// Without assembly these functions leave every element to plain Go.

func momentsVector([]float32) (done int, sum, squares float64) { return 0, 0, 0 }

func centerVector(_, _, _, _ []float32, _, _, _ float32) int { return 0 }

func normGradVector(*Gradient) bool { return false }
