package patch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Options say how Run applies patches.
type Options struct {
	Filter      Filter
	DryRun      bool // apply nothing
	StopOnError bool // return the first error of a handler

	// IdleLevel is the level of the lines that are logged when no patch is selected.
	IdleLevel slog.Level
}

// Report is what Run did.
type Report struct {
	Applied  []string // those that would be applied in a dry run
	Failed   []*Error
	NoEffect []string // those of Applied that were meant to change something and did not
}

const rule = "--------------------------------------------------------------------------------"

// Run applies the patches for the backend and phase of c in order. It writes the log lines of
// Primus. When a handler fails, its changes through the Context are undone; it is listed in the
// Report, and the other patches are applied, unless Options.StopOnError is set. A condition that
// fails is an error before any handler runs.
func (s *Set) Run(c *Context, o Options) (Report, error) {
	var report Report
	plan, err := s.plan(c, o.Filter)
	level := o.IdleLevel
	if err != nil || len(plan.Selected()) > 0 {
		level = slog.LevelInfo
	}
	say := func(format string, args ...any) { c.log(level, fmt.Sprintf(format, args...)) }
	say(rule)
	say("[Patch] Executing patches: backend=%s, phase=%s, backend_version=%s, primus_version=%s, model=%s, module=%s, platform=%s, dry_run=%s, enabled_ids=%s",
		pyText(c.Backend), pyText(string(c.Phase)), pyText(c.BackendVersion), pyText(c.PrimusVersion), pyText(c.ModelName),
		pyText(c.ModuleName), pyText(c.Platform), pyBool(o.DryRun), pyFilter(o.Filter))
	for _, skip := range plan.skipped {
		say("[Patch] ⊘ Skipped: %s (%s)", skip.id, skip.reason)
	}
	if err != nil {
		return report, err
	}
	selected := plan.Selected()
	say("[Patch] Pre-filtered %d patches (out of %d total) for %s/%s", len(selected), len(plan.Decisions), c.Backend, c.Phase)
	for _, p := range selected {
		if o.DryRun {
			say("[Patch] (dry-run) Would apply: %s (priority=%d)", p.ID, p.Priority.Int())
			report.Applied = append(report.Applied, p.ID)
			continue
		}
		say(rule)
		say("[Patch] Applying %s: %s", p.ID, p.Description)
		before := c.mark()
		if err := c.apply(p, before); err != nil {
			report.Failed = append(report.Failed, err)
			c.log(slog.LevelError, failure(err))
			if o.StopOnError {
				return report, err
			}
			continue
		}
		say("[Patch] ✓ Applied: %s (priority=%d)", p.ID, p.Priority.Int())
		report.Applied = append(report.Applied, p.ID)
		if p.Style != "" && p.Style != Lifecycle && !c.changedSince(before) {
			report.NoEffect = append(report.NoEffect, p.ID)
			c.warn(fmt.Sprintf("[Patch] %s changed nothing, although it is a patch of style %s", p.ID, p.Style))
		}
	}
	say("[Patch] Applied %d/%d patches for %s/%s: %s", len(report.Applied), len(selected), c.Backend, c.Phase, pyList(report.Applied))
	say(rule)
	return report, nil
}

// apply calls a handler and undoes its changes if it fails.
func (c *Context) apply(p *Patch, before mark) *Error {
	c.patch = p.ID
	defer func() { c.patch = "" }()
	err := guard(func() error { return p.Apply(c) })
	if err == nil {
		return nil
	}
	return &Error{p.ID, errors.Join(err, c.rewind(before))}
}

// failure is the line of the log for a handler that failed.
func failure(e *Error) string {
	if errors.Is(e.Err, ErrMissing) {
		return fmt.Sprintf("[Patch] ✗ Patch '%s' failed due to missing dependency: %v", e.ID, e.Err)
	}
	return fmt.Sprintf("[Patch] ✗ Patch '%s' failed: %v", e.ID, e.Err)
}

func (c *Context) log(level slog.Level, line string) {
	if c.Log != nil {
		c.Log.Log(context.Background(), level, line)
	}
}

func (c *Context) warn(line string) { c.log(slog.LevelWarn, line) }

// pyText writes a text that may be absent, as Python does.
func pyText(s string) string {
	if s == "" {
		return "None"
	}
	return s
}

func pyBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func pyFilter(f Filter) string {
	if !f.given {
		return "None"
	}
	return pyList(f.ids)
}

// pyList writes a list of texts as Python does: ['a', "it's"].
func pyList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quote := `'`
		if strings.Contains(item, `'`) && !strings.Contains(item, `"`) {
			quote = `"`
		}
		escaped := strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(item)
		quoted[i] = quote + escaped + quote
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
