package opmanager

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/primus-fl/primus/opmanager/internal/pace"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// CanaryState is the state of an impl on trial.
type CanaryState string

// The states of a canary.
const (
	CanaryTrying    CanaryState = "trying"    // it serves its share of the calls
	CanaryPromoted  CanaryState = "promoted"  // it serves all calls
	CanaryWithdrawn CanaryState = "withdrawn" // it serves no call
)

// Canary is an impl on trial (oppolicy.Canary), and how it did.
type Canary struct {
	Op       string      `json:"op"` // of a family, the forward op
	Impl     string      `json:"impl_id"`
	Beside   string      `json:"beside,omitempty"` // the impl that serves the other calls
	Fraction float64     `json:"fraction"`
	State    CanaryState `json:"state"`
	Calls    int         `json:"calls"`          // that it was given
	Right    int         `json:"right"`          // of these, compared and not wrong
	Of       int         `json:"of"`             // so many have to be right
	Ratio    float64     `json:"ratio,omitzero"` // its time over that of the other impl; 0 if unknown
	Reason   string      `json:"reason,omitempty"`
	Wrong    bool        `json:"wrong,omitempty"` // a result was wrong
	Source   string      `json:"source"`          // in the policy
}

// String returns the canary as one line.
func (c Canary) String() string {
	share := fmt.Sprintf("%s for %.4g %% of the calls (%s)", c.Impl, 100*c.Fraction, c.Source)
	switch {
	case c.State == CanaryPromoted:
		return fmt.Sprintf("%s: promoted: %s", share, c.Reason)
	case c.State == CanaryWithdrawn:
		return fmt.Sprintf("%s: withdrawn: %s", share, c.Reason)
	case c.Reason != "":
		return fmt.Sprintf("%s: has no effect: %s", share, c.Reason)
	}
	return fmt.Sprintf("%s beside %s: %d of %d calls compared and right", share, c.Beside, c.Right, c.Of)
}

// trial returns the impl and its share of the calls, "" without a canary.
func (c *Canary) trial() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("canary %s for %.4g %% of the calls", c.Impl, 100*c.Fraction)
}

// CanaryChanged is the beginning of a trial, with the first call that a canary was given, or its
// end.
type CanaryChanged struct{ Canary Canary }

func (CanaryChanged) event() {}

// canary is the trial of an impl. It outlives tables and policies.
type canary struct {
	set    oppolicy.Canary
	impl   ImplInfo
	checks checks
	active atomic.Bool // it is being tried

	mu    sync.Mutex
	now   Canary
	step  uint64           // that drawn counts
	drawn map[scope]uint64 // the calls of the step, by where they come from
	pace  pace.Pace
}

// rowCanary is the canary of a row.
type rowCanary struct {
	*canary
	row row // for the calls that it is given
}

// draws decide which calls canaries are given.
type draws struct {
	seed atomic.Uint64
	step atomic.Uint64
}

// BeginStep says that the calls that follow belong to a step of training. Canaries are given calls
// by the seed, the step and the number of the call in it, so a run that is repeated or resumed
// gives them the same ones. It holds for m and all Managers that share its registry.
func (m *Manager) BeginStep(seed int64, step int) {
	m.core.draws.seed.Store(uint64(seed))
	m.core.draws.step.Store(uint64(step))
}

// draw reports whether a canary is given the next call from a place.
func (c *canary) draw(d *draws, at scope) bool {
	step := d.step.Load()
	c.mu.Lock()
	if c.step != step || c.drawn == nil {
		c.step, c.drawn = step, map[scope]uint64{}
	}
	n := c.drawn[at]
	c.drawn[at]++
	c.mu.Unlock()
	h := fnv.New64a()
	h.Write([]byte(c.now.Op))
	x := d.seed.Load()
	for _, part := range []uint64{h.Sum64(), step, uint64(at.layer)<<8 | uint64(at.phase), n} {
		x = mix(x ^ part)
	}
	return float64(x>>11)/(1<<53) < c.set.Fraction
}

