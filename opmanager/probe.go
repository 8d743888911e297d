package opmanager

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// probes holds the results of the availability probes of impls. The probe of an impl runs once,
// until forget is called.
type probes struct {
	running sync.Mutex // held while probes run, so that each runs once

	mu      sync.Mutex
	results map[uint64]string // by the number of the impl; replaced, never changed
	forgets int
}

// answers returns for every impl of a snapshot that has a probe the reason why it is unavailable,
// "" if it is available. It runs the probes that have not run yet.
func (p *probes) answers(snap *opregistry.Snapshot) map[uint64]string {
	if results, _, pending := p.pending(snap); len(pending) == 0 {
		return results
	}
	p.running.Lock()
	defer p.running.Unlock()
	results, forgets, pending := p.pending(snap)
	if len(pending) == 0 {
		return results
	}
	next := make(map[uint64]string, len(results)+len(pending))
	maps.Copy(next, results)
	for _, e := range pending {
		next[e.Number] = probe(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forgets == forgets {
		p.results = next
	}
	return next
}

// pending returns the results so far and the impls of a snapshot whose probes have not run.
func (p *probes) pending(snap *opregistry.Snapshot) (results map[uint64]string, forgets int, pending []opregistry.Entry) {
	p.mu.Lock()
	results, forgets = p.results, p.forgets
	p.mu.Unlock()
	for i := range snap.Ops() {
		for _, e := range snap.Impls(i) {
			if e.Available == nil && len(e.Support.Features) == 0 {
				continue
			}
			if _, ok := results[e.Number]; !ok {
				pending = append(pending, e)
			}
		}
	}
	return results, forgets, pending
}

// probe returns the reason why an impl cannot run on this machine, "" if it can.
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
	if err := e.Available(); errors.Is(err, opregistry.ErrNotNeeded) {
		return err.Error()
	} else if err != nil {
		return fmt.Sprintf("unavailable: %v", err)
	}
	return ""
}

// forget discards the results, so that every probe runs again.
func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = nil
	p.forgets++
}
