package check

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// OpReport is what was found about one op of a plugin.
type OpReport struct {
	Op          string           `json:"op"`
	Impl        string           `json:"impl_id"`
	Device      string           `json:"device,omitempty"` // that has the operands, such as opencl:0; "" is the CPU
	Flags       []string         `json:"flags"`
	Unavailable string           `json:"unavailable,omitempty"` // why it cannot run on this machine
	Results     []opstest.Result `json:"conformance"`
	Together    *Together        `json:"together,omitempty"`
	Leaks       *Leaks           `json:"leaks,omitempty"`
	Speed       []Speed          `json:"speed,omitempty"`
	Sizes       []Size           `json:"sizes,omitempty"`  // at the sizes of models
	Faults      []string         `json:"faults,omitempty"` // what is wrong, besides failed cases
}

// Name names the impl, and where its operands were.
func (c *OpReport) Name() string { return name{ID: c.Impl, Device: c.Device}.onDevice() }

// Status says in words why there are no results.
func (c *OpReport) Status() string {
	if c.Unavailable != "" {
		return "not available"
	}
	return "fail"
}

// servedDTypes are the storage dtypes of which all cases were right.
func (c *OpReport) servedDTypes() []tensor.DType {
	var served []tensor.DType
	for _, r := range c.Results {
		if r.Status() == "pass" {
			served = append(served, r.DType)
		}
	}
	return served
}

// checkPart opens a plugin and describes it, or checks one of its ops.
func checkPart(args []string, set PartSettings, host *sandbox.Reporter) error {
	hide(sandbox.Variables())
	before := processState()
	p, err := plugin.Open(args[len(args)-1], plugin.Settings{Ops: ops.All(), Before: host.Step, Device: set.Device})
	if err != nil {
		return host.Say(message{Fault: err.Error()})
	}
	if len(args) < 4 {
		found, err := describe(p, set)
		if err != nil {
			return host.Say(message{Fault: err.Error()})
		}
		return host.Say(message{Description: found})
	}
	c := &checker{PartSettings: set, plugin: p, source: p.Source(), name: name{args[0], args[1], args[2]}, host: host, before: before}
	return c.run()
}

func describe(p *plugin.Plugin, set PartSettings) (*described, error) {
	src := p.Source()
	reg := opregistry.NewRegistry()
	for _, s := range []opregistry.Source{set.Baseline, set.DeviceBaseline, set.Reference, src} {
		if err := reg.Register(s); err != nil {
			return nil, err
		}
	}
	d := &described{Description: Description{Name: p.Name(), Version: p.Version(), ABI: p.ABI(), LeftOut: p.Unused()}}
	for _, i := range src.Impls {
		for _, t := range devicesOf(i) {
			n := name{Op: i.Op.Name(), ID: i.ID}
			if t != device.TypeCPU {
				n.Device = t.String()
			}
			d.Impls = append(d.Impls, n)
		}
	}
	return d, nil
}

// checker checks one op of a plugin.
type checker struct {
	PartSettings
	plugin *plugin.Plugin
	source opregistry.Source
	name   name
	host   *sandbox.Reporter
	before state // of this process, before the plugin was loaded

	backend device.Backend // of the device that has the operands, nil for the CPU
	impl    opregistry.Impl
	subject opstest.Subject
	flags   uint32
	found   OpReport
}

// run reports after each part, because the next part may crash.
func (c *checker) run() error {
	impl, ok := implOf(c.source, c.name)
	if !ok {
		return c.host.Say(message{Fault: fmt.Sprintf("the plugin has no impl %q of op %q any more", c.name.ID, c.name.Op)})
	}
	c.flags = c.plugin.Flags(c.name.Op, c.name.ID)
	c.found = OpReport{Op: c.name.Op, Impl: c.name.ID, Device: c.name.Device, Flags: flagWords(c.flags)}
	where := c.name.deviceOf(impl)
	err := impl.Available()
	if err == nil {
		c.backend, err = finder(c.Device).backend(where)
	}
	if err != nil {
		c.found.Unavailable = err.Error()
		return c.report()
	}
	if c.backend != nil {
		d, err := c.backend.Device()
		if err != nil {
			return err
		}
		c.found.Device = d.String()
	}
	c.source = on(where, c.backend, c.source, nil)
	c.impl, _ = implOf(c.source, c.name)
	c.subject = SubjectOf(c.source, c.impl)
	for _, part := range []func() error{c.conform, c.keepControl, c.hammer, c.leak, c.measure} {
		err := part()
		if err != nil {
			c.found.Faults = append(c.found.Faults, err.Error())
		}
		if sent := c.report(); sent != nil || err != nil {
			return sent
		}
	}
	return nil
}