// mix is the output function of SplitMix64 after one step of it.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// canaryOf returns the trial of an impl by a canary of the policy.
func (c *core) canaryOf(op string, set *oppolicy.Canary, impl ImplInfo) *canary {
	key := fmt.Sprintf("%s %s %v %v", op, impl.ID, set.Fraction, set.Limit())
	c.canariesMu.Lock()
	defer c.canariesMu.Unlock()
	all, ok := c.canaries[key]
	if !ok {
		all = &canary{set: *set, impl: impl,
			now: Canary{Op: op, Impl: impl.ID, Fraction: set.Fraction, State: CanaryTrying, Of: set.Limit(), Source: cmp.Or(set.Source, "the program")}}
		all.active.Store(true)
		if c.canaries == nil {
			c.canaries = map[string]*canary{}
		}
		c.canaries[key] = all
	}
	return all
}

// RestoreCanaries ends the trials of canaries as they ended in an earlier run: those of the same op
// and impl with the same share and number of calls under the present policy. An impl whose result
// was wrong is in quarantine again. It ignores trials that had not ended, and those that have
// begun.
func (m *Manager) RestoreCanaries(ended []Canary) {
	c := m.core
	var events []Event
	for _, t := range m.tables() {
		for _, was := range ended {
			i, known := t.registry.Index(was.Op)
			if !known || was.State != CanaryPromoted && was.State != CanaryWithdrawn {
				continue
			}
			set, lead := t.canarySet(i)
			at := slices.IndexFunc(t.registry.Impls(lead), func(e opregistry.Entry) bool { return e.ID == was.Impl })
			if set == nil || lead != i || at < 0 || set.Fraction != was.Fraction || set.Limit() != was.Of {
				continue
			}
			e := t.registry.Impls(lead)[at]
			if !set.Impl.Matches(asCandidate(e), t.registry.Vendor) {
				continue
			}
			info := ImplInfo{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Source: e.Source}
			k := c.canaryOf(was.Op, set, info)
			if !k.restore(was) {
				continue
			}
			events = append(events, CanaryChanged{k.stats()})
			if was.Wrong {
				if q, open := c.quarantine.wrong(was.Op, info, errors.New(was.Reason)); open {
					events = append(events, q)
				}
			}
		}
	}
	if len(events) == 0 {
		return
	}
	c.rebuild()
	for _, e := range events {
		c.emit(e)
	}
}

// restore ends a trial that has not begun as one of an earlier run, and reports whether it did.
func (c *canary) restore(was Canary) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.State != CanaryTrying || c.now.Calls > 0 {
		return false
	}
	was.Source = c.now.Source
	c.now = was
	c.active.Store(false)
	return true
}

// forgetCanaries forgets the trials of an op and an impl, "" for all, that ended in a withdrawal,
// and reports whether there were any.
func (c *core) forgetCanaries(op, impl string) (any bool) {
	c.canariesMu.Lock()
	defer c.canariesMu.Unlock()
	for key, k := range c.canaries {
		if s := k.stats(); s.State == CanaryWithdrawn && (op == "" || s.Op == op) && (impl == "" || s.Impl == impl) {
			delete(c.canaries, key)
			any = true
		}
	}
	return any
}

func (c *canary) stats() Canary {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	if now.State == CanaryTrying {
		now.Ratio = c.pace.Ratio()
	}
	return now
}

// given counts a call and reports whether it is the first one.
func (c *canary) given(beside string) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Calls++
	c.now.Beside = beside
	return c.now.Calls == 1
}

// end ends the trial and reports whether it had not ended before. The caller holds mu.
func (c *canary) end(state CanaryState, reason string) bool {
	if c.now.State != CanaryTrying {
		return false
	}
	c.now.State, c.now.Reason = state, reason
	c.now.Ratio = c.pace.Ratio()
	c.active.Store(false)
	return true
}

// maxSlower is how much longer than the present impl a canary may take: less is noise.
const maxSlower = 1.05

// right counts a call that was compared and right, and reports whether that ended the trial. Of a
// family the calls of the forward op count.
func (c *canary) right(op string) (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op != c.now.Op {
		return false
	}
	c.now.Right++
	if c.now.Right < c.now.Of {
		return false
	}
	switch ratio := c.pace.Ratio(); {
	case ratio == 0: // the other impl has served too few calls of the same kinds
		return false
	case ratio > maxSlower:
		return c.end(CanaryWithdrawn, fmt.Sprintf("%d calls were right, but it takes %.3g times as long as %s", c.now.Right, ratio, c.now.Beside))
	default:
		return c.end(CanaryPromoted, fmt.Sprintf("%d calls were right, and it takes %.3g times as long as %s", c.now.Right, ratio, c.now.Beside))
	}
}

