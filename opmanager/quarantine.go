package opmanager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// maxBackoff bounds the doubling of the length of quarantines.
const maxBackoff = time.Hour

// QuarantineState is the state of a quarantine.
type QuarantineState string

// The states of a quarantine.
const (
	QuarantineOpen     QuarantineState = "open"      // the impl is not used
	QuarantineHalfOpen QuarantineState = "half_open" // the next call tries it
)

// Quarantine is an impl that is not used for an op because it failed repeatedly, or because a
// result of it was wrong, in which case it lasts until ClearQuarantine.
type Quarantine struct {
	Op       string          `json:"op"`
	Impl     string          `json:"impl_id"`
	State    QuarantineState `json:"state"`
	Until    time.Time       `json:"until,omitzero"` // zero if it lasts until ClearQuarantine
	Failures int             `json:"failures"`
	Cause    string          `json:"cause"`
	File     string          `json:"file,omitempty"` // that has the wrong call, as Manager.KeepWrong said
}

// quarantine holds the failures of impls and the quarantines that they led to.
type quarantine struct {
	mu     sync.Mutex
	cases  map[statsKey]*quarantineCase
	closed bool
}

// quarantineCase is the record of the failures of an impl of an op.
type quarantineCase struct {
	failures []time.Time   // within the window
	backoff  time.Duration // the length of the next quarantine
	until    time.Time     // the end of the quarantine, zero if there is none
	wrong    bool          // it has no end, because a result was wrong
	cause    error
	count    int
	timer    *time.Timer
	trial    *trial // set while half open
}

// trial is a permit for one call to try an impl again.
type trial struct{ taken atomic.Bool }

// acquire takes the permit and reports whether it was free.
func (t *trial) acquire() bool { return t.taken.CompareAndSwap(false, true) }

// release returns a permit whose call neither passed nor failed.
func (t *trial) release() { t.taken.Store(false) }

// state returns the reason why an impl is not used for an op, "" if it may be used, and the trial
// if its quarantine is half open.
func (q *quarantine) state(op, id string) (reason string, trial *trial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.cases[statsKey{op, id}]
	switch {
	case !ok || c.until.IsZero():
		return "", nil
	case c.wrong:
		return fmt.Sprintf("quarantined until it is cleared, because a result was wrong: %v", c.cause), nil
	case c.trial != nil:
		return "", c.trial
	}
	return fmt.Sprintf("quarantined until %s after %d failures: %v", c.until.Format(time.RFC3339), c.count, c.cause), nil
}

// fail records a failure and reports whether it started a quarantine. end is called when the time
// of the quarantine is over.
func (q *quarantine) fail(op string, info ImplInfo, cause error, set oppolicy.Quarantine, end func()) (Quarantined, bool) {
	if set.Disabled {
		return Quarantined{}, false
	}
	set = set.WithDefaults()
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.caseOf(op, info.ID)
	c.backoff = cmp.Or(c.backoff, set.Backoff)
	now := time.Now()
	c.failures = slices.DeleteFunc(c.failures, func(at time.Time) bool { return now.Sub(at) >= set.Window })
	c.failures = append(c.failures, now)
	open := c.wrong || !c.until.IsZero() && c.trial == nil
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
	c.backoff = max(c.backoff, min(2*c.backoff, maxBackoff))
	return Quarantined{Op: op, Impl: info, Failures: c.count, Until: c.until, Cause: cause}, true
}

// caseOf returns the record of an impl of an op. The caller holds mu.
func (q *quarantine) caseOf(op, id string) *quarantineCase {
	key := statsKey{op, id}
	c, ok := q.cases[key]
	if !ok {
		c = &quarantineCase{}
		if q.cases == nil {
			q.cases = map[statsKey]*quarantineCase{}
		}
		q.cases[key] = c
	}
	return c
}

// wrong starts a quarantine without an end and reports whether there was none yet.
func (q *quarantine) wrong(op string, info ImplInfo, cause error) (Quarantined, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.caseOf(op, info.ID)
	if q.closed || c.wrong {
		return Quarantined{}, false
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.wrong, c.until, c.trial, c.failures = true, time.Now(), nil, nil
	c.cause, c.count = cause, c.count+1
	return Quarantined{Op: op, Impl: info, Failures: c.count, Cause: cause}, true
}

// halfOpen lets one call try an impl whose time is over.
func (q *quarantine) halfOpen(c *quarantineCase) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || c.wrong || c.until.IsZero() {
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

// clear removes the cases of an op and an impl, "" for all, and returns those that were open or
// half open.
func (q *quarantine) clear(op, id string) []statsKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var open []statsKey
	for key, c := range q.cases {
		if op != "" && key.op != op || id != "" && key.id != id {
			continue
		}
		if !c.until.IsZero() {
			if c.timer != nil {
				c.timer.Stop()
			}
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

// Quarantines returns the quarantines, sorted by op and impl id.
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
		entry := Quarantine{Op: key.op, Impl: key.id, State: state, Failures: c.count, Cause: c.cause.Error()}
		if !c.wrong {
			entry.Until = c.until
		}
		if wrong, ok := errors.AsType[*VerificationFailed](c.cause); ok {
			entry.File = wrong.File
		}
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b Quarantine) int { return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Impl, b.Impl)) })
	return all
}

// ClearQuarantine ends the quarantine of an impl of an op and returns the number of quarantines
// that it ended. A canary that was withdrawn is tried again. An empty name stands for every op or
// impl.
func (m *Manager) ClearQuarantine(op, impl string) int {
	open := m.core.quarantine.clear(op, impl)
	again := m.core.forgetCanaries(op, impl)
	if len(open) > 0 || again {
		m.core.rebuild()
		for _, key := range open {
			m.core.emit(Released{Op: key.op, Impl: m.core.infoOf(key)})
		}
	}
	return len(open)
}

// infoOf returns the description of an impl.
func (c *core) infoOf(key statsKey) ImplInfo {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	if all, ok := c.counters[key]; ok {
		return all.info
	}
	return ImplInfo{ID: key.id}
}

// copyCases returns the cases as they are now.
func (q *quarantine) copyCases() map[statsKey]*quarantineCase {
	q.mu.Lock()
	defer q.mu.Unlock()
	cases := make(map[statsKey]*quarantineCase, len(q.cases))
	for key, c := range q.cases {
		copied := *c
		cases[key] = &copied
	}
	return cases
}
