package layers

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

const (
	// Tokens is the number of tokens whose scores Largest sorts at a time.
	Tokens = 16

	// MaxTopk bounds how many scores of a token Largest finds.
	MaxTopk = 16
)

// Ranks returns how many scores of a token Largest finds if it has to find k of them: the power of
// two from 2 to MaxTopk that is not less.
func Ranks(k int) int {
	for n := 2; n < MaxTopk; n *= 2 {
		if k <= n {
			return n
		}
	}
	return MaxTopk
}

// Largest stores the largest scores of Tokens tokens in descending order. x holds the scores of an
// expert side by side, and top the scores of a rank, of which there are as many as Ranks returns:
//
//	top[r·Tokens+t] = the score of rank r among x[e·Tokens+t] for every expert e
//
// NaN counts as +Inf, and an expert that is missing as −Inf. Zeros may change their signs.
func Largest(top, x []float32) {
	race.Read(x)
	race.Write(top)
	if ranks := len(top) / Tokens; !largestVector(top, x, ranks) {
		largestGo(top, x, ranks)
	}
}

func largestGo(top, x []float32, ranks int) {
	negative := float32(math.Inf(-1))
	for i := range top {
		top[i] = negative
	}
	for ; len(x) >= Tokens; x = x[Tokens:] {
		for t, v := range x[:Tokens] {
			if v != v {
				v = float32(math.Inf(1))
			}
			for r := t; r < ranks*Tokens; r += Tokens {
				if v > top[r] {
					v, top[r] = top[r], v
				}
			}
		}
	}
}

// Choose marks the scores that are not below least and returns how many there are. The others are
// replaced in kept, which may be x:
//
//	chosen[i], kept[i] = 1, x[i]      where x[i] ≥ least
//	chosen[i], kept[i] = 0, −Inf      elsewhere
func Choose(chosen []byte, kept, x []float32, least float32) int {
	n := len(x)
	chosen, kept = chosen[:n], kept[:n]
	race.Read(x)
	race.Write(chosen)
	race.Write(kept)
	if n > 0 && routerVectors() {
		return chooseAVX512(&chosen[0], &kept[0], &x[0], n, least)
	}
	count := 0
	for i, v := range x {
		if v >= least {
			chosen[i], kept[i] = 1, v
			count++
		} else {
			chosen[i], kept[i] = 0, float32(math.Inf(-1))
		}
	}
	return count
}

// Select copies what is chosen:
//
//	dst[i] = x[i]      where chosen[i] is not 0
//	dst[i] = other     elsewhere
//
// dst may be x.
func Select(dst, x []float32, chosen []byte, other float32) {
	n := len(x)
	dst, chosen = dst[:n], chosen[:n]
	race.Read(x)
	race.Read(chosen)
	race.Write(dst)
	if n > 0 && routerVectors() {
		selectAVX512(&dst[0], &x[0], &chosen[0], n, other)
		return
	}
	for i, v := range x {
		if chosen[i] == 0 {
			v = other
		}
		dst[i] = v
	}
}
