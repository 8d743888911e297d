package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
)

// trialSteps is how many steps of each run are compared with those before.
const trialSteps = 5

// fallbackSlack is how much the share of calls that fall back may grow in any case.
const fallbackSlack = 0.001

// tooSlow is the Result of a run that has become slower than permitted.
const tooSlow = "too slow"

// trial compares the steps of runs under a new policy with those before.
type trial struct {
	client      *Client
	maxSlowdown float64
	patience    time.Duration // for an answer
	length      time.Duration // for the steps
	before      map[string]Status
}

// newTrial notes how fast the runs are. A run that has not done enough steps under its dispatch
// table cannot be judged, which is an error.
func (c *Client) newTrial(ctx context.Context, s ApplySettings) (*trial, error) {
	now, err := c.List(ctx, s.Patience)
	if err != nil {
		return nil, err
	}
	t := &trial{client: c, maxSlowdown: s.MaxSlowdown, patience: s.Patience, length: s.Trial, before: map[string]Status{}}
	var faults []string
	for _, m := range now.Members {
		t.before[m.ID] = m.Status
		if n := len(m.Status.Pace.StepSeconds); n < trialSteps {
			faults = append(faults, fmt.Sprintf("%s (%s) has done %s", m.ID, m.Status, plaintext.Quantity(n, "step", "steps")))
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("fleet: nothing has changed: a limit of slowdown compares with the last %d steps of each run under its present dispatch, but %s; wait, or apply the policy without a limit", trialSteps, strings.Join(faults, ", "))
	}
	return t, nil
}

// judge waits until the runs have done enough steps under the policy, and marks those that have
// become too slow.
func (t *trial) judge(ctx context.Context, a *Applied) error {
	const between = time.Second
	for over := time.Now().Add(t.length); ; {
		now, err := t.client.List(ctx, t.patience)
		if err != nil {
			return err
		}
		waiting := false
		late := time.Now().After(over)
		for i := range a.Runs {
			r := &a.Runs[i]
			if r.Result != inForce {
				continue
			}
			reason, undecided := t.compare(r, now)
			if undecided && !late {
				waiting = true
				continue
			}
			if reason != "" {
				r.Result, r.Reason = tooSlow, reason
			}
		}
		if !waiting || late {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(between):
		}
	}
}

// compare returns why a run is too slow, "" if it is not. A run that has ended by itself is not
// judged.
func (t *trial) compare(r *RunResult, now Snapshot) (reason string, undecided bool) {
	before, known := t.before[r.Run]
	all := slices.Concat(now.Members, now.Ended)
	i := slices.IndexFunc(all, func(m Member) bool { return m.ID == r.Run })
	if !known || i < 0 {
		return "", false // it came after the others, and has nothing to compare with
	}
	s := all[i].Status
	switch s.State {
	case StateEnded:
		if s.ExitCode != nil && *s.ExitCode != 0 {
			return fmt.Sprintf("the run has %s: %s", s, s.Detail), false
		}
		return "", false
	case StateLost:
		return "the run is lost", false
	case StateStalled, StateDiverged:
		if s.State != before.State {
			return fmt.Sprintf("the run is %s: %s", s, s.Detail), false
		}
	case StateStarting, StateTraining:
	}
	if n := len(s.Pace.StepSeconds); s.Pace.Generation < r.Generation || n < trialSteps {
		if s.Pace.Generation < r.Generation {
			n = 0
		}
		return fmt.Sprintf("it has done %d of %d steps within %s (--trial)", n, trialSteps, t.length), true
	}
	was, is := before.Pace.Median(), s.Pace.Median()
	if is > was*(1+t.maxSlowdown) {
		return fmt.Sprintf("a step takes %.3g s, was %.3g s: %.0f %% longer, more than %.0f %%", is, was, 100*(is/was-1), 100*t.maxSlowdown), false
	}
	if was, is := before.Pace.FallbackRate(), s.Pace.FallbackRate(); is > was*(1+t.maxSlowdown)+fallbackSlack {
		return fmt.Sprintf("%.2f %% of calls fall back, were %.2f %%", 100*is, 100*was), false
	}
	return "", false
}
