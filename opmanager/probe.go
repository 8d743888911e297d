package opmanager

import (
	"fmt"
	"maps"
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// probes remembers what the availability probes of impls answered. A probe runs
// once an impl until forget is called.
type probes struct {
	asking sync.Mutex // held while probes run, so that none runs twice at a time

	mu      sync.Mutex
	known   map[uint64]string // by the number of the impl; replaced, never changed
	forgets int
}

// answers returns for every impl of a snapshot that has a probe why it is
// unavailable, "" when it is not. It runs the probes that have not answered yet.
func (p *probes) answers(snap *opregistry.Snapshot) map[uint64]string {
	if known, _, open := p.open(snap); len(open) == 0 {
		return known
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	known, forgets, open := p.open(snap)
	if len(open) == 0 {
		return known
	}
	next := make(map[uint64]string, len(known)+len(open))
	maps.Copy(next, known)
	for _, e := range open {
		next[e.Number] = probe(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forgets == forgets {
		p.known = next
	}
	return next
}

// open returns the answers that are known and the impls of a snapshot that have
// not answered.
func (p *probes) open(snap *opregistry.Snapshot) (known map[uint64]string, forgets int, open []opregistry.Entry) {
	p.mu.Lock()
	known, forgets = p.known, p.forgets
	p.mu.Unlock()
	for i := range snap.Ops() {
		for _, e := range snap.Impls(i) {
			if e.Available == nil && len(e.Support.Features) == 0 {
				continue
			}
			if _, answered := known[e.Number]; !answered {
				open = append(open, e)
			}
		}
	}
	return known, forgets, open
}

// probe asks an impl whether it can run on this machine.
func probe(e opregistry.Entry) (reason string) {
	if err := e.Support.Machine(); err != nil {
		return fmt.Sprintf("unavailable: %v", err)
	}
	if e.Available == nil {
		return ""
	}
	defer func() {
		if cause := recover(); cause != nil {
			reason = fmt.Sprintf("unavailable: its probe panicked: %v", cause)
		}
	}()
	if err := e.Available(); err != nil {
		return fmt.Sprintf("unavailable: %v", err)
	}
	return ""
}

func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = nil
	p.forgets++
}
