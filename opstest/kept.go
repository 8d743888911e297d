package opstest

import (
	"fmt"
	"slices"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

const (
	repeatedRounds = 9
	repeatedTimes  = 3                      // how much faster calls with equal operands may be
	repeatedLeast  = 200 * time.Microsecond // shorter calls say nothing
)

// Kept makes calls with other operands and with equal ones in turn. It says how much longer the
// former take, if that is so much that the impl must keep the results of calls with equal operands,
// as a benchmark makes them; "" if it is not.
func (w *Workload) Kept(x *opregistry.Exec) (string, error) {
	if w.last == nil {
		return "", nil
	}
	var equal, others []time.Duration
	for i := range repeatedRounds {
		if err := w.last.SetFloat64s([]float64{1 / float64(2+i)}); err != nil {
			return "", err
		}
		for _, times := range []*[]time.Duration{&others, &equal} {
			took, err := w.Run(x)
			if err != nil {
				return "", err
			}
			*times = append(*times, took)
		}
	}
	slices.Sort(equal)
	median, least := equal[len(equal)/2], slices.Min(others)
	if least < repeatedLeast || least < repeatedTimes*median {
		return "", nil
	}
	return fmt.Sprintf("calls with equal operands take %v, and at least %v with one element that is another: it keeps results", median, least), nil
}
