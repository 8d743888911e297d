//go:build !(amd64 || arm64) || noasm

package layers

// adamVector leaves every element to plain Go.
func adamVector(_, _, _, _ []float32, _ *AdamStep) int { return 0 }

func adamLargestVector(_, _, _, _ []float32, _ *AdamStep) (done int, largest float32) { return 0, 0 }