// failed notes that a call failed, was wrong or declined, and reports whether that ended the trial.
func (c *canary) failed(err error) (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, opregistry.ErrUnsupported) {
		if c.now.Calls < c.now.Of || c.now.Right > 0 {
			return false
		}
		return c.end(CanaryWithdrawn, fmt.Sprintf("none of %d calls could be served and compared: %v", c.now.Calls, err))
	}
	if impl, ok := errors.AsType[*opregistry.ImplError](err); ok {
		err = impl.Err
	}
	_, c.now.Wrong = errors.AsType[*VerificationFailed](err)
	return c.end(CanaryWithdrawn, err.Error())
}

// Canaries returns the impls on trial under the present policy, and those whose trial has ended,
// sorted by op.
func (m *Manager) Canaries() []Canary {
	seen := map[string]Canary{}
	for _, t := range m.tables() {
		for i := range t.rows {
			if s := m.core.canary(t, i); s != nil {
				seen[s.Op+" "+s.Impl] = *s
			}
		}
		for _, c := range t.policy.Canary {
			if _, known := t.registry.Index(c.Op); !known {
				seen[c.Op+" "+c.Impl.String()] = *withoutEffect(&c, c.Op, "no loaded source registers the op")
			}
		}
	}
	all := make([]Canary, 0, len(seen))
	for _, s := range seen {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Canary) int { return cmp.Or(strings.Compare(a.Op, b.Op), strings.Compare(a.Impl, b.Impl)) })
	return all
}

// canary returns the canary of an op, nil if it has none.
func (c *core) canary(t *table, i int) *Canary {
	if r := &t.rows[i]; r.canary != nil {
		s := r.canary.stats()
		return &s
	}
	set, lead := t.canarySet(i)
	if set == nil {
		return nil
	}
	c.canariesMu.Lock()
	defer c.canariesMu.Unlock()
	for _, k := range c.canaries {
		if k.now.Op == t.registry.Ops()[lead].Name() && k.set.Impl == set.Impl && k.set.Fraction == set.Fraction && k.set.Limit() == set.Limit() {
			if s := k.stats(); s.State == CanaryWithdrawn {
				return &s // and in quarantine
			}
		}
	}
	return withoutEffect(set, t.registry.Ops()[lead].Name(), t.withoutCanary(i, lead, set))
}

// withoutEffect returns a canary of the policy that is given no calls, for a reason.
func withoutEffect(set *oppolicy.Canary, op, reason string) *Canary {
	return &Canary{Op: op, Impl: set.Impl.String(), Fraction: set.Fraction, State: CanaryTrying, Of: set.Limit(),
		Source: cmp.Or(set.Source, "the program"), Reason: reason}
}

// withoutCanary returns why a canary of the policy is not a candidate.
func (t *table) withoutCanary(i, lead int, set *oppolicy.Canary) string {
	if t.registry.Ops()[i].Collective() {
		return "the results of a collective depend on other processes, so it cannot be compared"
	}
	if r := &t.rows[lead]; len(r.order) == 1 && set.Impl.Matches(asCandidate(entryOf(t.registry.Impls(lead), r.head.info.ID)), t.registry.Vendor) {
		return "no other impl serves the op"
	}
	op := t.registry.Ops()[lead].Name()
	for _, at := range []int{lead, i} {
		entries := t.registry.Impls(at)
		for _, rej := range t.rows[at].rejected {
			if set.Impl.Matches(asCandidate(entryOf(entries, rej.ID)), t.registry.Vendor) {
				return rej.Reason
			}
		}
	}
	if set.Impl.Impl != "" {
		return fmt.Sprintf("no loaded source has %s for %s", set.Impl, op)
	}
	return fmt.Sprintf("no loaded source has an impl of %s for %s", set.Impl, op)
}

// canarySet returns the canary that the policy gives an op, and the op that leads its family.
func (t *table) canarySet(i int) (set *oppolicy.Canary, lead int) {
	if len(t.policy.Canary) == 0 {
		return nil, i
	}
	ops := t.registry.Ops()
	lead = i
	family := ops[i].Family()
	if family == "" {
		return t.policy.CanaryOf(ops[i].Name()), i
	}
	for k, op := range ops {
		if op.Family() != family {
			continue
		}
		if op.Forward() {
			lead = k
		}
		if c := t.policy.CanaryOf(op.Name()); c != nil && (set == nil || op.Forward()) {
			set = c
		}
	}
	return set, lead
}

