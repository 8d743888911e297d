package main

import (
	"math"
	"time"
)

// contest is one case: flagos and a peer that do the same work.
type contest struct {
	group, name string
	unit        string // of the rates
	prepare     func() (match, error)
}

// match is a contest with its operands in memory. oursWork and peerWork are the work of one call,
// in billions of what the unit counts.
type match struct {
	ours, peer         side
	oursWork, peerWork float64
	peerName           string
}

// side makes one call and returns how long it took. A side that is absent has a reason.
type side struct {
	call   func() (time.Duration, error)
	settle time.Duration // how long its idle threads keep spinning
	absent error
}

// clock returns how much time has passed since it was made.
type clock func() time.Duration

// elapsed is a clock of wall time.
func elapsed() clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// timed is a side in this process.
func timed(now clock, call func() error) side {
	return side{call: func() (time.Duration, error) {
		start := now()
		err := call()
		return now() - start, err
	}}
}

// limits say when a case ends: after this time, but not before this number of rounds.
type limits struct {
	time   time.Duration
	rounds int
}

// burst is how often a side is called in a row: the first call finds the threads
// asleep and the caches full of the other side's data.
const burst = 4

func (c *contest) run(l limits) (row, error) {
	m, err := c.prepare()
	if err != nil {
		return row{}, err
	}
	sides := []side{m.ours, m.peer}
	if m.peer.absent != nil {
		sides = sides[:1]
	}
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	start := time.Now()
	for round := 0; round < l.rounds || time.Since(start) < l.time; round++ {
		for i := range sides {
			at := (i + round) % len(sides)
			for range burst {
				took, err := sides[at].call()
				if err != nil {
					return row{}, err
				}
				best[at] = min(best[at], took)
			}
			time.Sleep(sides[at].settle)
		}
	}
	r := row{Group: c.group, Case: c.name, Unit: c.unit, Flagos: m.oursWork / best[0].Seconds(), PeerName: m.peerName}
	if m.peer.absent != nil {
		r.Absent = m.peer.absent.Error()
		return r, nil
	}
	r.Peer = m.peerWork / best[1].Seconds()
	r.Ratio = r.Flagos / r.Peer
	return r, nil
}
