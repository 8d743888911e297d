package opencl

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// profile keeps the events of commands until they have completed.
type profile struct {
	device *Device

	mu       sync.Mutex
	commands []command // in the order in which they were queued
	labelled int       // how many of them have their label
	closed   bool
	value    uint64     // for an answer of the driver
	call     [5]uintptr // the arguments of a call, kept so that it allocates nothing
}

// command is one command, or what lies between two markers.
type command struct {
	first, last uintptr // events; the same for one command
	label       int
}

// maxCommands bounds the events that a profile keeps while nobody takes the work. What is queued
// beyond that is not measured.
const maxCommands = 1 << 20

// Profile measures the commands that are queued to a device from now on. It costs an event for each
// command, which a driver may have to keep anyway, and questions about it in Take.
func (b *Backend) Profile(index int) (device.Profile, error) {
	if err := b.check("profile"); err != nil {
		return nil, err
	}
	d, err := b.Of(index)
	if err != nil {
		return nil, err
	}
	if err := d.start(); err != nil {
		return nil, err
	}
	p := &profile{device: d}
	if !d.profile.CompareAndSwap(nil, p) {
		return nil, fmt.Errorf("opencl: %v is being profiled already: close the other profile first", d)
	}
	return p, nil
}

// add takes over the events of a command.
func (p *profile) add(first, last uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := command{first: first, last: last}
	if p.closed || len(p.commands) == maxCommands {
		p.release(c)
		return
	}
	p.commands = append(p.commands, c)
}

// Label implements device.Profile.
func (p *profile) Label(label int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.labelled; i < len(p.commands); i++ {
		p.commands[i].label = label
	}
	p.labelled = len(p.commands)
}

// Take implements device.Profile.
func (p *profile) Take() (map[int]device.Work, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[int]device.Work{}
	done := 0
	var fault error
	for _, c := range p.commands {
		work, err := p.measure(c)
		if failure, ok := errors.AsType[*cl.Error](err); ok && failure.Code == cl.ProfilingInfoNotAvailable {
			break // it has not completed
		} else if err != nil {
			fault = p.device.fail(err, "measure a command")
			break
		}
		of := all[c.label]
		of.Add(work)
		all[c.label] = of
		p.release(c)
		done++
	}
	p.commands = append(p.commands[:0], p.commands[done:]...)
	p.labelled = max(p.labelled-done, 0)
	return all, fault
}

// measure asks the driver when a command was queued, began and ended.
func (p *profile) measure(c command) (device.Work, error) {
	end, err := p.at(c.last, cl.ProfilingCommandEnd)
	if err != nil {
		return device.Work{}, err
	}
	start, err := p.at(c.first, cl.ProfilingCommandStart)
	if err != nil {
		return device.Work{}, err
	}
	queued, err := p.at(c.first, cl.ProfilingCommandQueued)
	return device.Work{Commands: 1, Busy: max(end-start, 0), Queued: max(start-queued, 0)}, err
}

func (p *profile) at(event, what uintptr) (time.Duration, error) {
	p.call = [5]uintptr{event, what, unsafe.Sizeof(p.value), uintptr(unsafe.Pointer(&p.value))}
	err := p.device.lib.Call(cl.GetEventProfilingInfo, p.call[:]...)
	return time.Duration(p.value), err
}

func (p *profile) release(c command) {
	p.releaseEvent(c.first)
	if c.last != c.first {
		p.releaseEvent(c.last)
	}
}

func (p *profile) releaseEvent(event uintptr) {
	p.call[0] = event
	_ = p.device.lib.Call(cl.ReleaseEvent, p.call[:1]...)
}

// Close implements device.Profile.
func (p *profile) Close() error {
	p.device.profile.CompareAndSwap(p, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.commands {
		p.release(c)
	}
	p.commands = nil
	return nil
}

// between measures what f queues. Without a profile it only calls f.
func (q *queue) between(f func() error) error {
	p := q.device.profile.Load()
	if p == nil {
		return f()
	}
	first, err := q.marker()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		q.releaseEvents([]uintptr{first})
		return err
	}
	last, err := q.marker()
	if err != nil {
		q.releaseEvents([]uintptr{first})
		return err
	}
	p.add(first, last)
	return nil
}

// measured calls enqueue, which queues one command, with a place for its event, nil when nobody
// measures.
func (q *queue) measured(enqueue func(event *uintptr) error) error {
	p := q.device.profile.Load()
	if p == nil {
		return enqueue(nil)
	}
	event := new(uintptr)
	if err := enqueue(event); err != nil {
		return err
	}
	p.add(*event, *event)
	return nil
}
