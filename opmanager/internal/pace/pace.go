// Package pace compares the times of calls by two impls.
package pace

import (
	"slices"
	"time"
)

// Pace is the times of an impl on trial beside those of another one.
type Pace struct{ times map[callKind]*[2]lastTimes }

// callKind is an op and the signature of its calls.
type callKind struct {
	op        string
	signature uint64
}

// lastTimes are the durations of the last calls.
type lastTimes struct {
	n    int
	last [32]time.Duration
}

func (t *lastTimes) add(took time.Duration) {
	t.last[t.n%len(t.last)] = took
	t.n++
}

// median returns the median of the last calls.
func (t *lastTimes) median() time.Duration {
	last := slices.Clone(t.last[:min(t.n, len(t.last))])
	slices.Sort(last)
	return last[len(last)/2]
}

const (
	fewTimes = 3    // calls of a kind that both impls have to serve before their times are compared
	maxKinds = 1024 // of calls whose times are kept
)

// Took records the duration of a call of an op by the impl on trial or the other one.
func (p *Pace) Took(op string, signature uint64, onTrial bool, took time.Duration) {
	kind := callKind{op, signature}
	both := p.times[kind]
	if both == nil {
		if len(p.times) >= maxKinds {
			return
		}
		if p.times == nil {
			p.times = map[callKind]*[2]lastTimes{}
		}
		both = &[2]lastTimes{}
		p.times[kind] = both
	}
	if onTrial {
		both[1].add(took)
	} else {
		both[0].add(took)
	}
}

// Ratio returns the time of the calls that the impl on trial served over that of as many calls of
// the same kinds by the other impl, 0 if that is not known.
func (p *Pace) Ratio() float64 {
	var own, other float64
	for _, both := range p.times {
		if both[0].n < fewTimes || both[1].n < fewTimes {
			continue
		}
		own += float64(both[1].n) * float64(both[1].median())
		other += float64(both[1].n) * float64(both[0].median())
	}
	if other == 0 {
		return 0
	}
	return own / other
}
