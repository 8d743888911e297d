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

// ImplStats are the counters of an impl of an op since the Manager was made.
type ImplStats struct {
	Op string `json:"op"`
	ImplInfo
	Calls     uint64        `json:"calls"`              // calls that it served
	Duration  time.Duration `json:"nanos"`              // total of those calls
	Estimated bool          `json:"estimated,omitzero"` // Duration is estimated from some of the calls
	Errors    uint64        `json:"errors"`             // calls in which it failed
	Declines  uint64        `json:"declines"`           // calls that it declined
	Fallbacks uint64        `json:"fallbacks"`          // calls that it served in place of another impl
	Verify    VerifyStats   `json:"verify"`
	// CrossDevice counts the calls that it served with copies of operands on a device, and
	// CrossDeviceBytes the bytes that were copied for them, to the host and back.
	CrossDevice      uint64 `json:"cross_device,omitzero"`
	CrossDeviceBytes uint64 `json:"cross_device_bytes,omitzero"`
}

type statsKey struct{ op, id string }

// counters are the counters of one impl of an op. They outlive tables and policies.
type counters struct {
	info ImplInfo
	slot int // index among the impls of the op

	errors, declines, fallbacks atomic.Uint64
	crossed, crossedBytes       atomic.Uint64
	verify                      verifyCounters
	checks                      map[string]*checks    // by the mode of verification; guarded by core.countersMu
	fault                       atomic.Pointer[fault] // the last call that it declined or failed

	retired count // the counts of handles that were collected; guarded by core.countersMu

	bindDurations sync.Once
	durations     []func(time.Duration) // those of listeners
}

// now returns the time since the Manager was made. It reads one clock, where time.Now reads two.
func (c *core) now() time.Duration { return time.Since(c.began) }

// A call is short if it takes less than shortCall. After provenShort short calls in a row one in
// sampledShort is timed, until one is not short. Listeners receive the duration of one call in
// sampledCalls, if it was timed.
const (
	shortCall    = 10 * time.Microsecond
	provenShort  = 64
	sampledCalls = 7
	sampledShort = 4 * sampledCalls
)

// reportDuration passes the duration of a call to listeners.
func (c *core) reportDuration(op string, all *counters, took time.Duration) {
	all.bindDurations.Do(func() {
		for _, l := range c.listeners {
			if d, ok := l.(DurationListener); ok {
				all.durations = append(all.durations, d.Durations(op, all.info))
			}
		}
	})
	for _, report := range all.durations {
		report(took)
	}
}

// count holds the counters that a call writes.
type count struct {
	calls   atomic.Uint64
	short   atomic.Int32             // how many calls in a row were short, at most provenShort
	recent  atomic.Pointer[schedule] // of the last call whose impl is verified
	all     durations                // of the calls while every call was timed
	sampled durations                // of one in sampledShort of the others
}

// durations are a number of calls and the time that they took.
type durations struct {
	calls atomic.Uint64
	nanos atomic.Int64
}

func (d *durations) record(took time.Duration) {
	d.calls.Add(1)
	d.nanos.Add(int64(took))
}

func (d *durations) add(o *durations) {
	d.calls.Add(o.calls.Load())
	d.nanos.Add(o.nanos.Load())
}

func (d *durations) mean() float64 { return float64(d.nanos.Load()) / float64(max(1, d.calls.Load())) }

func (c *count) add(o *count) {
	c.all.add(&o.all)
	c.sampled.add(&o.sampled)
	c.calls.Add(o.calls.Load())
}

// total returns the time that the calls took, and whether it is an estimate.
func (c *count) total() (took time.Duration, estimated bool) {
	took = time.Duration(c.all.nanos.Load())
	rest := c.calls.Load() - c.all.calls.Load()
	if rest == 0 {
		return took, false
	}
	mean := c.all.mean()
	if c.sampled.calls.Load() > 0 {
		mean = c.sampled.mean()
	}
	return took + time.Duration(float64(rest)*mean), true
}

// timing returns where the duration of the next call is recorded, nil if it is not timed.
func (c *count) timing() *durations {
	switch {
	case c.short.Load() < provenShort:
		return &c.all
	case (c.calls.Load()+1)%sampledShort == 0: // cheaper than to compare the remainder with another number
		return &c.sampled
	default:
		return nil
	}
}

// timed counts a call, records its duration where timing said, and returns the number of calls.
func (c *count) timed(to *durations, took time.Duration) uint64 {
	calls := c.calls.Add(1)
	to.record(took)
	switch short := c.short.Load(); {
	case took >= shortCall:
		c.short.Store(0)
	case short < provenShort:
		c.short.CompareAndSwap(short, short+1)
	}
	return calls
}

// handleCounters are the counters of one handle, indexed by slot. Each handle has its own, so that
// handles used by different goroutines do not share cache lines.
type handleCounters struct {
	first [8]count // enough for nearly every op
	more  atomic.Pointer[[]*count]
	_     [64]byte // keeps other data off the last cache line
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

// at returns the counters of a slot, nil if there are none yet.
func (h *handleCounters) at(slot int) *count {
	if slot < len(h.first) {
		return &h.first[slot]
	}
	if more := h.more.Load(); more != nil && slot-len(h.first) < len(*more) {
		return (*more)[slot-len(h.first)]
	}
	return nil
}

// newHandleCounters returns the counters of a handle. When the handle is collected, they are added
// to those of the impls.
func newHandleCounters(c *core, handle *binding) *handleCounters {
	h := &handleCounters{}
	op := handle.name
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	if c.handles[op] == nil {
		c.handles[op] = map[*handleCounters]struct{}{}
	}
	c.handles[op][h] = struct{}{}
	runtime.AddCleanup(handle, func(h *handleCounters) { c.retire(op, h) }, h)
	return h
}

// retire adds the counts of a handle that was collected to those of the impls.
func (c *core) retire(op string, h *handleCounters) {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	delete(c.handles[op], h)
	for key, all := range c.counters {
		if key.op != op {
			continue
		}
		if counted := h.at(all.slot); counted != nil {
			all.retired.add(counted)
		}
	}
}

// total returns the sum of the counts of all handles of an op for an impl. The caller holds
// countersMu.
func (c *core) total(op string, all *counters) ImplStats {
	var sum count
	sum.add(&all.retired)
	for h := range c.handles[op] {
		if counted := h.at(all.slot); counted != nil {
			sum.add(counted)
		}
	}
	took, estimated := sum.total()
	return ImplStats{
		Op: op, ImplInfo: all.info, Calls: sum.calls.Load(), Duration: took, Estimated: estimated,
		Errors: all.errors.Load(), Declines: all.declines.Load(), Fallbacks: all.fallbacks.Load(), Verify: all.verify.stats(),
		CrossDevice: all.crossed.Load(), CrossDeviceBytes: all.crossedBytes.Load(),
	}
}

// countersOf returns the counters of an impl of an op.
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

// Stats returns the counters of every impl that has been a candidate, sorted by op and impl id.
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
