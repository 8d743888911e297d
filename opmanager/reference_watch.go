package opmanager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// ReferenceCost is the part of a training step that an op spent in an impl of kind reference, which
// is correct but slow.
type ReferenceCost struct {
	Op     string  `json:"op"`
	Impl   string  `json:"impl_id"`
	Share  float64 `json:"share"`  // of the time of the step, from 0 to 1
	Reason string  `json:"reason"` // why no other impl served the calls
	// Steps is the number of slow steps. It is set by ReferenceWatch.Total.
	Steps int `json:"steps,omitempty"`
}

// String returns the op, its share of the time and the reason.
func (c ReferenceCost) String() string {
	return fmt.Sprintf("op '%s' took %.0f %% of the time on '%s': %s", c.Op, 100*c.Share, c.Impl, c.Reason)
}

// Limits of a ReferenceWatch. A step is slow if the reference takes more than slowShare of its
// time. Reports of a slow step name the op that takes most and every op that takes at least
// namedShare.
const (
	slowShare  = 0.1
	namedShare = 0.05
)

// ReferenceWatch finds training steps in which impls of kind reference take more than a tenth of
// the time. It is not safe for concurrent use.
type ReferenceWatch struct {
	m     *Manager
	begin map[statsKey]time.Duration
	time  time.Duration // the total time of the steps
	spent map[statsKey]time.Duration
	slow  map[statsKey]ReferenceCost // the last cost of each impl, with the number of slow steps
	share float64
}

// NewReferenceWatch returns a ReferenceWatch for the calls of a Manager and those derived from it.
func NewReferenceWatch(m *Manager) *ReferenceWatch {
	return &ReferenceWatch{m: m, spent: map[statsKey]time.Duration{}, slow: map[statsKey]ReferenceCost{}}
}

// Begin marks the beginning of a step.
func (w *ReferenceWatch) Begin() { w.begin = w.m.core.referenceTimes() }

// End marks the end of a step and returns the ops that made it slow, the most expensive first. It
// returns none if the step was not slow.
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

// Share returns the part of the last step that the reference took.
func (w *ReferenceWatch) Share() float64 { return w.share }

// Total returns the ops that made steps slow, each with its share of the time of all steps and the
// number of slow steps.
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

// referenceTimes returns the total time of the calls that each impl of kind reference served.
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

// whyReference returns the reason why calls of an op ran on an impl of kind reference.
func (m *Manager) whyReference(op string) string {
	for _, t := range m.tables() {
		if i, ok := t.registry.Index(op); ok {
			if reason := m.core.whyReference(t, i); reason != "" {
				return reason + underRules(t.history.rules)
			}
		}
	}
	return "the policy or the registry has changed since"
}

// whyReference returns the reason why calls of an op ran on the reference under a table, "" if they
// did not.
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
		return fmt.Sprintf("the policy ranks it first, by the order %s (%s)", oppolicy.FormatOrder(tokens), source)
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

// whyNot returns the reason why the candidates before the reference did not serve calls of an op.
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

// fault is a call that an impl declined or failed.
type fault struct {
	declined bool
	err      error
}

// String returns what the impl did, and why.
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
