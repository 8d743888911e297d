package tuning

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager"
)

// maxKept bounds the memory of the calls that a Profile keeps.
const maxKept = 4 << 30

// Profile keeps the calls of training that several impls may serve. It is an opmanager.Tap.
type Profile struct {
	ops map[string]bool // with a choice of impls

	mu    sync.Mutex
	calls map[key]*profiled
	bytes int64
}

type key struct {
	op        string
	signature uint64
}

// profiled are the calls of an op with one signature.
type profiled struct {
	key
	count int
	took  time.Duration
	call  *recording.Call // nil if there was no memory for it
	text  string
}

// NewProfile returns a Profile of these ops.
func NewProfile(ops []string) *Profile {
	p := &Profile{ops: map[string]bool{}, calls: map[key]*profiled{}}
	for _, op := range ops {
		p.ops[op] = true
	}
	return p
}

// Begin implements opmanager.Tap.
func (p *Profile) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	name := call.Op.Name()
	if !p.ops[name] {
		return nil
	}
	k := key{name, call.Args.Signature()}
	p.mu.Lock()
	seen := p.calls[k]
	if seen == nil {
		seen = &profiled{key: k, text: call.Args.Describe()}
		p.calls[k] = seen
		if p.bytes < maxKept {
			seen.call, _ = recording.Take(call, recording.Site{Layer: call.Layer, Phase: call.Phase}) // nil if it cannot be kept
		}
		if seen.call != nil {
			p.bytes += seen.call.Bytes()
		}
	}
	p.mu.Unlock()
	begin := time.Now()
	return func(opmanager.ImplInfo, error) error {
		took := time.Since(begin)
		p.mu.Lock()
		defer p.mu.Unlock()
		seen.count++
		seen.took += took
		return nil
	}
}

// sorted returns the calls that are kept, those that took longest first, and the time of all.
func (p *Profile) sorted() (kept []*profiled, total time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		total += c.took
		if c.call != nil {
			kept = append(kept, c)
		}
	}
	slices.SortFunc(kept, func(a, b *profiled) int {
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.signature, b.signature))
	})
	return kept, total
}
