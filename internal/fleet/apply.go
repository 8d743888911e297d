package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
)

// ApplySettings say how Apply replaces a policy.
type ApplySettings struct {
	// Expect is the revision of the policy to replace, 0 for none; a negative number is any.
	Expect int64
	// Patience is how long the runs may take to answer, each time they are asked.
	Patience time.Duration
	// Keep leaves the new policy to the fleet if a run does not have it in force. Otherwise the
	// previous one is restored.
	Keep bool
	// MaxSlowdown, unless it is 0, is by which part the median step of a run may become longer, or the
	// share of calls that fall back larger. Runs have the time Trial for the steps that show it. The
	// policy of a run that has become slower is taken back.
	MaxSlowdown float64
	Trial       time.Duration
	// Who changes the policy, for the history.
	Who string
	// Notify is called for each answer of a run; nil is not.
	Notify func(RunResult)
}

// Applied is the result of Apply.
type Applied struct {
	Revision int64       `json:"revision"` // 0 if runs have refused the policy, so that it was not set
	Runs     []RunResult `json:"runs"`
	Rollback *Applied    `json:"rollback,omitempty"` // of the previous policy, if it was restored

	rollbackErr error
}

// RunResult is the result of a policy in a run.
type RunResult struct {
	Run        string `json:"run"`
	Rank       string `json:"rank"` // with the number of ranks
	Host       string `json:"host"`
	Result     string `json:"result"` // usable or refused before; in force, rejected, replaced, no answer or too slow
	Generation uint64 `json:"generation"`
	Reason     string `json:"reason,omitempty"`
}

// The Results of a run that could use the policy, and of one that does.
const (
	usable  = "usable"
	inForce = "in force"
)

// Apply asks all runs whether they could use a policy. If one of them could not, or does not
// answer, nothing changes. Otherwise it replaces the policy of the fleet as SetPolicy does,
// provided that nobody else has meanwhile, and waits for the runs. The error says why the policy
// was not replaced, or why the answers of the runs are not known; Applied.Fault says whether all
// runs use it.
func (c *Client) Apply(ctx context.Context, text string, s ApplySettings) (Applied, error) {
	change := Change{Text: text, Who: s.Who, Why: "apply"}
	return c.replace(ctx, s, func(Snapshot) (Change, error) { return change, nil })
}

// Rollback is Apply of the policy before the present one, or of that of a revision in the history.
func (c *Client) Rollback(ctx context.Context, revision int64, s ApplySettings) (Applied, error) {
	history, err := c.History(ctx)
	if err != nil {
		return Applied{}, err
	}
	return c.replace(ctx, s, func(now Snapshot) (Change, error) {
		to, err := before(history, now.Policy.Revision, revision)
		why := "rollback"
		if to.Revision != 0 {
			why = fmt.Sprintf("rollback to %d", to.Revision)
		}
		return Change{Text: to.Text, Who: s.Who, Why: why}, err
	})
}

// replace is Apply of the policy that next returns.
func (c *Client) replace(ctx context.Context, s ApplySettings, next func(now Snapshot) (Change, error)) (Applied, error) {
	now, err := c.Snapshot(ctx)
	if err != nil {
		return Applied{}, err
	}
	was := now.Policy
	if s.Expect >= 0 && s.Expect != was.Revision {
		return Applied{}, &ConflictError{Got: was.Revision, Want: s.Expect}
	}
	change, err := next(now)
	if err != nil {
		return Applied{}, err
	}
	asked, heard, err := c.ask(ctx, Question{Policy: &change.Text}, s.Patience, nil, func(m Member, r reply) { s.notify(m.checked(r)) })
	if err != nil {
		return Applied{}, err
	}
	a := Applied{Runs: []RunResult{}}
	refused := false
	for _, m := range asked.Members {
		r := heard.of(m, s.Patience)
		refused = refused || !r.Usable
		a.Runs = append(a.Runs, m.checked(r))
	}
	if refused {
		return a, nil
	}
	var watched *trial
	if s.MaxSlowdown > 0 {
		if watched, err = c.newTrial(ctx, s); err != nil {
			return Applied{}, err
		}
	}
	if a, err = c.commit(ctx, change, was.Revision, s); err != nil {
		return a, err
	}
	if watched != nil && a.missing() == 0 {
		if err := watched.judge(ctx, &a); err != nil {
			return a, fmt.Errorf("the policy is replaced, revision %d, but whether runs are slower is not known: %w", a.Revision, err)
		}
	}
	if s.Keep || a.missing() == 0 {
		return a, nil
	}
	why := fmt.Sprintf("policy %d was not in force in %d of %s", a.Revision, a.missing(), plaintext.Quantity(len(a.Runs), "run", "runs"))
	if slow := a.slow(); slow > 0 {
		why = fmt.Sprintf("policy %d made %d of %s too slow", a.Revision, slow, plaintext.Quantity(len(a.Runs), "run", "runs"))
	}
	back, err := c.commit(ctx, Change{Text: cmp.Or(was.Text, "{}\n"), Who: s.Who, Why: why}, a.Revision, s)
	if err != nil {
		a.rollbackErr = err
	} else {
		a.Rollback = &back
	}
	return a, nil
}

