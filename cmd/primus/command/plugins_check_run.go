package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/vendors/plugin"
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

// checkMessage is a line that a child writes: what it does next, or what it found.
type checkMessage struct {
	Step        string     `json:"step,omitempty"`
	Description *described `json:"description,omitempty"`
	Check       *opCheck   `json:"check,omitempty"`
	Error       string     `json:"error,omitempty"`
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
	found, fault, err := checkInChild(ctx, opts.limit, nil, file)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		report.Faults = append(report.Faults, fault)
		return report, nil
	}
	report.pluginDescription = found.Description.pluginDescription
	for _, impl := range found.Description.Impls {
		if ok, err := path.Match(opts.op, impl.Op); !ok || err != nil {
			continue
		}
		name := fmt.Sprintf("%s, %s", impl.Op, impl.ID)
		var last *opCheck
		show := func(m checkMessage) {
			if m.Check != nil {
				last = m.Check
			}
			status(name + ": " + m.Step)
		}
		_, fault, err := checkInChild(ctx, opts.limit, show, file, impl.Op, impl.ID)
		if err != nil {
			return nil, err
		}
		if last == nil {
			last = &opCheck{Op: impl.Op, Impl: impl.ID}
		}
		if fault != "" {
			last.Faults = append(last.Faults, fault)
		}
		report.Checks = append(report.Checks, *last)
	}
	report.conclude(found.Description.Impls)
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

// signalled matches what Go prints about a signal that ends a program.
var signalled = regexp.MustCompile(`SIG[A-Z0-9]+: [a-z ]+`)

// checkInChild runs a part of the check in a child process, show with each of its messages, and returns the last one.
// fault says what the plugin did to the child, or what the child says is wrong.
func checkInChild(ctx context.Context, limit time.Duration, show func(checkMessage), args ...string) (last checkMessage, fault string, err error) {
	self, err := os.Executable()
	if err != nil {
		return last, "", err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return last, "", err
	}
	defer ours.Close()
	running, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(running, self, append([]string{"plugins", checkChild, "--"}, args...)...)
	cmd.Env = append(os.Environ(), "GOTRACEBACK=none")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.WaitDelay = time.Second
	text := &lastText{}
	cmd.Stdout, cmd.Stderr = text, text
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return last, "", fmt.Errorf("start a child process: %w", err)
	}
	step := "the start of the process"
	timedOut := false
	timer := time.AfterFunc(limit, func() {
		end()
		_ = ours.SetReadDeadline(time.Now()) // a process that the plugin started may hold the other end
	})
	for dec := json.NewDecoder(ours); ; {
		var m checkMessage
		if err := dec.Decode(&m); err != nil {
			timedOut = !timer.Stop() && ctx.Err() == nil
			break
		}
		timer.Reset(limit)
		last = m
		if m.Step != "" {
			step = m.Step
		}
		if show != nil {
			show(m)
		}
	}
	err = cmd.Wait()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch signal := signalled.FindString(text.String()); {
	case ctx.Err() != nil:
		return last, "", ctx.Err()
	case timedOut:
		return last, fmt.Sprintf("%s did not end within %v", step, limit), nil
	case last.Error != "":
		return last, last.Error, nil
	case err == nil && last.Step == "":
		return last, "", nil
	case exited && signal != "":
		return last, fmt.Sprintf("%s crashed with %s", step, signal), nil
	case exited && exit.ExitCode() < 0:
		return last, fmt.Sprintf("%s was ended: %v", step, exit), nil
	case err == nil || exited:
		return last, fmt.Sprintf("%s ended the process: %v%s", step, cmd.ProcessState, said(text.String())), nil
	}
	return last, "", err
}

// said quotes the last line of a text.
func said(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf(" after %q", last)
	}
	return ""
}

// lastText keeps the last part of what is written to it.
type lastText struct{ text []byte }

const lastTextBytes = 16 << 10

// Write implements io.Writer.
func (l *lastText) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	if over := len(l.text) - lastTextBytes; over > 0 {
		l.text = append([]byte(nil), l.text[over:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (l *lastText) String() string { return strings.ToValidUTF8(string(l.text), "?") }

var _ io.Writer = (*lastText)(nil)
