package opbench

import (
	"fmt"
	"time"
)

// Side is something that is timed beside others.
type Side struct {
	// Time makes calls and returns how long they took together.
	Time   func(calls int) (time.Duration, error)
	Before func() error  // is called before each sample and not timed; may be nil
	Calls  int           // of a sample
	Burst  int           // samples of a turn; 0 is one
	Settle time.Duration // how long idle threads of the side keep spinning after its turn

	Samples []time.Duration // of a call
	Spent   time.Duration   // in all turns
	Err     error           // why the side has no turns, or no further ones
}

// Clock returns how much time has passed since some moment.
type Clock func() time.Duration

// Elapsed returns a clock of wall time.
func Elapsed() Clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// NewSide returns a side that calls f.
func NewSide(now Clock, f func() error) *Side {
	return &Side{Calls: 1, Time: func(calls int) (time.Duration, error) {
		start := now()
		for range calls {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return now() - start, nil
	}}
}

// WarmUp makes the first calls, and sets how many calls a sample has: as many as take about this
// time.
func (s *Side) WarmUp(sample time.Duration) {
	for range 2 {
		took := s.measure(1)
		s.Calls = 1 + int(sample/max(took, time.Nanosecond))
		if s.Err != nil || took > sample {
			return
		}
	}
}

// measure makes calls and returns how long they took. A panic is an error, as it is under an op
// manager.
func (s *Side) measure(calls int) (took time.Duration) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if s.Err == nil && s.Before != nil {
		s.Err = s.Before()
	}
	if s.Err == nil {
		took, s.Err = s.Time(calls)
	}
	return took
}

// Round gives a turn to each side that has no error. Another side begins with each round.
func Round(n int, sides []*Side) {
	for i := range sides {
		s := sides[(i+n)%len(sides)]
		for range max(s.Burst, 1) {
			if took := s.measure(s.Calls); s.Err == nil {
				s.Spent += took
				s.Samples = append(s.Samples, took/time.Duration(s.Calls))
			}
		}
		time.Sleep(s.Settle)
	}
}
