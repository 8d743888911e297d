//go:build amd64 && !noasm

package layers

import "github.com/primus-fl/primus/internal/cpufeat"

func routerVectors() bool { return cpufeat.Has(cpufeat.AVX512) }

func largestVector(top, x []float32, ranks int) bool {
	n := len(x) / Tokens
	if !cpufeat.Has(cpufeat.AVX512) || n == 0 {
		return false
	}
	switch ranks {
	case 2:
		largest2AVX512(&top[0], &x[0], n)
	case 4:
		largest4AVX512(&top[0], &x[0], n)
	case 8:
		largest8AVX512(&top[0], &x[0], n)
	case 16:
		largest16AVX512(&top[0], &x[0], n)
	default:
		return false
	}
	return true
}

// The functions largest sort the scores of n > 0 experts.

//go:noescape
func largest2AVX512(top, x *float32, n int)

//go:noescape
func largest4AVX512(top, x *float32, n int)

//go:noescape
func largest8AVX512(top, x *float32, n int)

//go:noescape
func largest16AVX512(top, x *float32, n int)

// chooseAVX512 is Choose for n > 0 scores.
//
//go:noescape
func chooseAVX512(chosen *byte, kept, x *float32, n int, least float32) (count int)

// selectAVX512 is Select for n > 0 elements.
//
//go:noescape
func selectAVX512(dst, x *float32, chosen *byte, n int, other float32)

// softmaxGradientAVX512 is SoftmaxGradient for rows > 0 and cols > 0; all is 0 or 1.
//
//go:noescape
func softmaxGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale float32, all int)

// sigmoidGradientAVX512 is SigmoidGradient for rows > 0 and cols > 0; sums is 0 for plain and 1
// otherwise.
//
//go:noescape
func sigmoidGradientAVX512(dx *float32, dxPitch int, s *float32, sPitch int, grad *float32, gradPitch int, chosen *byte, chosenPitch, rows, cols int, scale, sums float32)
