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
	// Patience is how long the runs may take to answer.
	Patience time.Duration
	// Rollback restores the previous policy if a run does not have the new one in force.
	Rollback bool
}

// Applied is the result of Apply.
type Applied struct {
	Revision int64       `json:"revision"`
	Runs     []RunResult `json:"runs"`
	Rollback *Applied    `json:"rollback,omitempty"` // of the previous policy, if it was restored

	rollbackErr error
}

// RunResult is the result of a policy in a run.
type RunResult struct {
	Run        string `json:"run"`
	Rank       string `json:"rank"` // with the number of ranks
	Host       string `json:"host"`
	Result     string `json:"result"` // in force, rejected, replaced or no answer
	Generation uint64 `json:"generation"`
	Reason     string `json:"reason,omitempty"`
}

// inForce is the Result of a run that uses the policy.
const inForce = "in force"

// Apply replaces the policy of the fleet as SetPolicy does and waits for the runs. The error says
// why the policy was not replaced, or why the answers of the runs are not known; Applied.Fault says
// whether all runs use it.
func (c *Client) Apply(ctx context.Context, text string, s ApplySettings) (Applied, error) {
	var before Policy
	if s.Rollback {
		now, err := c.Snapshot(ctx)
		if err != nil {
			return Applied{}, err
		}
		if before = now.Policy; s.Expect < 0 {
			s.Expect = before.Revision // restore the previous policy only if nobody else has replaced this one
		}
	}
	a, err := c.apply(ctx, text, s.Expect, s.Patience)
	if err != nil || !s.Rollback || a.missing() == 0 {
		return a, err
	}
	back, err := c.apply(ctx, cmp.Or(before.Text, "{}\n"), a.Revision, s.Patience)
	if err != nil {
		a.rollbackErr = err
	} else {
		a.Rollback = &back
	}
	return a, nil
}

// Fault returns an error if a run does not have the policy in force, with the state of the fleet
// after that.
func (a Applied) Fault() error {
	missing := a.missing()
	if missing == 0 {
		return nil
	}
	fault := fmt.Errorf("policy %d is not in force in %d of %s", a.Revision, missing, plaintext.Quantity(len(a.Runs), "run", "runs"))
	switch {
	case a.rollbackErr != nil:
		return errors.Join(fault, fmt.Errorf("roll back: %w", a.rollbackErr))
	case a.Rollback == nil:
		return fmt.Errorf("%w; it stays the policy of the fleet: apply another one, or use --rollback", fault)
	case a.Rollback.missing() > 0:
		return fmt.Errorf("%w; the previous policy is now policy %d and not in force in %d of %s", fault, a.Rollback.Revision, a.Rollback.missing(), plaintext.Quantity(len(a.Rollback.Runs), "run", "runs"))
	}
	return fmt.Errorf("%w; the previous policy is in force again as policy %d", fault, a.Rollback.Revision)
}

// missing returns how many runs do not have the policy in force.
func (a Applied) missing() (n int) {
	for _, r := range a.Runs {
		if r.Result != inForce {
			n++
		}
	}
	return n
}

// apply replaces the policy and waits for the runs.
func (c *Client) apply(ctx context.Context, text string, expect int64, patience time.Duration) (Applied, error) {
	revision, err := c.SetPolicy(ctx, text, expect)
	if err != nil {
		return Applied{}, err
	}
	members, err := c.awaitReports(ctx, revision, patience)
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
func (c *Client) awaitReports(ctx context.Context, revision int64, patience time.Duration) ([]Member, error) {
	const between = 200 * time.Millisecond
	for over := time.Now().Add(patience); ; {
		s, err := c.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		waiting := false
		for _, m := range s.Members {
			waiting = waiting || m.Policy.Seen < revision
		}
		if !waiting || time.Now().After(over) {
			return s.Members, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
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