// placeCanaries puts the canary of each row at the end of its order, or at the beginning after its
// promotion.
func (c *core) placeCanaries(t *table, rows []row) {
	if len(t.policy.Canary) == 0 {
		return
	}
	ops := t.registry.Ops()
	for i := range rows {
		set, lead := t.canarySet(i)
		if set == nil || ops[i].Collective() {
			continue
		}
		entries, leading := t.registry.Impls(lead), &rows[lead]
		k := slices.IndexFunc(leading.order, func(x *candidate) bool {
			return x.canary != nil || leading.canary == nil && set.Impl.Matches(asCandidate(entryOf(entries, x.info.ID)), t.registry.Vendor)
		})
		if k < 0 || len(leading.order) < 2 {
			continue
		}
		trial := c.canaryOf(ops[lead].Name(), set, leading.order[k].info)
		if r := &rows[i]; r.canary == nil {
			r.setCanary(trial, t.registry.Impls(i), ops[i].Family() == "" || ops[i].Forward())
		}
	}
}

// setCanary gives a row the canary that is among its candidates. alone says that another impl can
// serve the same call, because it reads no saved state.
func (r *row) setCanary(k *canary, entries []opregistry.Entry, alone bool) {
	at := position(r.order, k.impl.ID)
	own, others := r.order[at], slices.Delete(slices.Clone(r.order), at, at+1)
	own.canary = k
	if present := entryOf(entries, others[0].info.ID); alone && r.onHost() {
		own.beside = &present
	}
	r.canary = &rowCanary{canary: k, row: *r}
	given := &r.canary.row
	given.canary, given.head, given.order = r.canary, own, slices.Insert(slices.Clone(others), 0, own)
	if r.order = append(others, own); k.stats().State == CanaryPromoted {
		r.order = given.order
	}
}

// forCanary returns the row for a call that a canary is given, nil if the call is not.
func (b *binding) forCanary(r *row) *row {
	if r.canary == nil || !r.canary.active.Load() || !r.canary.draw(&b.m.core.draws, b.m.scope) {
		return nil
	}
	if r.canary.given(r.present().info.ID) {
		b.m.core.emit(CanaryChanged{r.canary.stats()})
	}
	return &r.canary.row
}

// timed runs a candidate, and records for a canary how long it or the present impl took.
func (b *binding) timed(r *row, c *candidate, a opregistry.Call) error {
	if r.canary == nil || !r.canary.active.Load() || c.canary == nil && c != r.present() {
		return b.typed.attemptCall(c, a)
	}
	signature, start := a.Signature(), b.m.core.now()
	err := b.typed.attemptCall(c, a)
	if err == nil {
		took := b.m.core.now() - start
		r.canary.mu.Lock()
		r.canary.pace.Took(b.name, signature, c.canary != nil, took)
		r.canary.mu.Unlock()
	}
	return err
}

// present returns the first candidate that is not the canary.
func (r *row) present() *candidate {
	if r.order[0].canary == nil {
		return r.order[0]
	}
	return r.order[1]
}

// checkCanary returns the comparison of a call that a canary is about to serve with one by the
// present impl, or with the reference where that cannot serve the call.
func (b *binding) checkCanary(t *table, c *candidate, a opregistry.Call) *check {
	s := c.canary.checks.of(a.Signature())
	k := &check{schedule: s, number: s.calls.Add(1), oracle: oracleOf(t, b.index)}
	if c.beside != nil {
		k.oracle, k.appeal = c.beside, k.oracle
	}
	k.prepare(a)
	return k
}

// judge tells the canary how a call went, nil if it was compared and right.
func (c *core) judge(op string, cand *candidate, err error) {
	k := cand.canary
	if k == nil || !k.active.Load() {
		return
	}
	ended := false
	if err == nil {
		ended = k.right(op)
	} else {
		ended = k.failed(err)
	}
	if ended {
		c.emit(CanaryChanged{k.stats()})
		c.rebuild()
	}
}
