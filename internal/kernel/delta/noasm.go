//go:build !amd64 || noasm

package delta

func stepVector([]float32, *Position, []float32, []float32) (done int) { return 0 }
