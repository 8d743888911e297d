package opencl

import (
	"unsafe"

	"github.com/primus-fl/primus/device"
)

var _ device.Native = (*Backend)(nil)

// NativeMemory returns the cl_mem that an address of Alloc lies in, and the offset of the address
// in it in bytes.
func (b *Backend) NativeMemory(p unsafe.Pointer) (handle uintptr, offset uint64, ok bool) {
	buffer, ok := b.Buffer(p)
	return buffer.Memory, buffer.Offset, ok
}

// NativeStream calls f with the cl_context, the cl_device_id and the cl_command_queue of a stream.
func (b *Backend) NativeStream(index int, s device.Stream, f func(device.Handles) error) error {
	d, err := b.Of(index)
	if err != nil {
		return err
	}
	return b.enqueue(d, s, func(q *queue) error {
		return q.between(func() error { return f(device.Handles{Context: d.context, Device: d.id, Stream: q.handle}) })
	})
}

// NativeScratch lends memory of a device to work that is queued in a stream until release is
// called.
func (b *Backend) NativeScratch(index int, s device.Stream, size uint64) (p unsafe.Pointer, release func(), err error) {
	d, err := b.Of(index)
	if err != nil {
		return nil, nil, err
	}
	const float = 4
	scratch, err := d.Scratch(s, int((size+float-1)/float))
	if err != nil {
		return nil, nil, err
	}
	return scratch.At(0).Pointer(), scratch.Release, nil
}
