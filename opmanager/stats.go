package opmanager

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// stats counts what an impl did for an op, over all tables. It fills a cache
// line of its own.
type stats struct {
	calls     atomic.Uint64
	nanos     atomic.Int64
	errors    atomic.Uint64
	declines  atomic.Uint64
	fallbacks atomic.Uint64 // calls it served after another impl declined or failed
	_         [24]byte
}

// ImplStats is what an impl did for an op since the Manager was made.
type ImplStats struct {
	Op string `json:"op"`
	ImplInfo
	Calls     uint64        `json:"calls"`     // that it served
	Duration  time.Duration `json:"nanos"`     // of those calls; 0 without Settings.Timing
	Errors    uint64        `json:"errors"`    // calls in which it failed
	Declines  uint64        `json:"declines"`  // calls that it declined
	Fallbacks uint64        `json:"fallbacks"` // of Calls, those served in place of another impl
}

type statsKey struct{ op, id string }

type statsEntry struct {
	info ImplInfo
	stats
}

// statsOf returns the counters of an impl, which outlive tables and policies.
func (c *core) statsOf(op string, e opregistry.Entry) *stats {
	key := statsKey{op, e.ID}
	c.statsMu.Lock()
	defer c.statsMu.Unlock()
	s, ok := c.statsByKey[key]
	if !ok {
		s = &statsEntry{info: ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source}}
		c.statsByKey[key] = s
	}
	return &s.stats
}

// Stats returns the counters of every impl that was ever a candidate, by op and
// impl id.
func (m *Manager) Stats() []ImplStats {
	m.core.statsMu.Lock()
	all := make([]ImplStats, 0, len(m.core.statsByKey))
	for key, s := range m.core.statsByKey {
		all = append(all, ImplStats{
			Op: key.op, ImplInfo: s.info, Calls: s.calls.Load(), Duration: time.Duration(s.nanos.Load()),
			Errors: s.errors.Load(), Declines: s.declines.Load(), Fallbacks: s.fallbacks.Load(),
		})
	}
	m.core.statsMu.Unlock()
	slices.SortFunc(all, func(a, b ImplStats) int {
		return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.ID, b.ID))
	})
	return all
}
