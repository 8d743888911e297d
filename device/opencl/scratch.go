package opencl

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Scratch is memory for values between the kernels of one call. It belongs to a stream, whose
// kernels use it one call after the other, and is kept for the next call.
type Scratch struct {
	mu    sync.Mutex // held from Scratch to Release
	block *tensor.Tensor
}

// scratches are the scratch memories of a device.
type scratches struct {
	mu sync.Mutex
	of map[device.Stream]*Scratch
}

// Scratch lends n floats of undefined content to a caller that queues kernels in the stream. Others
// who ask for scratch of the stream wait for Release, which comes after the last kernel is queued.
func (d *Device) Scratch(s device.Stream, n int) (*Scratch, error) {
	d.scratches.mu.Lock()
	if d.scratches.of == nil {
		d.scratches.of = make(map[device.Stream]*Scratch)
	}
	scratch := d.scratches.of[s]
	if scratch == nil {
		scratch = new(Scratch)
		d.scratches.of[s] = scratch
	}
	d.scratches.mu.Unlock()
	scratch.mu.Lock()
	err := scratch.grow(d, n)
	if err == nil && d.backend.options.PoisonScratch {
		err = scratch.poison(d, s, n)
	}
	if err != nil {
		scratch.mu.Unlock()
		return nil, err
	}
	return scratch, nil
}

// poison queues that the first n floats become NaN.
func (s *Scratch) poison(d *Device, stream device.Stream, n int) error {
	if n == 0 {
		return nil
	}
	_, b, ok := Of(s.block)
	if !ok {
		panic("BUG: opencl: scratch is not on the device")
	}
	return d.backend.enqueue(d, stream, func(q *queue) error {
		return q.paint(0xff, b.Memory, b.Offset, uint64(4*n), nil, nil)
	})
}

// grow makes the block at least this long.
func (s *Scratch) grow(d *Device, n int) error {
	if s.block != nil && s.block.NumElements() >= n {
		return nil
	}
	old := s.block
	s.block = nil
	if old != nil {
		if err := old.Release(); err != nil {
			return fmt.Errorf("release scratch of %v: %w", d, err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := d.backend.threads.Get()
	d.backend.threads.Set(d.index)
	defer d.backend.threads.Set(before)
	block, err := tensor.New(d.backend, tensor.F32, max(n, 1))
	if err != nil {
		return fmt.Errorf("scratch of %v: %w", d, err)
	}
	s.block = block
	return nil
}

// At returns the floats from the given one on, which are undefined. The tensor is valid until
// Release.
func (s *Scratch) At(first int) *tensor.Tensor {
	t, err := s.block.Slice(0, first, s.block.NumElements())
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return t
}

// Release lets others use the scratch in kernels that they queue after those that are queued now.
func (s *Scratch) Release() { s.mu.Unlock() }

// drop returns the memory of a stream.
func (s *scratches) drop(stream device.Stream) error {
	s.mu.Lock()
	one := s.of[stream]
	delete(s.of, stream)
	s.mu.Unlock()
	if one == nil || one.block == nil {
		return nil
	}
	return one.block.Release()
}

// close returns the memory of all streams.
func (s *scratches) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, one := range s.of {
		if one.block != nil {
			errs = append(errs, one.block.Release())
		}
	}
	s.of = nil
	return errors.Join(errs...)
}

// Queue calls f with the cl_command_queue of a stream, for a library that queues work of its own.
// The handle is valid until f returns.
func (d *Device) Queue(s device.Stream, f func(queue uintptr) error) error {
	return d.backend.enqueue(d, s, func(q *queue) error {
		return q.between(func() error { return f(q.handle) })
	})
}
