// Package check checks the ops of a plugin: its description, every op in all cases of the
// conformance kit against a reference, calls from many threads, what calls leave in memory and in
// open files, and how long a call takes.
//
// # Concepts
//
// [Plugin] starts a child process for each op, so an op that crashes or hangs is reported and the
// others are still checked. The child is the same program; it calls [Part].
//
// # Concurrency
//
// Several plugins can be checked at the same time, but each check disturbs the measurements of the
// others.
//
// # Errors
//
// Faults of a plugin are in the Report. An error says why there is no Report.
package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/klauspost/cpuid/v2"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/opstest"
)

// Description is what a plugin says about itself.
type Description struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	ABI     string            `json:"abi"`
	LeftOut []plugin.UnusedOp `json:"left_out"`
}

// described is a description with the impls that can be checked.
type described struct {
	Description
	Impls []name `json:"impls"`
}

// name identifies an impl of a plugin.
type name struct {
	Op     string `json:"op"`
	ID     string `json:"impl_id"`
	Device string `json:"device"` // type of the device that has the operands; "" is the CPU
}

// onDevice names the impl, and where its operands are.
func (n name) onDevice() string {
	if n.Device == "" {
		return n.ID
	}
	return n.ID + " on " + n.Device
}

// Report is what a check found.
type Report struct {
	File    string          `json:"file"`
	SHA256  string          `json:"sha256"`
	Primus  buildinfo.Build `json:"primus"`
	CPU     string          `json:"cpu"`
	Threads int             `json:"threads"`
	Description
	Checks []OpReport `json:"ops"`
	Faults []string   `json:"faults"` // what is wrong, besides failed cases
	Notes  []string   `json:"notes"`
	Passed bool       `json:"passed"`
}

// newReport begins the report on a file with what is known without loading it.
func newReport(file string) (*Report, error) {
	found, fault := plugin.Examine(file)
	if found.SHA256 == "" {
		return nil, fault
	}
	r := &Report{
		File: file, SHA256: found.SHA256, Primus: buildinfo.Read(), CPU: cpuid.CPU.BrandName,
		Threads: goruntime.GOMAXPROCS(0), Checks: []OpReport{}, Faults: []string{}, Notes: []string{},
	}
	if fault != nil {
		r.Faults = append(r.Faults, fault.Error())
		return r, nil
	}
	if _, err := plugin.Inspect(file); err != nil {
		r.Notes = append(r.Notes, "it would not be loaded from here: "+err.Error())
	}
	if seen := witnessed(file); seen != "" {
		r.Notes = append(r.Notes, seen)
	}
	return r, nil
}

// message is what a child reports.
type message struct {
	Description *described `json:"description,omitempty"`
	Check       *OpReport  `json:"check,omitempty"`
	Fault       string     `json:"fault,omitempty"` // why there is no description

	processes int    // that the child left running
	lines     int    // that the plugin printed
	line      string // the first of them
}

// Settings say how a plugin is checked.
type Settings struct {
	// Command starts a child of this program that calls [Part] with the words that are appended to
	// the command.
	Command []string
	Ops     string        // pattern of path.Match for the names of the ops that are checked
	Limit   time.Duration // for each part of the check
	Status  func(string)  // is called with the name of what is being checked
}

// PartSettings are what the ops of a plugin are compared with.
type PartSettings struct {
	Reference opregistry.Source // computes the right results
	Baseline  opregistry.Source // is measured beside the plugin

	DeviceBaseline opregistry.Source // the same on devices

	Options []opstest.Option // of the conformance kit

	// Device returns the backend of devices of a type, or why there is none.
	Device func(device.Type) (device.Backend, error)
}

// Part does the work of a child process of a check. words are those that were appended to
// Settings.Command. Part reports on the standard output of the process.
func Part(words []string, set PartSettings) error {
	return sandbox.Report(func(host *sandbox.Reporter) error { return checkPart(words, set, host) })
}

// Plugin checks the plugin in a file. The error says why there is no report.
func Plugin(ctx context.Context, file string, set Settings) (*Report, error) {
	report, err := newReport(file)
	if err != nil || len(report.Faults) > 0 {
		return report, err
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	set.Status("description")
	told, fault, err := set.inChild(ctx, nil, file)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		report.Faults = append(report.Faults, fault)
		return report, nil
	}
	report.Description = told.Description.Description
	if told.processes > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("it left %d processes running, which were ended; those of a plugin that is not isolated keep running", told.processes))
	}
	for _, impl := range told.Description.Impls {
		if ok, err := path.Match(set.Ops, impl.Op); !ok || err != nil {
			continue
		}
		show := func(step string) {
			set.Status(plaintext.Text(fmt.Sprintf("%s, %s: %s", impl.Op, impl.onDevice(), step)))
		}
		told, fault, err := set.inChild(ctx, show, file, impl.Op, impl.ID, impl.Device)
		if err != nil {
			return nil, err
		}
		if told.lines > 0 && fault == "" {
			report.Notes = append(report.Notes, fmt.Sprintf("%s, %s printed %d lines to the standard error of the process, the first %q", impl.Op, impl.onDevice(), told.lines, told.line))
		}
		check := cmp.Or(told.Check, &OpReport{Op: impl.Op, Impl: impl.ID, Device: impl.Device})
		if fault != "" {
			check.Faults = append(check.Faults, fault)
		}
		report.Checks = append(report.Checks, *check)
	}
	report.conclude(told.Description.Impls)
	return report, nil
}

// conclude sums up what the checks of a plugin with these impls found.
func (r *Report) conclude(impls []name) {
	served, failed := 0, 0
	for _, c := range r.Checks {
		for _, f := range c.Faults {
			r.Faults = append(r.Faults, fmt.Sprintf("%s, %s: %s", c.Op, c.Name(), f))
		}
		if c.Unavailable != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, %s was not checked, it is not available on this machine: %s", c.Op, c.Name(), c.Unavailable))
		}
		if c.Leaks != nil && c.Leaks.TooFew {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, %s was not checked for leaks: only %d calls fit into %v, too few to tell a leak from what a driver keeps; check on a machine with less to do",
				c.Op, c.Name(), c.Leaks.Calls, leakLimit))
		}
		for _, res := range c.Results {
			served, failed = served+res.Served, failed+len(res.Failures)
		}
	}
	for _, l := range r.LeftOut {
		r.Notes = append(r.Notes, fmt.Sprintf("%s, %s was not checked: %s", l.Op, l.Impl, l.Reason))
	}
	have := func(op opregistry.Handle) bool {
		return slices.ContainsFunc(impls, func(i name) bool { return i.Op == op.Name() })
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

// inChild runs a part of the check in a child process, calls show with each of its steps, and
// returns the last message of the child. fault says how the plugin ended the child, or what the
// child found wrong.
func (s *Settings) inChild(ctx context.Context, show func(string), file string, impl ...string) (last message, fault string, err error) {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	timer := time.AfterFunc(s.Limit, func() { end(fmt.Errorf("it did not come back within %v", s.Limit)) })
	defer timer.Stop()
	lines, line := 0, ""
	watch := sandbox.Watch{
		Said: func(value []byte) error {
			last = message{}
			return json.Unmarshal(value, &last)
		},
		Printed: func(text string) {
			if lines++; lines == 1 {
				line = text
			}
		},
		Leftover: func(n int) { last.processes = n },
		Step: func(step string) {
			timer.Reset(s.Limit)
			if show != nil {
				show(step)
			}
		},
	}
	child := sandbox.Settings{Command: slices.Concat(s.Command, impl)}
	err = sandbox.Follow(running, file, child, watch)
	last.lines, last.line = lines, line
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