func (s ApplySettings) notify(r RunResult) {
	if s.Notify != nil {
		s.Notify(r)
	}
}

// Fault returns an error if a run does not have the policy in force, with the state of the fleet
// after that.
func (a Applied) Fault() error {
	missing := a.missing()
	if missing == 0 {
		return nil
	}
	all := plaintext.Quantity(len(a.Runs), "run", "runs")
	if a.Revision == 0 {
		return fmt.Errorf("nothing has changed: %d of %s cannot use the policy, or did not answer", missing, all)
	}
	fault := fmt.Errorf("policy %d is not in force in %d of %s", a.Revision, missing, all)
	if slow := a.slow(); slow > 0 {
		fault = fmt.Errorf("policy %d makes %d of %s slower than permitted", a.Revision, slow, all)
	}
	switch {
	case a.rollbackErr != nil:
		return errors.Join(fault, fmt.Errorf("roll back: %w", a.rollbackErr))
	case a.Rollback == nil:
		return fmt.Errorf("%w; it stays the policy of the fleet: apply another one, or use primus fleet policy rollback", fault)
	case a.Rollback.missing() > 0:
		return fmt.Errorf("%w; the previous policy is now policy %d and not in force in %d of %s", fault, a.Rollback.Revision, a.Rollback.missing(), plaintext.Quantity(len(a.Rollback.Runs), "run", "runs"))
	}
	return fmt.Errorf("%w; the previous policy is in force again as policy %d", fault, a.Rollback.Revision)
}

// slow returns how many runs have become slower than permitted.
func (a Applied) slow() (n int) {
	for _, r := range a.Runs {
		if r.Result == tooSlow {
			n++
		}
	}
	return n
}

// missing returns how many runs do not have the policy in force, or could not use it.
func (a Applied) missing() (n int) {
	for _, r := range a.Runs {
		if r.Result != inForce && r.Result != usable {
			n++
		}
	}
	return n
}

// commit replaces the policy and waits for the runs.
func (c *Client) commit(ctx context.Context, change Change, expect int64, s ApplySettings) (Applied, error) {
	revision, err := c.setPolicy(ctx, change, expect)
	if err != nil {
		return Applied{}, err
	}
	members, err := c.awaitReports(ctx, revision, s)
	if err == nil {
		err = c.forgetOldChanges(ctx)
	}
	if err != nil {
		return Applied{}, fmt.Errorf("the policy is replaced, revision %d, but the answers of the runs are not known: %w", revision, err)
	}
	a := Applied{Revision: revision, Runs: []RunResult{}}
	for _, m := range members {
		a.Runs = append(a.Runs, m.resultOf(revision))
	}
	return a, nil
}

// awaitReports returns the members when all have seen this policy or a later one, or when patience
// is over.
func (c *Client) awaitReports(ctx context.Context, revision int64, s ApplySettings) ([]Member, error) {
	const between = 200 * time.Millisecond
	reported := map[string]bool{}
	for over := time.Now().Add(s.Patience); ; {
		now, err := c.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		waiting := false
		for _, m := range now.Members {
			if m.Policy.Seen < revision {
				waiting = true
			} else if !reported[m.ID] {
				reported[m.ID] = true
				s.notify(m.resultOf(revision))
			}
		}
		if !waiting || time.Now().After(over) {
			return now.Members, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}

// checked returns whether the run could use a policy.
func (m Member) checked(r reply) RunResult {
	result := RunResult{Run: m.ID, Rank: m.RankText(), Host: m.Host, Result: usable, Generation: m.Generation}
	if !r.Usable {
		result.Result, result.Reason = "refused", cmp.Or(r.Error, "the run did not say whether it could use the policy")
	}
	return result
}

// resultOf returns the result of a policy in the run.
func (m Member) resultOf(revision int64) RunResult {
	r := RunResult{Run: m.ID, Rank: m.RankText(), Host: m.Host, Result: inForce, Generation: m.Generation}
	switch {
	case m.Policy.Seen < revision:
		r.Result = "no answer"
	case m.Policy.Seen > revision:
		r.Result, r.Reason = "replaced", fmt.Sprintf("by policy %d", m.Policy.Seen)
	case m.Policy.Rejected != "":
		r.Result, r.Reason = "rejected", m.Policy.Rejected
	}
	return r
}

// RankText returns the rank with the number of ranks, such as 0/8.
func (m Member) RankText() string { return fmt.Sprintf("%d/%d", m.Rank, m.WorldSize) }
