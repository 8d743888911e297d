package native

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// stepClock measures the commands of a device. All calls of ops should come from one goroutine:
// what others queue at the same time is taken for work of the same op. A nil stepClock is that of a
// run in host memory and does nothing.
type stepClock struct {
	dev     device.Backend
	at      device.Device
	profile device.Profile // nil for a backend that measures nothing
	remove  func()

	mu     sync.Mutex
	when   when
	labels map[label]int
	work   []work    // by number of the label, from 1
	begun  int       // steps
	began  time.Time // the last one
	steps  time.Duration
}

// when is when a command was queued.
type when uint8

const (
	betweenSteps when = iota
	firstStep         // which builds programs
	laterStep
)

// label says what queued a command.
type label struct {
	op, impl string // "" outside of calls of ops
	when     when
}

type work struct {
	label
	device.Work
}

// newStepClock returns a Clock for the current device of a backend, nil for the CPU. Close ends it.
func newStepClock(m *opmanager.Manager, dev device.Backend) (*stepClock, error) {
	at, err := dev.Device()
	if err != nil || at.Type == device.TypeCPU {
		return nil, err
	}
	c := &stepClock{dev: dev, at: at, labels: map[label]int{}}
	profiler, ok := device.As[device.Profiler](dev)
	if !ok {
		return c, nil
	}
	if c.profile, err = profiler.Profile(at.Index); err != nil {
		return nil, err
	}
	c.remove = m.Tap(c)
	return c, nil
}

// Begin implements opmanager.Tap.
func (c *stepClock) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	c.mark("", "")
	return func(served opmanager.ImplInfo, err error) error {
		if err == nil {
			c.mark(call.Op.Name(), served.ID)
		}
		return nil
	}
}

// mark says where the commands since the last mark come from.
func (c *stepClock) mark(op, impl string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := label{op, impl, c.when}
	n, ok := c.labels[l]
	if !ok {
		c.work = append(c.work, work{label: l})
		n = len(c.work)
		c.labels[l] = n
	}
	c.profile.Label(n)
}

// beginStep says that a step begins.
func (c *stepClock) beginStep() {
	if c == nil || c.profile == nil {
		return
	}
	c.mark("", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	c.began = time.Now()
	if c.when = laterStep; c.begun == 1 {
		c.when = firstStep
	}
}

// endStep says that a step has ended, which took some time. It returns the work of steps that has
// completed since the last call, nil when nothing measures it: the last kernels of a step complete
// during the next one.
func (c *stepClock) endStep(took time.Duration) (*device.Work, error) {
	if c == nil || c.profile == nil {
		return nil, nil
	}
	c.mark("", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.when == laterStep {
		c.steps += took
	}
	c.when = betweenSteps
	done, err := c.takeLocked()
	return &done, err
}

// takeLocked adds up the work that has completed, and returns that of steps.
func (c *stepClock) takeLocked() (device.Work, error) {
	var steps device.Work
	all, err := c.profile.Take()
	for n, done := range all {
		if n == 0 { // queued before the first mark
			continue
		}
		w := &c.work[n-1]
		w.Add(done)
		if w.when != betweenSteps {
			steps.Add(done)
		}
	}
	return steps, err
}

// use returns what the device has done so far, nil for a run in host memory.
func (c *stepClock) use() (*backend.DeviceUse, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.profile != nil {
		_, err = c.takeLocked()
	}
	if c.when == laterStep { // the step has failed
		c.steps += time.Since(c.began)
		c.when = betweenSteps
	}
	u := &backend.DeviceUse{Device: c.at.String(), StepTime: c.steps, Measured: c.profile != nil, Ops: []backend.OpWork{}}
	if d, ok := device.As[device.Describer](c.dev); ok {
		var failure error
		u.Description, failure = d.Describe(c.at.Index)
		err = errors.Join(err, failure)
	}
	if m, ok := device.As[device.Meter](c.dev); ok {
		var failure error
		u.Memory, failure = m.MemoryUse(c.at.Index)
		err = errors.Join(err, failure)
	}
	of := map[[2]string]int{}
	for _, w := range c.work {
		if w.when == laterStep {
			u.Steps.Add(w.Work)
		}
		key := [2]string{w.op, w.impl}
		i, ok := of[key]
		if !ok {
			i = len(u.Ops)
			of[key] = i
			u.Ops = append(u.Ops, backend.OpWork{Op: w.op, Impl: w.impl})
		}
		u.Ops[i].Work.Add(w.Work)
	}
	u.Ops = slices.DeleteFunc(u.Ops, func(o backend.OpWork) bool { return o.Work.Commands == 0 })
	slices.SortFunc(u.Ops, func(a, b backend.OpWork) int {
		return cmp.Or(cmp.Compare(b.Work.Busy, a.Work.Busy), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Impl, b.Impl))
	})
	return u, err
}

// Close ends measuring.
func (c *stepClock) Close() error {
	if c == nil || c.profile == nil {
		return nil
	}
	c.remove()
	return c.profile.Close()
}

var _ opmanager.Tap = (*stepClock)(nil)
