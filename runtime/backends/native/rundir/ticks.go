package rundir

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// niceTicks labels an axis at multiples of 1, 2, 2.5 or 5 times a power of ten.
type niceTicks struct {
	most  int  // labels at most
	whole bool // no fractions
}

var _ plot.Ticker = niceTicks{}

// Ticks returns the labelled positions from lo to hi.
func (t niceTicks) Ticks(lo, hi float64) []plot.Tick {
	step, digits := t.step(hi - lo)
	var ticks []plot.Tick
	first := math.Ceil(lo / step)
	for i := range t.most + 1 { // and no further, also where first+1 is first
		v := (first + float64(i)) * step
		if !(v <= hi) {
			break
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', digits, 64)})
	}
	return ticks
}

// step returns the smallest nice distance that needs no more labels than wanted,
// and the digits behind the point that its multiples have.
func (t niceTicks) step(span float64) (step float64, digits int) {
	low := math.Floor(math.Log10(span / float64(t.most)))
	if t.whole {
		low = max(low, 0)
	}
	for power := low; ; power++ {
		for _, base := range []float64{1, 2, 2.5, 5} {
			if t.whole && power == 0 && base == 2.5 {
				continue
			}
			step = base * math.Pow(10, power)
			if span/step >= float64(t.most) {
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
