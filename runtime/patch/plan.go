package patch

import (
	"cmp"
	"fmt"
	"slices"
)

// Error is a failure of one patch.
type Error struct {
	ID  string
	Err error
}

// Error names the patch.
func (e *Error) Error() string { return fmt.Sprintf("patch %q: %v", e.ID, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Decision says whether a patch runs, and why not.
type Decision struct {
	Patch  *Patch
	Run    bool
	Reason string // empty when it runs
}

// Plan says what would happen in a phase.
type Plan struct {
	// Decisions has an entry for every candidate. Those that run come first, in the order in which
	// they run.
	Decisions []Decision
	skipped   []skip
}

// skip is a line of the log about a candidate that the filter allows and that does not run.
type skip struct{ id, reason string }

// Selected returns the patches that run, in order.
func (p *Plan) Selected() []*Patch {
	var run []*Patch
	for _, d := range p.Decisions {
		if d.Run {
			run = append(run, d.Patch)
		}
	}
	return run
}

// Plan decides which patches for the backend and phase of c run. It evaluates every condition and
// changes nothing.
func (s *Set) Plan(c *Context, f Filter) (*Plan, error) {
	plan, err := s.plan(c, f)
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// plan returns the decisions so far even when it returns an error.
func (s *Set) plan(c *Context, f Filter) (*Plan, error) {
	plan := &Plan{}
	var run, rest []Decision
	for _, p := range s.candidates(c.Backend, c.Phase) {
		if !f.allows(p.ID) {
			rest = append(rest, Decision{Patch: p, Reason: "not listed in " + EnvFilter})
			continue
		}
		reason, detail, err := p.applies(c)
		switch {
		case err != nil:
			return plan, &Error{p.ID, err}
		case reason != "":
			plan.skipped = append(plan.skipped, skip{p.ID, reason})
			rest = append(rest, Decision{Patch: p, Reason: reason + detail})
		default:
			run = append(run, Decision{Patch: p, Run: true})
		}
	}
	slices.SortStableFunc(run, func(a, b Decision) int { return cmp.Compare(a.Patch.Priority.Int(), b.Patch.Priority.Int()) })
	plan.Decisions = append(run, rest...)
	return plan, nil
}

// applies returns why a candidate does not run, "" if it does: the reason for the log, and details.
func (p *Patch) applies(c *Context) (reason, detail string, err error) {
	if ok, err := matchAny(c.BackendVersion, p.BackendVersions); !ok || err != nil {
		return mismatch("backend", p.BackendVersions, c.BackendVersion), "", err
	}
	if ok, err := matchAny(c.PrimusVersion, p.PrimusVersions); !ok || err != nil {
		return mismatch("primus", p.PrimusVersions, c.PrimusVersion), "", err
	}
	if p.Condition.Holds == nil {
		return "", "", nil
	}
	var holds bool
	err = guard(func() (err error) {
		holds, err = p.Condition.Holds(c)
		return err
	})
	switch {
	case err != nil:
		return "", "", fmt.Errorf("condition: %w", err)
	case !holds && p.Condition.Text != "":
		return conditionNotMet, ": " + p.Condition.Text, nil
	case !holds:
		return conditionNotMet, "", nil
	}
	return "", "", nil
}

const conditionNotMet = "condition not met"

func mismatch(whose string, patterns []string, actual string) string {
	return fmt.Sprintf("%s version mismatch: required=%s, actual=%s", whose, pyList(patterns), pyText(actual))
}

// guard turns a panic of foreign code into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// Conflicts returns, for each symbol that several of these patches change, the patches in their
// order.
func Conflicts(patches []*Patch) map[string][]string {
	by := map[string][]string{}
	for _, p := range patches {
		for _, symbol := range p.Symbols {
			by[symbol] = append(by[symbol], p.ID)
		}
	}
	for symbol, ids := range by {
		if len(ids) < 2 {
			delete(by, symbol)
		}
	}
	return by
}
