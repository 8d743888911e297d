package plugins

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/opstest"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
	"github.com/primus-fl/primus/vendors/plugin"
	"github.com/primus-fl/primus/vendors/plugin/sandbox"
)

// checkChild is the command that checks a part of a plugin for `primus plugins check`.
const checkChild = "check-child"

// opCheck is what was found about one op of a plugin.
type opCheck struct {
	Op          string           `json:"op"`
	Impl        string           `json:"impl_id"`
	Flags       []string         `json:"flags"`
	Unavailable string           `json:"unavailable,omitempty"` // why it cannot run on this machine
	Results     []opstest.Result `json:"conformance"`
	Together    *togetherCheck   `json:"together,omitempty"`
	Leaks       *leakCheck       `json:"leaks,omitempty"`
	Speed       []speedCheck     `json:"speed,omitempty"`
	Faults      []string         `json:"faults,omitempty"` // what is wrong, besides failed cases
}

func (c *opCheck) status() string {
	if c.Unavailable != "" {
		return "not available"
	}
	return "fail"
}

// servedDTypes are the storage dtypes of which all cases were right.
func (c *opCheck) servedDTypes() []tensor.DType {
	var served []tensor.DType
	for _, r := range c.Results {
		if r.Status() == "pass" {
			served = append(served, r.DType)
		}
	}
	return served
}

func newPluginsCheckChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    checkChild + " [OP IMPL] FILE",
		Short:  "Check a part of a plugin for primus plugins check",
		Hidden: true,
		Args:   cobra.RangeArgs(1, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			return sandbox.Report(func(host *sandbox.Reporter) error { return checkPart(args, host) })
		},
	}
}

// checkPart opens a plugin and describes it, or checks one of its ops.
func checkPart(args []string, host *sandbox.Reporter) error {
	p, err := plugin.Open(args[len(args)-1], plugin.Settings{Ops: ops.All(), Before: host.Step})
	if err != nil {
		return host.Say(checkMessage{Fault: err.Error()})
	}
	if len(args) < 3 {
		found, err := describePlugin(p)
		if err != nil {
			return host.Say(checkMessage{Fault: err.Error()})
		}
		return host.Say(checkMessage{Description: found})
	}
	c := &opChecker{plugin: p, source: p.Source(), name: implName{args[0], args[1]}, host: host}
	return c.run()
}

func describePlugin(p *plugin.Plugin) (*described, error) {
	src := p.Source()
	reg := opregistry.NewRegistry()
	for _, s := range []opregistry.Source{flagos.Source(), reference.Source(), src} {
		if err := reg.Register(s); err != nil {
			return nil, err
		}
	}
	d := &described{pluginDescription: pluginDescription{Name: p.Name(), Version: p.Version(), ABI: p.ABI(), LeftOut: p.Left()}}
	for _, i := range src.Impls {
		d.Impls = append(d.Impls, implName{i.Op.Name(), i.ID})
	}
	return d, nil
}

// opChecker checks one op of a plugin.
type opChecker struct {
	plugin *plugin.Plugin
	source opregistry.Source
	name   implName
	host   *sandbox.Reporter

	impl    opregistry.Impl
	subject opstest.Subject
	flags   uint32
	found   opCheck
}

// run tells what was found after each part, because the next one may be the last.
func (c *opChecker) run() error {
	impl, ok := implOf(c.source, c.name)
	if !ok {
		return c.host.Say(checkMessage{Fault: fmt.Sprintf("the plugin has no impl %q of op %q any more", c.name.ID, c.name.Op)})
	}
	c.impl, c.flags = impl, c.plugin.Flags(c.name.Op, c.name.ID)
	c.subject = subjectOf(c.source, impl)
	c.found = opCheck{Op: c.name.Op, Impl: c.name.ID, Flags: flagWords(c.flags)}
	if err := impl.Available(); err != nil {
		c.found.Unavailable = err.Error()
		return c.tell()
	}
	for _, part := range []func() error{c.conform, c.keepControl, c.hammer, c.leak, c.measure} {
		err := part()
		if err != nil {
			c.found.Faults = append(c.found.Faults, err.Error())
		}
		if told := c.tell(); told != nil || err != nil {
			return told
		}
	}
	return nil
}

