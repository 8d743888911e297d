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
	fault                       atomic.Pointer[fault] // the last call that it did not serve

	retired count // of handles that are gone; guarded by core.countersMu

	bindDurations sync.Once
	durations     []func(time.Duration) // of listeners
}

// sampledCalls is how many calls go by for one whose duration listeners hear.
const sampledCalls = 7

// tellDuration tells listeners how long a call took.
func (c *core) tellDuration(op string, all *counters, took time.Duration) {
	all.bindDurations.Do(func() {
		for _, l := range c.listeners {
			if d, ok := l.(DurationListener); ok {
				all.durations = append(all.durations, d.Durations(op, all.info))
			}
		}
	})
	for _, tell := range all.durations {
		tell(took)
	}
}

// count are the counters that a call writes.
type count struct {
	calls atomic.Uint64
	nanos atomic.Int64
}

func (c *count) add(o *count) {
	c.calls.Add(o.calls.Load())
	c.nanos.Add(o.nanos.Load())
}

// handleCounters are those of one handle, by the slot of an impl: each handle has
// its own, so that handles of different goroutines do not slow each other down.
type handleCounters struct {
	first [8]count // of the slots that nearly every op gets along with
	more  atomic.Pointer[[]*count]
	_     [64]byte // nobody else's counters on these cache lines
}

// of returns the counters of a slot.
func (h *handleCounters) of(slot int) *count {
	if slot < len(h.first) {
		return &h.first[slot]
	}
	return h.beyond(slot - len(h.first))
}

func (h *handleCounters) beyond(slot int) *count {
	for {
		old := h.more.Load()
		if old != nil && slot < len(*old) {
			return (*old)[slot]
		}
		var next []*count
		if old != nil {
			next = slices.Clone(*old)
		}
		for len(next) <= slot {
			next = append(next, &count{})
		}
		h.more.CompareAndSwap(old, &next)
	}
}

// at returns the counters of a slot, nil when there are none yet.
func (h *handleCounters) at(slot int) *count {
	if slot < len(h.first) {
		return &h.first[slot]
	}
	if more := h.more.Load(); more != nil && slot-len(h.first) < len(*more) {
		return (*more)[slot-len(h.first)]
	}
	return nil
}

// newHandleCounters returns the counters of a handle, which are folded into those
// of the impls when the handle is collected.
func newHandleCounters[A any](c *core, handle *Bound[A]) *handleCounters {
	h := &handleCounters{}
	op := handle.op.Name()
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	if c.handles[op] == nil {
		c.handles[op] = map[*handleCounters]struct{}{}
	}
	c.handles[op][h] = struct{}{}
	runtime.AddCleanup(handle, func(h *handleCounters) { c.retire(op, h) }, h)
	return h
}

// retire folds the counts of a handle that is gone into those that stay.
func (c *core) retire(op string, h *handleCounters) {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	delete(c.handles[op], h)
	for key, all := range c.counters {
		if key.op != op {
			continue
		}
		if last := h.at(all.slot); last != nil {
			all.retired.add(last)
		}
	}
}

// total returns what all handles of an op have counted for an impl. The caller
// holds countersMu.
func (c *core) total(op string, all *counters) ImplStats {
	var sum count
	sum.add(&all.retired)
	for h := range c.handles[op] {
		if of := h.at(all.slot); of != nil {
			sum.add(of)
		}
	}
	return ImplStats{
		Op: op, ImplInfo: all.info, Calls: sum.calls.Load(), Duration: time.Duration(sum.nanos.Load()),
		Errors: all.errors.Load(), Declines: all.declines.Load(), Fallbacks: all.fallbacks.Load(), Verify: all.verify.stats(),
	}
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
		all = append(all, m.core.total(key.op, c))
	}
	m.core.countersMu.Unlock()
	slices.SortFunc(all, func(a, b ImplStats) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.ID, b.ID))
	})
	return all
}
