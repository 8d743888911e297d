package opencl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
	"github.com/primus-fl/primus/tensor"
)

// Alloc returns size bytes of zeroed memory on the current device, aligned to 64 bytes. The address
// stands for memory that only the device can access: it lies in a range that is reserved in this
// process, and an access by the processor is a fault. Arithmetic with the address is as usual.
//
// The memory is zeroed by work in the default stream, and other streams wait for that. The error
// matches device.ErrOutOfMemory when the device refuses.
func (b *Backend) Alloc(size uint64) (unsafe.Pointer, error) {
	if err := b.check("alloc"); err != nil {
		return nil, err
	}
	d, err := b.current()
	if err != nil {
		return nil, err
	}
	return d.pool.alloc(size)
}

// Free returns a block to the pool of its device. Work that is queued by then may still use it; the
// block is used again after that work.
func (b *Backend) Free(p unsafe.Pointer) error {
	if p == nil {
		return errors.New("opencl: free nil: want an address that Alloc returned")
	}
	c, ok := b.chunk(uintptr(p))
	if !ok {
		return fmt.Errorf("opencl: free %#x: Alloc of this backend did not return this address, or it was freed and returned to the device", uintptr(p))
	}
	return c.device.pool.release(c, uintptr(p))
}

// MemoryUse returns the use of the memory of a device.
func (b *Backend) MemoryUse(index int) (device.MemoryUse, error) {
	d, err := b.Of(index)
	if err != nil {
		return device.MemoryUse{}, err
	}
	return d.pool.memoryUse(), nil
}

// Buffer is memory as OpenCL knows it.
type Buffer struct {
	Device *Device
	Memory uintptr // the cl_mem
	Offset uint64  // in bytes, from the start of the memory object
	Length uint64  // in bytes, up to the end of the memory object

	serial int
}

// Buffer returns the memory that an address of Alloc stands for. The address may lie inside a
// block.
func (b *Backend) Buffer(p unsafe.Pointer) (Buffer, bool) {
	c, ok := b.chunk(uintptr(p))
	if !ok {
		return Buffer{}, false
	}
	offset := uint64(uintptr(p) - c.base)
	return Buffer{Device: c.device, Memory: c.mem, Offset: offset, Length: c.block*uint64(len(c.sizes)) - offset, serial: c.serial}, true
}

// Of returns the device and the memory of a tensor; false when the tensor is not in memory of an
// OpenCL backend. The buffer of a tensor without elements is null.
func Of(t *tensor.Tensor) (*Device, Buffer, bool) {
	st := t.Storage()
	b, ok := device.As[*Backend](st.Backend())
	if !ok {
		return nil, Buffer{}, false
	}
	if t.NumElements() == 0 {
		d, err := b.Of(st.Device().Index)
		return d, Buffer{Device: d}, err == nil
	}
	buffer, ok := b.Buffer(t.Pointer())
	return buffer.Device, buffer, ok
}

// chunk returns the chunk that an address lies in.
func (b *Backend) chunk(address uintptr) (*chunk, bool) {
	chunks := *b.index.Load()
	i, found := slices.BinarySearchFunc(chunks, address, compareBase)
	if !found {
		i--
	}
	if i < 0 || uint64(address-chunks[i].base) >= chunks[i].size {
		return nil, false
	}
	return chunks[i], true
}

func compareBase(c *chunk, base uintptr) int { return cmp.Compare(c.base, base) }

// addChunk makes a chunk findable.
func (b *Backend) addChunk(c *chunk) {
	b.indexMu.Lock()
	defer b.indexMu.Unlock()
	old := *b.index.Load()
	i, _ := slices.BinarySearchFunc(old, c.base, compareBase)
	chunks := slices.Insert(slices.Clone(old), i, c)
	b.index.Store(&chunks)
}

// removeChunk undoes addChunk.
func (b *Backend) removeChunk(c *chunk) {
	b.indexMu.Lock()
	defer b.indexMu.Unlock()
	chunks := slices.DeleteFunc(slices.Clone(*b.index.Load()), func(o *chunk) bool { return o == c })
	b.index.Store(&chunks)
}

