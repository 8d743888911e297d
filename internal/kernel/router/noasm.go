//go:build !amd64 || noasm

package router

func vectors() bool { return false }

func largestVector(_, _ []float32, _ int) bool { return false }

func chooseAVX512(*byte, *float32, *float32, int, float32) int { return 0 }

func selectAVX512(*float32, *float32, *byte, int, float32) {}

func softmaxGradientAVX512(*float32, int, *float32, int, *float32, int, *byte, int, int, int, float32, int) {
}

func sigmoidGradientAVX512(*float32, int, *float32, int, *float32, int, *byte, int, int, int, float32, float32) {
}
