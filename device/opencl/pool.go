package opencl

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

const (
	// alignment is the alignment of every block, and the unit of their sizes.
	alignment = 64

	// smallBlock is the largest block that shares its chunk with others, and slab the size of such
	// a chunk.
	smallBlock = 256 << 10
	slab       = 2 << 20

	// maxBlock is larger than any device's memory.
	maxBlock = 1 << 46
)

// pool is the memory of a device. Freed blocks are kept for reuse until the device has no memory
// for another chunk.
type pool struct {
	device *Device

	mu     sync.Mutex
	closed bool
	open   map[uint64][]*chunk // with a free block, by size of their blocks
	chunks int                 // made so far
	use    device.MemoryUse
}

// chunk is one memory object of OpenCL with blocks of one size.
type chunk struct {
	device *Device
	serial int // no other chunk of the device ever has this number
	mem    uintptr
	base   uintptr // the first of the reserved addresses that stand for the memory
	size   uint64  // of the reserved addresses and at least of the memory
	block  uint64
	start  unsafe.Pointer
	sizes  []uint64    // of each block as it was asked for; 0 when it is free
	free   []int       // blocks that are free
	after  [][]uintptr // events of work that may still use a free block
}

// classOf returns the size of the blocks that serve a request: at most a quarter more.
func classOf(size uint64) uint64 {
	size = max(size, alignment)
	step := max(uint64(1)<<(bits.Len64(size-1)-1)/4, alignment)
	return (size + step - 1) / step * step
}

// alloc returns a block whose content becomes zero before any work that is queued later.
func (p *pool) alloc(size uint64) (unsafe.Pointer, error) {
	d := p.device
	if size == 0 {
		return nil, errors.New("opencl: alloc of 0 bytes: want at least 1")
	}
	if limit := min(d.info.MaxBlock, maxBlock); size > limit {
		return nil, fmt.Errorf("%w: opencl: %v: alloc of %d bytes: the device allows %d in one block", device.ErrOutOfMemory, d, size, limit)
	}
	if err := d.start(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: alloc of %d bytes", device.ErrClosed, size)
	}
	class := min(classOf(size), max(size, d.info.MaxBlock/alignment*alignment))
	c, err := p.chunkLocked(class)
	if err != nil {
		return nil, fmt.Errorf("%w; %d bytes were asked for, %d are allocated, %d more are kept for reuse, the device has %d", err, size,
			p.use.Allocated, p.use.Reserved-p.use.Allocated, d.info.Memory)
	}
	i := c.free[len(c.free)-1]
	after := c.after[i]
	zero := func(event *uintptr) error { return d.queue.clear(c.mem, uint64(i)*c.block, c.block, after, event) }
	if err := d.fills.first(d.queue, zero); err != nil {
		return nil, err
	}
	d.queue.releaseEvents(after)
	c.after[i] = nil
	c.free = c.free[:len(c.free)-1]
	if len(c.free) == 0 {
		p.open[class] = slices.DeleteFunc(p.open[class], func(o *chunk) bool { return o == c })
	}
	c.sizes[i] = size
	p.use.Allocated += size
	p.use.Peak = max(p.use.Peak, p.use.Allocated)
	return unsafe.Add(c.start, uint64(i)*c.block), nil
}

// chunkLocked returns a chunk with a free block.
func (p *pool) chunkLocked(class uint64) (*chunk, error) {
	if open := p.open[class]; len(open) > 0 {
		return open[len(open)-1], nil
	}
	blocks := uint64(1)
	if class <= smallBlock {
		blocks = slab / class
	}
	c, err := p.makeLocked(class, int(blocks))
	if errors.Is(err, device.ErrOutOfMemory) && p.trimLocked() > 0 {
		c, err = p.makeLocked(class, int(blocks))
	}
	if err != nil {
		return nil, err
	}
	if p.open == nil {
		p.open = make(map[uint64][]*chunk)
	}
	p.open[class] = append(p.open[class], c)
	return c, nil
}

// makeLocked takes a chunk from the device.
func (p *pool) makeLocked(class uint64, blocks int) (*chunk, error) {
	d, memory := p.device, class*uint64(blocks)
	mem, err := d.lib.Create(cl.CreateBuffer, d.context, cl.MemReadWrite, uintptr(memory), 0)
	if err != nil {
		return nil, d.fail(err, "alloc of %d bytes", memory)
	}
	page := uint64(os.Getpagesize())
	size := (memory + page - 1) / page * page
	start, err := reserve(size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opencl: %v: reserve %d bytes of addresses: %w", d, size, err), d.lib.Call(cl.ReleaseMemObject, mem))
	}
	p.chunks++
	c := &chunk{device: d, serial: p.chunks, mem: mem, base: uintptr(start), size: size, block: class, start: start,
		sizes: make([]uint64, blocks), after: make([][]uintptr, blocks), free: make([]int, blocks)}
	for i := range c.free {
		c.free[i] = blocks - 1 - i
	}
	p.use.Reserved += memory
	d.backend.addChunk(c)
	return c, nil
}

// release makes a block free.
func (p *pool) release(c *chunk, address uintptr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, offset := int(uint64(address-c.base)/c.block), uint64(address-c.base)%c.block
	switch {
	case i >= len(c.sizes):
		return fmt.Errorf("opencl: free %#x: Alloc of this backend did not return this address", address)
	case c.sizes[i] == 0:
		return fmt.Errorf("opencl: free %#x: the block is already freed", address)
	case offset != 0:
		return fmt.Errorf("opencl: free %#x: %d bytes into the block of %d bytes at %#x; pass the address that Alloc returned", address, offset, c.sizes[i], address-uintptr(offset))
	}
	events, err := p.device.backend.handles.mark(p.device)
	if err != nil {
		return err
	}
	p.use.Allocated -= c.sizes[i]
	c.sizes[i], c.after[i] = 0, events
	if c.free = append(c.free, i); len(c.free) == 1 {
		p.open[c.block] = append(p.open[c.block], c)
	}
	if p.closed {
		p.trimLocked()
	}
	return nil
}

// trimLocked returns chunks without a used block to the device, and how many bytes they had.
func (p *pool) trimLocked() uint64 {
	var total uint64
	for class, open := range p.open {
		p.open[class] = slices.DeleteFunc(open, func(c *chunk) bool {
			if len(c.free) < len(c.sizes) {
				return false
			}
			total += p.dropLocked(c)
			return true
		})
	}
	return total
}

// dropLocked returns a chunk to the device, which keeps its memory until queued work has ended.
func (p *pool) dropLocked(c *chunk) uint64 {
	d := p.device
	d.backend.removeChunk(c)
	for _, events := range c.after {
		d.queue.releaseEvents(events)
	}
	_ = d.lib.Call(cl.ReleaseMemObject, c.mem) // nothing can be done about a wrong one
	_ = unreserve(c.start, c.size)
	memory := c.block * uint64(len(c.sizes))
	p.use.Reserved -= memory
	return memory
}

// close returns all chunks, and reports the blocks that are still allocated.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.trimLocked()
	if p.use.Allocated > 0 {
		return fmt.Errorf("opencl: close: %v: still allocated: %d bytes; free them first", p.device, p.use.Allocated)
	}
	return nil
}

func (p *pool) memoryUse() device.MemoryUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	use := p.use
	use.Total = p.device.info.Memory
	return use
}
