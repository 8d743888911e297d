package opmanager

import (
	"fmt"
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// probes remembers what the availability probes of impls answered. A probe runs
// once an impl until forget is called.
type probes struct {
	mu      sync.Mutex
	answers map[probeKey]string
}

type probeKey struct{ source, op, id string }

// reason returns why the impl is unavailable, "" when it is not.
func (p *probes) reason(e opregistry.Entry) string {
	if e.Available == nil {
		return ""
	}
	key := probeKey{e.Source, e.Op.Name(), e.ID}
	p.mu.Lock()
	answer, known := p.answers[key]
	p.mu.Unlock()
	if known {
		return answer
	}
	answer = probe(e.Available)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil {
		p.answers = map[probeKey]string{}
	}
	p.answers[key] = answer
	return answer
}

func probe(available func() error) (reason string) {
	defer func() {
		if cause := recover(); cause != nil {
			reason = fmt.Sprintf("unavailable: its probe panicked: %v", cause)
		}
	}()
	if err := available(); err != nil {
		return fmt.Sprintf("unavailable: %v", err)
	}
	return ""
}

func (p *probes) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = nil
}
