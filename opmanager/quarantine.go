package opmanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// QuarantineSettings say when an impl that fails calls of an op is set aside for
// that op, and for how long. Declines and callers' errors do not count. When the
// time is over, one call tries the impl again: if it succeeds the impl is
// released, if it fails the impl is set aside for twice as long.
type QuarantineSettings struct {
	// Disabled lets impls fail as often as they like.
	Disabled bool
	// Failures within Window open a quarantine; 0 means 3.
	Failures int
	// Window is the time within which failures count together; 0 means a minute.
	Window time.Duration
	// Backoff is how long the first quarantine lasts. Those that follow grow to an
	// hour, or stay at Backoff where that is longer. 0 means 30 seconds.
	Backoff time.Duration
}

const longestBackoff = time.Hour

func (s QuarantineSettings) withDefaults() QuarantineSettings {
	s.Failures = cmp.Or(s.Failures, 3)
	s.Window = cmp.Or(s.Window, time.Minute)
	s.Backoff = cmp.Or(s.Backoff, 30*time.Second)
	return s
}

// QuarantineState is how far the quarantine of an impl has come.
type QuarantineState string

// The states of an impl in quarantine.
const (
	QuarantineOpen     QuarantineState = "open"      // not used until a time
	QuarantineHalfOpen QuarantineState = "half_open" // the next call tries it
)

// Quarantine is an impl that is set aside for an op.
type Quarantine struct {
	Op       string          `json:"op"`
	Impl     string          `json:"impl_id"`
	State    QuarantineState `json:"state"`
	Until    time.Time       `json:"until"`
	Failures int             `json:"failures"`
	Cause    string          `json:"cause"`
}

type quarantine struct {
	mu     sync.Mutex
	cases  map[statsKey]*quarantineCase
	closed bool
}

// quarantineCase is what is known about the failures of an impl of an op.
type quarantineCase struct {
	failures []time.Time   // within the window
	backoff  time.Duration // of the quarantine that is next
	until    time.Time     // zero while the impl was not set aside
	cause    error
	count    int
	timer    *time.Timer
	trial    *trial // while half open
}

// trial is the permission of one call to try an impl again.
type trial struct{ taken atomic.Bool }

func (t *trial) take() bool { return t.taken.CompareAndSwap(false, true) }

// give returns the permission of a call that proved nothing.
func (t *trial) give() { t.taken.Store(false) }

// standing returns why an impl is set aside for an op, "" when it is not, and the
// trial of one that is half open.
func (q *quarantine) standing(op, id string) (reason string, half *trial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.cases[statsKey{op, id}]
	switch {
	case !ok || c.until.IsZero():
		return "", nil
	case c.trial != nil:
		return "", c.trial
	}
	return fmt.Sprintf("quarantined until %s after %d failures: %v", c.until.Format(time.RFC3339), c.count, c.cause), nil
}

// fail records a failure and reports whether it opened a quarantine. end is called
// when the time of that one is over.
func (q *quarantine) fail(op string, info ImplInfo, cause error, set QuarantineSettings, end func()) (Quarantined, bool) {
	if set.Disabled {
		return Quarantined{}, false
	}
	set = set.withDefaults()
	q.mu.Lock()
	defer q.mu.Unlock()
	key := statsKey{op, info.ID}
	c, ok := q.cases[key]
	if !ok {
		c = &quarantineCase{backoff: set.Backoff}
		if q.cases == nil {
			q.cases = map[statsKey]*quarantineCase{}
		}
		q.cases[key] = c
	}
	now := time.Now()
	c.failures = slices.DeleteFunc(c.failures, func(at time.Time) bool { return now.Sub(at) >= set.Window })
	c.failures = append(c.failures, now)
	open := !c.until.IsZero() && c.trial == nil
	if q.closed || open || c.trial == nil && len(c.failures) < set.Failures {
		return Quarantined{}, false
	}
	c.until, c.cause, c.count = now.Add(c.backoff), cause, c.count+len(c.failures)
	c.failures, c.trial = nil, nil
	c.timer = time.AfterFunc(c.backoff, func() {
		if q.halfOpen(c) {
			end()
		}
	})
	c.backoff = max(c.backoff, min(2*c.backoff, longestBackoff))
	return Quarantined{Op: op, Impl: info, Failures: c.count, Until: c.until, Cause: cause}, true
}

func (q *quarantine) halfOpen(c *quarantineCase) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || c.until.IsZero() {
		return false
	}
	c.trial = &trial{}
	return true
}

// passed ends the quarantine of an impl whose trial succeeded.
func (q *quarantine) passed(op, id string, t *trial) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := statsKey{op, id}
	if c, ok := q.cases[key]; !ok || c.trial != t {
		return false
	}
	delete(q.cases, key)
	return true
}

// clear forgets the cases that match, "" for any, and returns those that were
// open or half open.
func (q *quarantine) clear(op, id string) []statsKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var open []statsKey
	for key, c := range q.cases {
		if op != "" && key.op != op || id != "" && key.id != id {
			continue
		}
		if !c.until.IsZero() {
			c.timer.Stop()
			c.until = time.Time{}
			open = append(open, key)
		}
		delete(q.cases, key)
	}
	return open
}

func (q *quarantine) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, c := range q.cases {
		if c.timer != nil {
			c.timer.Stop()
		}
	}
}

// Quarantines lists the impls that are set aside, by op and impl id.
func (m *Manager) Quarantines() []Quarantine {
	q := &m.core.quarantine
	q.mu.Lock()
	defer q.mu.Unlock()
	all := []Quarantine{}
	for key, c := range q.cases {
		if c.until.IsZero() {
			continue
		}
		state := QuarantineOpen
		if c.trial != nil {
			state = QuarantineHalfOpen
		}
		all = append(all, Quarantine{Op: key.op, Impl: key.id, State: state, Until: c.until, Failures: c.count, Cause: c.cause.Error()})
	}
	slices.SortFunc(all, func(a, b Quarantine) int { return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Impl, b.Impl)) })
	return all
}

// ClearQuarantine lets an impl that is set aside for an op be used again at once;
// an empty name stands for every op or impl. It returns how many there were.
func (m *Manager) ClearQuarantine(op, impl string) int {
	open := m.core.quarantine.clear(op, impl)
	if len(open) > 0 {
		m.core.rebuild()
		for _, key := range open {
			m.core.emit(Released{Op: key.op, Impl: m.core.infoOf(key)})
		}
	}
	return len(open)
}

// infoOf returns what is known of an impl that was a candidate.
func (c *core) infoOf(key statsKey) ImplInfo {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	if known, ok := c.counters[key]; ok {
		return known.info
	}
	return ImplInfo{ID: key.id}
}