// within returns the memory of size bytes at an address, which must lie in one block of the pool.
func (b *Backend) within(verb string, p unsafe.Pointer, size uint64) (Buffer, error) {
	buffer, ok := b.Buffer(p)
	if !ok {
		return Buffer{}, fmt.Errorf("opencl: %s %#x: the address lies in no memory of this backend", verb, uintptr(p))
	}
	if size > buffer.Length {
		return Buffer{}, fmt.Errorf("opencl: %s %#x: %d bytes go beyond the end of the block: %d are left", verb, uintptr(p), size, buffer.Length)
	}
	return buffer, nil
}

// CopyIn copies src to the device after the work that is in the stream now. In the default stream
// it returns at once for up to 256 KiB: the copy is made of a copy of src. Otherwise it has
// finished when it returns, and runs at the same time as work in another stream where the device
// can.
func (b *Backend) CopyIn(dst unsafe.Pointer, src []byte, s device.Stream) error {
	if s != device.DefaultStream || len(src) > maxStaged {
		return b.transfer("copy to", cl.EnqueueWriteBuffer, dst, src, s)
	}
	return b.copyInLater(dst, src)
}

// CopyOut copies from the device to dst after the work that is in the stream now, and returns when
// it has finished.
func (b *Backend) CopyOut(dst []byte, src unsafe.Pointer, s device.Stream) error {
	return b.transfer("copy from", cl.EnqueueReadBuffer, src, dst, s)
}

// transfer copies between the host and the device and waits.
func (b *Backend) transfer(verb string, fn cl.Function, p unsafe.Pointer, host []byte, s device.Stream) error {
	if len(host) == 0 {
		return b.check(verb)
	}
	buffer, err := b.within(verb, p, uint64(len(host)))
	if err != nil {
		return err
	}
	return b.enqueue(buffer.Device, s, func(q *queue) error {
		err := q.measured(func(event *uintptr) error { return q.copy(fn, buffer, host, true, event) })
		if err != nil {
			return q.device.fail(err, "%s %#x, %d bytes", verb, uintptr(p), len(host))
		}
		return nil
	})
}

// copy queues a copy between the device and the host, and with wait waits for it.
func (q *queue) copy(fn cl.Function, at Buffer, host []byte, wait bool, event *uintptr) error {
	blocking := uintptr(0)
	if wait {
		blocking = 1
	}
	return q.device.lib.Call(fn, q.handle, at.Memory, blocking, uintptr(at.Offset), uintptr(len(host)), uintptr(unsafe.Pointer(&host[0])), 0, 0, uintptr(unsafe.Pointer(event)))
}

// CopyOn queues a copy between two blocks, which must not overlap. Between two devices it copies by
// way of the host, and has finished when it returns; the stream is then that of the source.
func (b *Backend) CopyOn(dst, src unsafe.Pointer, size uint64, s device.Stream) error {
	if size == 0 {
		return b.check("copy")
	}
	to, err := b.within("copy to", dst, size)
	if err != nil {
		return err
	}
	from, err := b.within("copy from", src, size)
	if err != nil {
		return err
	}
	if to.Device != from.Device {
		host := make([]byte, size)
		if err := b.CopyOut(host, src, s); err != nil {
			return err
		}
		return b.CopyIn(dst, host, device.DefaultStream)
	}
	return b.enqueue(to.Device, s, func(q *queue) error {
		err := q.measured(func(event *uintptr) error {
			return q.device.lib.Call(cl.EnqueueCopyBuffer, q.handle, from.Memory, to.Memory, uintptr(from.Offset), uintptr(to.Offset), uintptr(size), 0, 0, uintptr(unsafe.Pointer(event)))
		})
		if err != nil {
			return q.device.fail(err, "copy %d bytes from %#x to %#x", size, uintptr(src), uintptr(dst))
		}
		return nil
	})
}

// Zero queues that size bytes become 0.
func (b *Backend) Zero(p unsafe.Pointer, size uint64, s device.Stream) error {
	if size == 0 {
		return b.check("zero")
	}
	buffer, err := b.within("zero", p, size)
	if err != nil {
		return err
	}
	return b.enqueue(buffer.Device, s, func(q *queue) error {
		return q.measured(func(event *uintptr) error { return q.clear(buffer.Memory, buffer.Offset, size, nil, event) })
	})
}
