package stats

import (
	"fmt"
	"slices"
	"time"
)

// Spread summarises repeated measurements of one time, in milliseconds.
type Spread struct {
	Median   float64  `json:"median"`
	Interval Interval `json:"median_interval"`
	Min      float64  `json:"min"`
	Max      float64  `json:"max"`
	Count    int      `json:"count"`
}

// SpreadOf returns the spread of at least one time.
func SpreadOf(times []time.Duration) Spread {
	ms := make([]float64, len(times))
	for i, t := range times {
		ms[i] = 1e3 * t.Seconds()
	}
	return Spread{Median: Median(ms), Interval: MedianInterval(ms), Min: slices.Min(ms), Max: slices.Max(ms), Count: len(ms)}
}

// String returns the spread as text.
func (s Spread) String() string {
	return fmt.Sprintf("%.4g ms, median of %d (%.4g to %.4g with %.0f %% confidence; all %.4g to %.4g)",
		s.Median, s.Count, s.Interval.Low, s.Interval.High, 100*s.Interval.Confidence, s.Min, s.Max)
}

// Share returns part of whole, or 0 if there is no whole.
func Share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}
