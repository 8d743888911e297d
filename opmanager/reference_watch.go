package opmanager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/opregistry"
)

// ReferenceCost is the part of a step of training that an op spent in an impl of
// kind reference, which is there to be right and not to be fast.
type ReferenceCost struct {
	Op     string  `json:"op"`
	Impl   string  `json:"impl_id"`
	Share  float64 `json:"share"`  // of the time, from 0 to 1
	Reason string  `json:"reason"` // why no other impl served these calls
	// Steps are those that were slow, of a ReferenceWatch's Total.
	Steps int `json:"steps,omitempty"`
}

// String says what the op cost, and why.
func (c ReferenceCost) String() string {
	return fmt.Sprintf("op '%s' took %.0f %% of the time on '%s': %s", c.Op, 100*c.Share, c.Impl, c.Reason)
}

// Limits of a ReferenceWatch: a step in which reference takes more than slowShare of
// the time is slow, and an op is named that takes namedShare of it or the most of all.
const (
	slowShare  = 0.1
	namedShare = 0.05
)

// ReferenceWatch finds steps of training in which impls of kind reference take more
// than a tenth of the time. It needs Settings.Timing and is used by one goroutine.
type ReferenceWatch struct {
	m     *Manager
	begin map[statsKey]time.Duration
	time  time.Duration // of the steps so far
	spent map[statsKey]time.Duration
	slow  map[statsKey]ReferenceCost // the last of each, with the number of steps
	share float64
}

// NewReferenceWatch returns a ReferenceWatch for the calls of a Manager and its views.
func NewReferenceWatch(m *Manager) *ReferenceWatch {
	return &ReferenceWatch{m: m, spent: map[statsKey]time.Duration{}, slow: map[statsKey]ReferenceCost{}}
}

// Begin begins a step.
func (w *ReferenceWatch) Begin() { w.begin = w.m.core.referenceTimes() }

// End ends a step that took this long. It returns the ops that made it slow, those
// that cost most first, and none for a step that reference did not make slow.
func (w *ReferenceWatch) End(took time.Duration) []ReferenceCost {
	w.time += took
	var costs []ReferenceCost
	w.share = 0
	for key, now := range w.m.core.referenceTimes() {
		spent := now - w.begin[key]
		if spent <= 0 || took <= 0 {
			continue
		}
		w.spent[key] += spent
		share := spent.Seconds() / took.Seconds()
		w.share += share
		costs = append(costs, ReferenceCost{Op: key.op, Impl: key.id, Share: share})
	}
	if w.share <= slowShare {
		return nil
	}
	sortCosts(costs)
	last := 1
	for last < len(costs) && costs[last].Share >= namedShare {
		last++
	}
	costs = costs[:last]
	for i := range costs {
		costs[i].Reason = w.m.whyReference(costs[i].Op)
		key := statsKey{costs[i].Op, costs[i].Impl}
		total := costs[i]
		total.Steps = w.slow[key].Steps + 1
		w.slow[key] = total
	}
	return costs
}

// Share returns the part of the last step that reference took.
func (w *ReferenceWatch) Share() float64 { return w.share }

// Total returns the ops that made steps slow, with their part of the time of all
// steps and the number of those that were slow.
func (w *ReferenceWatch) Total() []ReferenceCost {
	var costs []ReferenceCost
	for key, c := range w.slow {
		c.Share = w.spent[key].Seconds() / w.time.Seconds()
		costs = append(costs, c)
	}
	sortCosts(costs)
	return costs
}

func sortCosts(costs []ReferenceCost) {
	slices.SortFunc(costs, func(a, b ReferenceCost) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Op, b.Op), strings.Compare(a.Impl, b.Impl))
	})
}

// referenceTimes returns how long the calls took that impls of kind reference served.
func (c *core) referenceTimes() map[statsKey]time.Duration {
	c.countersMu.Lock()
	defer c.countersMu.Unlock()
	times := map[statsKey]time.Duration{}
	for key, all := range c.counters {
		if all.info.Kind != opregistry.KindReference {
			continue
		}
		if took := c.total(key.op, all).Duration; took > 0 {
			times[key] = took
		}
	}
	return times
}

// whyReference says why calls of an op ran on an impl of kind reference.
func (m *Manager) whyReference(op string) string {
	for _, t := range m.tables() {
		if i, ok := t.registry.Index(op); ok {
			if reason := m.core.whyReference(t, i); reason != "" {
				return reason + underRules(t.line.rules)
			}
		}
	}
	return "the impl that serves the op now did not serve it then"
}

// whyReference says why calls of an op ran on reference under a table, "" where they did not.
func (c *core) whyReference(t *table, op int) string {
	r := &t.rows[op]
	if r.head == nil {
		return ""
	}
	if r.head.info.Kind != opregistry.KindReference {
		return c.whyNot(t, op)
	}
	if position := slices.IndexFunc(r.order, func(c *candidate) bool { return c.info.Kind != opregistry.KindReference }); position > 0 {
		tokens, source := t.policy.Order(t.registry.Ops()[r.leader(op)].Name())
		return fmt.Sprintf("the policy ranks it first, by the order %s%s", tokenList(tokens), inBrackets(source))
	}
	var reasons []string
	entries := t.registry.Impls(op)
	for _, rej := range r.rejected {
		if entryOf(entries, rej.ID).Kind != opregistry.KindReference {
			reasons = append(reasons, fmt.Sprintf("'%s': %s", rej.ID, rej.Reason))
		}
	}
	if len(reasons) == 0 {
		return "there is no other impl of the op"
	}
	return strings.Join(reasons, "; ")
}

// whyNot says why candidates that come before reference did not serve calls of an op.
func (c *core) whyNot(t *table, op int) string {
	r := &t.rows[op]
	for _, cand := range r.order {
		if cand.info.Kind == opregistry.KindReference {
			break
		}
		if f := cand.counters.fault.Load(); f != nil {
			return fmt.Sprintf("'%s' %s", cand.info.ID, f)
		}
	}
	if r.follows >= 0 {
		if reason := c.whyNot(t, r.follows); reason != "" {
			return fmt.Sprintf("%s, whose saved state it reads, ran there: %s", t.registry.Ops()[r.follows].Name(), reason)
		}
	}
	return ""
}

// fault is a call that an impl did not serve.
type fault struct {
	declined bool
	err      error
}

// String says what the impl did, and why.
func (f *fault) String() string {
	cause := f.err
	if impl, ok := errors.AsType[*opregistry.ImplError](f.err); ok {
		cause = impl.Err
	}
	if f.declined {
		return fmt.Sprintf("declined: %v", cause)
	}
	return fmt.Sprintf("failed: %v", cause)
}