// keepControl reports ops that change the floating-point environment or the state of the process,
// that print to its standard output, or that have the ops of this program compute.
// The former is undone here, but the vendor's own tests may have passed because of it.
func (c *checker) keepControl() error {
	now := processState()
	if c.backend != nil {
		c.before.forgive(now) // the driver of the device sets variables and handles signals
	}
	changes := slices.Concat(c.plugin.Control(), c.before.changes(now))
	flush()
	if line := c.host.Printed(); line != "" {
		changes = append(changes, fmt.Sprintf("it prints to the standard output, where commands write their results; the first line is %q", line))
	}
	for _, file := range mapped() {
		if ours(file) {
			changes = append(changes, fmt.Sprintf("it has loaded %s, the ops of this program: what it answers is not its own", file))
		}
	}
	if len(changes) > 0 {
		return errors.New(strings.Join(changes, "; "))
	}
	return nil
}

// report sends what was found so far to the host.
func (c *checker) report() error { return c.host.Say(message{Check: &c.found}) }

func (c *checker) step(format string, args ...any) { c.host.Step(fmt.Sprintf(format, args...)) }

// conform runs the conformance kit.
func (c *checker) conform() error {
	oracle, ok := implFor(c.Reference, c.name.Op)
	if !ok {
		return fmt.Errorf("op %q has no reference to be compared with", c.name.Op)
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
		options := []opstest.Option{opstest.WithDTypes(d), opstest.GuardPages(), opstest.WithProgress(func(name string) { c.step("case %s", name) })}
		options = append(options, c.Options...)
		if c.subject.Forward != nil {
			options = append(options, opstest.WithForward(*c.subject.Forward))
		}
		if forward, ok := opstest.Forward(c.Reference, oracle); ok {
			options = append(options, opstest.WithOracleForward(forward))
		}
		if c.flags&abi.Deterministic == 0 {
			options = append(options, opstest.Irreproducible())
		}
		results, err := opscases.All().Verify(c.impl, oracle, options...)
		if err != nil {
			return err
		}
		c.found.Results = append(c.found.Results, results...)
		if err := c.report(); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(c.found.Results, func(r opstest.Result) bool { return r.Status() != "unsupported" }) {
		return errors.New("it declined all cases")
	}
	return nil
}

// Together says how many threads made how many calls at the same time.
type Together struct {
	Callers int `json:"callers"`
	Calls   int `json:"calls"`
}

const (
	callsOfOne  = 500 // of a caller of hammer, or as many as fit into its part of hammerLimit
	hammerLimit = 2 * time.Second
)

// hammer calls the op from many goroutines, each with its own operands, and compares each result
// with that of a single call.
func (c *checker) hammer() error {
	limit := hammerLimit / time.Duration(max(1, len(c.found.servedDTypes())))
	if c.backend != nil {
		limit /= 4 // a device has fewer threads to offer than the processor
	}
	for _, d := range c.found.servedDTypes() {
		callers := 2 * max(2, goruntime.GOMAXPROCS(0))
		subjects := slices.Repeat([]opstest.Subject{c.subject}, callers+1)
		c.step("%d callers at the same time in %v", callers, d)
		work, err := opscases.All().Largest(d, subjects...)
		if err != nil {
			return err
		}
		if work == nil {
			continue
		}
		tolerance := func(d tensor.DType) (tol tensor.Tolerance) {
			if c.flags&abi.Deterministic == 0 {
				tol = c.subject.Impl.Op.Tolerance().Of(d)
			}
			return tol
		}
		calls := make([]int, callers)
		errs := make([]error, callers)
		end := time.Now().Add(limit)
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
			return fmt.Errorf("during other calls: case %s: %w", work[0].Case, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })])
		}
		if c.found.Together == nil {
			c.found.Together = &Together{Callers: callers}
		}
		for _, n := range calls {
			c.found.Together.Calls += n
		}
	}
	return nil
}

// implFor returns the first impl that a source has for an op.
func implFor(src opregistry.Source, op string) (opregistry.Impl, bool) {
	i := slices.IndexFunc(src.Impls, func(i opregistry.Impl) bool { return i.Op.Name() == op })
	if i < 0 {
		return opregistry.Impl{}, false
	}
	return src.Impls[i], true
}

// implOf returns the impl of a source with this name.
func implOf(src opregistry.Source, name name) (opregistry.Impl, bool) {
	for _, i := range src.Impls {
		if i.Op.Name() == name.Op && i.ID == name.ID {
			return i, true
		}
	}
	return opregistry.Impl{}, false
}

// SubjectOf returns an impl with the one that writes the saved state it reads.
func SubjectOf(src opregistry.Source, impl opregistry.Impl) opstest.Subject {
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
	}{{abi.ThreadSafe, "thread_safe"}, {abi.Deterministic, "deterministic"}, {abi.SameThread, "same_thread"}, {abi.Async, "async"}, {abi.FlushesSubnormals, "flushes_subnormals"}} {
		if flags&f.bit != 0 {
			words = append(words, f.name)
		}
	}
	return words
}
