package opmanager

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// ImplStats is what an impl did for an op since the Manager was made.
type ImplStats struct {
	Op string `json:"op"`
	ImplInfo
	Calls     uint64        `json:"calls"`     // that it served
	Duration  time.Duration `json:"nanos"`     // of those calls; 0 without Settings.Timing
	Errors    uint64        `json:"errors"`    // calls in which it failed
	Declines  uint64        `json:"declines"`  // calls that it declined
	Fallbacks uint64        `json:"fallbacks"` // of Calls, those served in place of another impl
	Verify    VerifyStats   `json:"verify"`
}

type statsKey struct{ op, id string }

// counters are those of one impl of an op. They outlive tables and policies.
type counters struct {
	info ImplInfo
	slot int // dense number among the impls of the op

	errors, declines, fallbacks atomic.Uint64
	verify                      verifyCounters

	mu      sync.Mutex
	shards  []*shard // of the handles that are alive
	retired ImplStats
}

// shard are the counters that a call writes. Each handle has its own for each
// impl, on a cache line of its own, so that handles of different goroutines do
// not slow each other down.
type shard struct {
	calls atomic.Uint64
	nanos atomic.Int64
	_     [48]byte
}

func (c *counters) add() *shard {
	s := &shard{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards = append(c.shards, s)
	return s
}

// retire folds the counts of a handle that is gone into those that stay.
func (c *counters) retire(s *shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired.Calls += s.calls.Load()
	c.retired.Duration += time.Duration(s.nanos.Load())
	c.shards = slices.DeleteFunc(c.shards, func(o *shard) bool { return o == s })
}

func (c *counters) total(op string) ImplStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.retired
	for _, s := range c.shards {
		total.Calls += s.calls.Load()
		total.Duration += time.Duration(s.nanos.Load())
	}
	total.Op, total.ImplInfo = op, c.info
	total.Errors, total.Declines, total.Fallbacks = c.errors.Load(), c.declines.Load(), c.fallbacks.Load()
	total.Verify = c.verify.stats()
	return total
}

// handleCounters are the shards of one handle, by the slot of an impl.
type handleCounters struct {
	bySlot atomic.Pointer[[]*shard]

	mu    sync.Mutex
	owner []*counters // of the shards, by slot
}

// of returns the shard for a candidate.
func (h *handleCounters) of(c *candidate) *shard {
	shards := *h.bySlot.Load()
	if slot := c.slot; slot < len(shards) && shards[slot] != nil {
		return shards[slot]
	}
	return h.grow(c.counters)
}

func (h *handleCounters) grow(c *counters) *shard {
	h.mu.Lock()
	defer h.mu.Unlock()
	shards := slices.Clone(*h.bySlot.Load())
	if c.slot < len(shards) && shards[c.slot] != nil {
		return shards[c.slot]
	}
	for len(shards) <= c.slot {
		shards = append(shards, nil)
		h.owner = append(h.owner, nil)
	}
	shards[c.slot], h.owner[c.slot] = c.add(), c
	h.bySlot.Store(&shards)
	return shards[c.slot]
}

func (h *handleCounters) retire() {
	for slot, s := range *h.bySlot.Load() {
		if s != nil {
			h.owner[slot].retire(s)
		}
	}
}

// newHandleCounters returns the counters of a handle, which are folded into those
// of the impls when the handle is collected.
func newHandleCounters[A any](handle *Bound[A]) *handleCounters {
	h := &handleCounters{}
	h.bySlot.Store(new([]*shard))
	runtime.AddCleanup(handle, (*handleCounters).retire, h)
	return h
}

func (c *core) countersOf(op string, e *opregistry.Entry) *counters {
	key := statsKey{op, e.ID}
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	all, ok := c.counters[key]
	if !ok {
		all = &counters{info: ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source}, slot: c.slots[op]}
		c.slots[op]++
		c.counters[key] = all
	}
	return all
}

// Stats returns the counters of every impl that was ever a candidate, by op and
// impl id.
func (m *Manager) Stats() []ImplStats {
	m.core.countersMu.Lock()
	all := make([]ImplStats, 0, len(m.core.counters))
	for key, c := range m.core.counters {
		all = append(all, c.total(key.op))
	}
	m.core.countersMu.Unlock()
	slices.SortFunc(all, func(a, b ImplStats) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.ID, b.ID))
	})
	return all
}
