package opencl

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// Device is one OpenCL device with its memory, programs and default stream. It is safe for
// concurrent use.
type Device struct {
	backend *Backend
	lib     *cl.Library
	id      uintptr
	index   int
	info    Info

	start     func() error // makes context and queue once
	context   uintptr
	queue     *queue // the default stream
	pool      pool
	fills     fills
	staging   staging
	programs  programs
	scratches scratches
	choices   choices
	profile   atomic.Pointer[profile] // nil when nobody measures
}

func newDevice(b *Backend, lib *cl.Library, p platform, id uintptr, index int) (*Device, error) {
	info, err := describe(lib, p, id, index)
	if err != nil {
		return nil, err
	}
	d := &Device{backend: b, lib: lib, id: id, index: index, info: info}
	d.start = sync.OnceValue(d.begin)
	d.pool.device = d
	return d, nil
}

// Info returns what the driver says of the device.
func (d *Device) Info() Info { return d.info }

// Device returns the name of the device in the rest of the project.
func (d *Device) Device() device.Device {
	return device.Device{Type: device.TypeOpenCL, Index: d.index}
}

// String returns the name with what the driver calls the device.
func (d *Device) String() string { return fmt.Sprintf("%v (%s)", d.Device(), d.info.Name) }

// begin makes the context and the default queue.
func (d *Device) begin() error {
	if err := d.backend.check("use of a device"); err != nil {
		return err
	}
	if d.info.Unusable != "" {
		return fmt.Errorf("%w: %v: %s", device.ErrUnusable, d, d.info.Unusable)
	}
	ids := []uintptr{d.id}
	context, err := d.lib.Create(cl.CreateContext, 0, 1, uintptr(unsafe.Pointer(&ids[0])), 0, 0)
	if err != nil {
		return d.fail(err, "make a context")
	}
	d.context = context
	q, err := d.newQueue(device.DefaultStream)
	if err != nil {
		return errors.Join(err, d.lib.Call(cl.ReleaseContext, context))
	}
	d.queue = q
	return nil
}

// close waits for the default stream and releases what the device holds.
func (d *Device) close() error {
	if err := d.start(); err != nil {
		return nil // nothing was ever made
	}
	if p := d.profile.Load(); p != nil {
		_ = p.Close()
	}
	errs := []error{d.queue.finish("close"), d.scratches.close(), d.pool.close(), d.programs.close(d)}
	d.fills.close(d.queue)
	d.staging.close(d)
	errs = append(errs, d.queue.release())
	if err := d.lib.Call(cl.ReleaseContext, d.context); err != nil {
		errs = append(errs, d.fail(err, "release the context"))
	}
	return errors.Join(errs...)
}
