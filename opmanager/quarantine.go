package opmanager

import (
	"fmt"
	"sync"
	"time"
)

// QuarantineSettings say when an impl that fails calls of an op is set aside for
// that op, and for how long. Declines and callers' errors do not count.
type QuarantineSettings struct {
	// Failures within Window open a quarantine; 0 means 3.
	Failures int
	// Window is the time within which failures count together; 0 means a minute.
	Window time.Duration
	// Backoff is how long the first quarantine lasts; each further one of the
	// same impl lasts twice as long, up to an hour. 0 means 30 seconds.
	Backoff time.Duration
}

const longestBackoff = time.Hour

type quarantine struct {
	set QuarantineSettings

	mu     sync.Mutex
	cases  map[statsKey]*quarantineCase
	closed bool
}

type quarantineCase struct {
	failures []time.Time // within the window
	backoff  time.Duration
	until    time.Time // zero while the impl may be used
	cause    error
	count    int
	timer    *time.Timer
}

func (q *quarantine) init(set QuarantineSettings) {
	if set.Failures == 0 {
		set.Failures = 3
	}
	if set.Window == 0 {
		set.Window = time.Minute
	}
	if set.Backoff == 0 {
		set.Backoff = 30 * time.Second
	}
	q.set = set
	q.cases = map[statsKey]*quarantineCase{}
}

// reason returns why an impl is set aside for an op, "" when it is not.
func (q *quarantine) reason(op, id string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.cases[statsKey{op, id}]
	if !ok || c.until.IsZero() {
		return ""
	}
	return fmt.Sprintf("quarantined until %s after %d failures: %v", c.until.Format(time.RFC3339), c.count, c.cause)
}

// fail records a failure and reports whether it opened a quarantine. release is
// called once that one has ended.
func (q *quarantine) fail(op string, info ImplInfo, cause error, release func(op string, info ImplInfo)) (Quarantined, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := statsKey{op, info.ID}
	c, ok := q.cases[key]
	if !ok {
		c = &quarantineCase{backoff: q.set.Backoff}
		q.cases[key] = c
	}
	now := time.Now()
	kept := c.failures[:0]
	for _, at := range c.failures {
		if now.Sub(at) < q.set.Window {
			kept = append(kept, at)
		}
	}
	c.failures = append(kept, now)
	if q.closed || !c.until.IsZero() || len(c.failures) < q.set.Failures {
		return Quarantined{}, false
	}
	c.until, c.cause, c.count = now.Add(c.backoff), cause, len(c.failures)
	c.failures = nil
	c.timer = time.AfterFunc(c.backoff, func() {
		if q.end(key) {
			release(op, info)
		}
	})
	c.backoff = min(2*c.backoff, longestBackoff)
	return Quarantined{Op: op, Impl: info, Failures: c.count, Until: c.until, Cause: cause}, true
}

func (q *quarantine) end(key statsKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.cases[key]
	if !ok || c.until.IsZero() || q.closed {
		return false
	}
	c.until = time.Time{}
	return true
}

// clear forgets every case and returns those that were open.
func (q *quarantine) clear() []statsKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var open []statsKey
	for key, c := range q.cases {
		if !c.until.IsZero() {
			c.timer.Stop()
			open = append(open, key)
		}
	}
	clear(q.cases)
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

// ClearQuarantine lets every impl that is set aside be used again at once.
func (m *Manager) ClearQuarantine() {
	if open := m.core.quarantine.clear(); len(open) > 0 {
		m.core.rebuild()
		for _, key := range open {
			m.core.emit(Released{Op: key.op, Impl: ImplInfo{ID: key.id}})
		}
	}
}
