package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/escape"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/plugin"
	"github.com/primus-fl/primus/vendors/plugin/sandbox"
)

// pluginDescription is what a plugin says about itself.
type pluginDescription struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	ABI     string        `json:"abi"`
	LeftOut []plugin.Left `json:"left_out"`
}

// described is a description with the impls that can be checked.
type described struct {
	pluginDescription
	Impls []implName `json:"impls"`
}

// implName tells the impls of a plugin apart.
type implName struct {
	Op string `json:"op"`
	ID string `json:"impl_id"`
}

// checkMessage is what a child found.
type checkMessage struct {
	Description *described `json:"description,omitempty"`
	Check       *opCheck   `json:"check,omitempty"`
	Fault       string     `json:"fault,omitempty"` // why there is no description

	processes int // that the child left over
}

// checkPlugin checks the plugin in a file. The error says why there is no report.
func checkPlugin(ctx context.Context, file string, opts checkOptions, status func(string)) (*checkReport, error) {
	report, err := newCheckReport(file)
	if err != nil || len(report.Faults) > 0 {
		return report, err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	status("description")
	told, fault, err := checkInChild(ctx, opts.limit, nil, file)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		report.Faults = append(report.Faults, fault)
		return report, nil
	}
	report.pluginDescription = told.Description.pluginDescription
	if told.processes > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("it left %d processes over, which were ended; those of a plugin that is not isolated stay", told.processes))
	}
	for _, impl := range told.Description.Impls {
		if ok, err := path.Match(opts.op, impl.Op); !ok || err != nil {
			continue
		}
		show := func(step string) { status(escape.Text(fmt.Sprintf("%s, %s: %s", impl.Op, impl.ID, step))) }
		told, fault, err := checkInChild(ctx, opts.limit, show, file, impl.Op, impl.ID)
		if err != nil {
			return nil, err
		}
		check := cmp.Or(told.Check, &opCheck{Op: impl.Op, Impl: impl.ID})
		if fault != "" {
			check.Faults = append(check.Faults, fault)
		}
		report.Checks = append(report.Checks, *check)
	}
	report.conclude(told.Description.Impls)
	return report, nil
}

// conclude sums up what the checks of a plugin with these impls found.
func (r *checkReport) conclude(impls []implName) {
	served, failed := 0, 0
	for _, c := range r.Checks {
		for _, f := range c.Faults {
			r.Faults = append(r.Faults, fmt.Sprintf("%s, %s: %s", c.Op, c.Impl, f))
		}
		if c.Unavailable != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, %s was not checked, it is not available on this machine: %s", c.Op, c.Impl, c.Unavailable))
		}
		for _, res := range c.Results {
			served, failed = served+res.Served, failed+len(res.Failures)
		}
	}
	for _, l := range r.LeftOut {
		r.Notes = append(r.Notes, fmt.Sprintf("%s, %s was not checked: %s", l.Op, l.Impl, l.Reason))
	}
	have := func(op opregistry.Handle) bool {
		return slices.ContainsFunc(impls, func(i implName) bool { return i.Op == op.Name() })
	}
	for _, op := range ops.All() {
		for _, other := range ops.All() {
			if have(op) && !have(other) && op.Family() != "" && op.Family() == other.Family() {
				r.Notes = append(r.Notes, fmt.Sprintf("%s without %s: the two are selected together, so training does not use it", op.Name(), other.Name()))
			}
		}
	}
	if served == 0 && len(r.Faults) == 0 && failed == 0 {
		r.Faults = append(r.Faults, "no case of any op was served, so nothing was checked")
	}
	r.Passed = len(r.Faults) == 0 && failed == 0
}

// checkInChild runs a part of the check in a child process, show with each of its steps, and returns the last that the
// child told. fault says what the plugin did to the child, or what the child says is wrong.
func checkInChild(ctx context.Context, limit time.Duration, show func(string), file string, impl ...string) (last checkMessage, fault string, err error) {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(limit, func() { end(fmt.Errorf("it did not come back within %v", limit)) })
	defer timer.Stop()
	watch := sandbox.Watch{
		Said: func(value []byte) error {
			last = checkMessage{}
			return json.Unmarshal(value, &last)
		},
		Left: func(n int) { last.processes = n },
		Step: func(step string) {
			timer.Reset(limit)
			if show != nil {
				show(step)
			}
		},
	}
	child := sandbox.Settings{Command: append([]string{graph.Self(), "plugins", checkChild}, impl...)}
	err = sandbox.Follow(running, file, child, watch)
	switch {
	case ctx.Err() != nil:
		return last, "", ctx.Err()
	case last.Fault != "":
		return last, last.Fault, nil
	case err != nil:
		return last, err.Error(), nil
	}
	return last, "", nil
}
