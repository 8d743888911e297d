package chart

import (
	"math"
	"strconv"
)

// Ticks returns at most limit ticks from lo to hi, at multiples of 1, 2, 2.5 or 5 times a power of
// ten. With whole they are integers.
func Ticks(lo, hi float64, limit int, whole bool) []Tick {
	step, digits := tickStep(hi-lo, limit, whole)
	var ticks []Tick
	first := math.Ceil(lo / step)
	for i := range limit + 1 { // bounded, as first+1 is first where the values are huge
		v := (first + float64(i)) * step
		if !(v <= hi) {
			break
		}
		ticks = append(ticks, Tick{Value: v, Label: strconv.FormatFloat(v, 'f', digits, 64)})
	}
	return ticks
}

// tickStep returns the smallest distance between ticks that needs no more than limit of them, and
// the digits after the decimal point that its multiples have.
func tickStep(span float64, limit int, whole bool) (step float64, digits int) {
	low := math.Floor(math.Log10(span / float64(limit)))
	if whole {
		low = max(low, 0)
	}
	for power := low; ; power++ {
		for _, base := range []float64{1, 2, 2.5, 5} {
			if whole && power == 0 && base == 2.5 {
				continue
			}
			step = base * math.Pow(10, power)
			if span/step >= float64(limit) {
				continue
			}
			digits = max(int(-power), 0)
			if base == 2.5 {
				digits = max(int(1-power), 0)
			}
			return step, digits
		}
	}
}