// keepControl refuses ops that change the floating-point environment. That is undone here, but the vendor's own tests may
// have passed because of it.
func (c *opChecker) keepControl() error {
	if changes := c.plugin.Control(); len(changes) > 0 {
		return errors.New(strings.Join(changes, "; "))
	}
	return nil
}

// tell says what was found so far.
func (c *opChecker) tell() error { return c.host.Say(checkMessage{Check: &c.found}) }

func (c *opChecker) step(format string, args ...any) { c.host.Step(fmt.Sprintf(format, args...)) }

// conform runs the conformance kit.
func (c *opChecker) conform() error {
	oracle, ok := implOf(reference.Source(), implName{c.name.Op, reference.ID})
	if !ok {
		return fmt.Errorf("op %q has no reference to be compared with", c.name.Op)
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
		options := []opstest.Option{opstest.WithDTypes(d), opstest.WithProgress(func(name string) { c.step("case %s", name) })}
		if c.subject.Forward != nil {
			options = append(options, opstest.WithForward(*c.subject.Forward))
		}
		if c.flags&abi.Deterministic == 0 {
			options = append(options, opstest.Irreproducible())
		}
		results, err := opstest.Verify(c.impl, oracle, options...)
		if err != nil {
			return err
		}
		c.found.Results = append(c.found.Results, results...)
		if err := c.tell(); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.found.Results, func(r opstest.Result) bool { return r.Status() != "unsupported" }) {
		return errors.New("it declined all cases")
	}
	return nil
}

// togetherCheck says how many threads made how many calls at the same time.
type togetherCheck struct {
	Callers int `json:"callers"`
	Calls   int `json:"calls"`
}

const (
	callsOfOne  = 500 // of a caller of hammer, or as many as fit into hammerLimit
	hammerLimit = 3 * time.Second
)

// hammer calls the op from many goroutines, each with operands of its own, and compares each result with that of a call
// alone.
func (c *opChecker) hammer() error {
	for _, d := range c.found.servedDTypes() {
		callers := 2 * max(2, goruntime.GOMAXPROCS(0))
		subjects := slices.Repeat([]opstest.Subject{c.subject}, callers+1)
		c.step("%d callers at the same time in %v", callers, d)
		work, err := opstest.Largest(d, subjects...)
		if err != nil {
			return err
		}
		if work == nil {
			continue
		}
		tolerance := func(d tensor.DType) (tol tensor.Tolerance) {
			if c.flags&abi.Deterministic == 0 {
				tol, _ = ops.Tolerance(c.name.Op, d)
			}
			return tol
		}
		calls := make([]int, callers)
		errs := make([]error, callers)
		end := time.Now().Add(hammerLimit)
		exec := opregistry.NewExec(nil, device.DefaultStream)
		var all sync.WaitGroup
		for k := range callers {
			all.Go(func() {
				for errs[k] == nil && calls[k] < callsOfOne && time.Now().Before(end) {
					if _, errs[k] = work[k].Run(exec); errs[k] == nil {
						errs[k] = work[k].Check(work[callers], tolerance)
					}
					calls[k]++
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("beside other calls: case %s: %w", work[0].Case, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })])
		}
		if c.found.Together == nil {
			c.found.Together = &togetherCheck{Callers: callers}
		}
		for _, n := range calls {
			c.found.Together.Calls += n
		}
	}
	return nil
}

// implOf returns the impl of a source with this name.
func implOf(src opregistry.Source, name implName) (opregistry.Impl, bool) {
	for _, i := range src.Impls {
		if i.Op.Name() == name.Op && i.ID == name.ID {
			return i, true
		}
	}
	return opregistry.Impl{}, false
}

// subjectOf returns an impl with the one that writes the saved state it reads.
func subjectOf(src opregistry.Source, impl opregistry.Impl) opstest.Subject {
	s := opstest.Subject{Impl: impl}
	if forward, ok := opstest.Forward(src, impl); ok {
		s.Forward = &forward
	}
	return s
}

// flagWords returns the names of flags of package abi.
func flagWords(flags uint32) []string {
	words := []string{}
	for _, f := range []struct {
		bit  uint32
		name string
	}{{abi.ThreadSafe, "thread_safe"}, {abi.Deterministic, "deterministic"}, {abi.SameThread, "same_thread"}, {abi.Async, "async"}} {
		if flags&f.bit != 0 {
			words = append(words, f.name)
		}
	}
	return words
}
