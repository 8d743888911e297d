// Package stats summarises repeated measurements of one figure.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Median returns the middle of at least one value, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile returns the smallest value that is at least as large as a share p of all values, or
// NaN without values.
func Percentile(p float64, values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(p*float64(len(values)))), 1)-1]
}

// Confidence is the confidence of MedianInterval.
const Confidence = 0.95

// Interval is a range that contains a figure with some confidence.
type Interval struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// MedianInterval returns an interval for the median of the distribution that at least one value was
// drawn from, whatever that distribution is. Its ends are two of the values, equally far from the
// smallest and the largest, and as close together as the confidence of 95 % allows. Fewer than six
// values do not reach that confidence; their interval is the whole range, with the confidence that
// this has.
//
// Source: the number of values below the median is binomial with a probability of ½.
func MedianInterval(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	// The chance that at most k of n values are below the median is the distribution function of
	// the binomial distribution, which is an incomplete beta function.
	confidence := func(k int) float64 { return 1 - 2*mathext.RegIncBeta(float64(n-k), float64(k+1), 0.5) }
	outside := 0 // values that are left out at either end
	for 2*(outside+2) <= n && confidence(outside+1) >= Confidence {
		outside++
	}
	return Interval{Low: sorted[outside], High: sorted[n-1-outside], Confidence: max(0, confidence(outside))}
}
