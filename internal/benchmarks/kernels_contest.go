package main

import (
	"errors"
	"slices"
	"time"

	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/tensor"
)

// contest is one case: flagos and a peer that do the same work.
type contest struct {
	group, name string
	unit        string // of the rates
	once        bool   // calls are so long that a burst has one
	prepare     func(m *opbench.Maker) (match, error)
}

// match is a contest with its operands in memory. oursWork and peerWork are the work of one call,
// in billions of what the unit counts.
type match struct {
	ours, peer         *opbench.Side
	oursWork, peerWork float64
	peerName           string
}

// limits say when a case ends: after this time, but not before this number of rounds.
type limits struct {
	time   time.Duration
	rounds int
}

// burst is how often a side is called in a row: the first call finds the threads
// asleep and the caches full of the other side's data.
const burst = 4

// run measures a contest. A peer that has an error at the beginning is absent.
func (b *bench) run(c contest, l limits) (r kernelRow, err error) {
	maker := opbench.NewMaker(b.memory, tensor.F32)
	defer func() { err = errors.Join(err, maker.Close()) }()
	m, err := c.prepare(maker)
	if err != nil {
		return r, err
	}
	r = kernelRow{Group: c.group, Case: c.name, Threads: b.threads, Unit: c.unit, PeerName: m.peerName}
	sides := []*opbench.Side{m.ours}
	if m.peer.Err == nil {
		sides = append(sides, m.peer)
	} else {
		r.Absent = m.peer.Err.Error()
	}
	for _, s := range sides {
		if s.Before != nil { // what flagos saves for a backward op stays
			s.Err = errors.Join(s.Err, s.Before())
			s.Before = nil
		}
		if s.Burst = burst; c.once {
			s.Burst = 1
		}
	}
	start := time.Now()
	for round := 0; round < l.rounds || time.Since(start) < l.time; round++ {
		opbench.Round(round, sides)
		for _, s := range sides {
			if s.Err != nil {
				return r, s.Err
			}
		}
	}
	r.Flagos = m.oursWork / slices.Min(m.ours.Samples).Seconds()
	if r.Absent == "" {
		r.Peer = m.peerWork / slices.Min(m.peer.Samples).Seconds()
		r.Ratio = r.Flagos / r.Peer
	}
	return r, nil
}
