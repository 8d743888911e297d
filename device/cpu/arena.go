package cpu

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

const (
	// maxBlock is the largest block to ask the operating system for; no machine addresses as much.
	maxBlock = min(1<<46, math.MaxInt+1-1<<20)

	// idleLimit is how much unused memory is kept.
	idleLimit = 256 << 20

	// maxReleased is how many released regions are remembered, to tell a double free from a foreign
	// pointer.
	maxReleased = 64
)

// arena hands out blocks of memory and keeps freed ones for reuse.
type arena struct {
	pager pager

	mu        sync.Mutex
	closed    bool
	idleLimit uint64
	regions   []*region         // by ascending address
	open      map[bin][]*region // those with a free block
	idle      *list.List        // those without a taken block, the one idle for longest first
	released  [maxReleased]extent
	releases  int
	stats     Stats
}

func newArena(p pager) *arena {
	return &arena{pager: p, idleLimit: idleLimit, open: make(map[bin][]*region), idle: list.New()}
}

func (a *arena) alloc(size uint64, node int) (unsafe.Pointer, error) {
	if size == 0 {
		return nil, errors.New("cpu: alloc of 0 bytes: want at least 1")
	}
	if size > maxBlock {
		return nil, fmt.Errorf("cpu: alloc of %d bytes: want at most %d", size, uint64(maxBlock))
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, fmt.Errorf("%w: alloc of %d bytes", device.ErrClosed, size)
	}
	r, err := a.regionLocked(binFor(size, node))
	if err != nil {
		return nil, fmt.Errorf("%w: alloc of %d bytes: %w", device.ErrOutOfMemory, size, err)
	}
	index, dirty := a.takeLocked(r)
	p := r.pointer(index)
	if dirty {
		// The block is taken but not live: nobody else can take or free it.
		a.mu.Unlock()
		clear(unsafe.Slice((*byte)(p), size))
		a.mu.Lock()
	}
	r.sizes[index] = size
	a.stats.Blocks++
	a.stats.Bytes += size
	a.stats.PeakBytes = max(a.stats.PeakBytes, a.stats.Bytes)
	return p, nil
}

func (a *arena) free(p unsafe.Pointer) error {
	surplus, err := a.releaseBlock(uintptr(p))
	if err != nil {
		return err
	}
	return a.unmap(surplus)
}

// close releases all memory that is not live, and reports the rest.
func (a *arena) close() error {
	a.mu.Lock()
	a.closed = true
	a.idleLimit = 0
	surplus := a.surplusLocked(0)
	unused := a.pager.close()
	blocks, bytes := a.stats.Blocks, a.stats.Bytes
	a.mu.Unlock()

	err := errors.Join(a.unmap(surplus), unused)
	if blocks > 0 {
		err = errors.Join(fmt.Errorf("cpu: close: still allocated: %d blocks, %d bytes; free them first", blocks, bytes), err)
	}
	return err
}

func (a *arena) statistics() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// regionLocked returns a region of the bin with a free block.
func (a *arena) regionLocked(b bin) (*region, error) {
	if open := a.open[b]; len(open) > 0 {
		return open[len(open)-1], nil
	}

	length := b.regionLength()
	base, err := a.pager.acquire(length)
	if err != nil && a.idle.Len() > 0 {
		if err = a.unmap(a.surplusLocked(0)); err == nil {
			base, err = a.pager.acquire(length)
		}
	}
	if err != nil {
		return nil, err
	}
	if b.node != anyNode {
		if err := a.pager.bind(base, length, b.node); err != nil {
			a.stats.BindFailures++
			a.stats.BindError = fmt.Errorf("cpu: bind %d bytes to NUMA node %d: %w", length, b.node, err)
		}
	}
	r := newRegion(base, length, b)
	at, _ := a.searchLocked(uintptr(base))
	a.regions = slices.Insert(a.regions, at, r)
	a.open[b] = append(a.open[b], r)
	a.stats.MappedBytes += length
	return r, nil
}

// takeLocked takes a block of a region that regionLocked returned.
func (a *arena) takeLocked(r *region) (index int, dirty bool) {
	if r.idle != nil {
		a.idle.Remove(r.idle)
		r.idle = nil
		a.stats.IdleBytes -= r.length
	}
	index, dirty = r.take()
	if open := a.open[r.bin]; r.full() {
		a.open[r.bin] = open[:len(open)-1]
	}
	return index, dirty
}

// releaseBlock makes a live block free and returns the regions that can be unmapped then.
func (a *arena) releaseBlock(address uintptr) ([]*region, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, index, err := a.liveLocked(address)
	if err != nil {
		return nil, fmt.Errorf("cpu: free %#x: %w", address, err)
	}
	a.stats.Blocks--
	a.stats.Bytes -= r.sizes[index]
	if r.full() {
		a.open[r.bin] = append(a.open[r.bin], r)
	}
	r.release(index)
	if r.taken > 0 {
		return nil, nil
	}
	if r.bin.block > reuseLimit {
		a.forgetLocked(r)
		return []*region{r}, nil
	}
	r.idle = a.idle.PushBack(r)
	a.stats.IdleBytes += r.length
	return a.surplusLocked(a.idleLimit), nil
}

// surplusLocked forgets the regions that have been idle for longest until the others have at most
// limit bytes, and returns the forgotten ones.
func (a *arena) surplusLocked(limit uint64) []*region {
	var surplus []*region
	for a.stats.IdleBytes > limit {
		r := a.idle.Remove(a.idle.Front()).(*region)
		a.stats.IdleBytes -= r.length
		a.forgetLocked(r)
		surplus = append(surplus, r)
	}
	return surplus
}

func (a *arena) forgetLocked(r *region) {
	open := a.open[r.bin]
	at := slices.Index(open, r)
	if open = slices.Delete(open, at, at+1); len(open) > 0 {
		a.open[r.bin] = open
	} else {
		delete(a.open, r.bin)
	}
	at, _ = a.searchLocked(uintptr(r.base))
	a.regions = slices.Delete(a.regions, at, at+1)
	a.stats.MappedBytes -= r.length
	a.released[a.releases%maxReleased] = r.extent()
	a.releases++
}

// unmap returns forgotten regions to the pager.
func (a *arena) unmap(regions []*region) error {
	var errs []error
	for _, r := range regions {
		if err := a.pager.release(r.base, r.length); err != nil {
			errs = append(errs, fmt.Errorf("cpu: return %d bytes to the operating system: %w", r.length, err))
		}
	}
	return errors.Join(errs...)
}

// searchLocked returns the index at which a region with this base is or should be inserted.
func (a *arena) searchLocked(base uintptr) (at int, found bool) {
	return slices.BinarySearchFunc(a.regions, base, func(r *region, base uintptr) int {
		return cmp.Compare(uintptr(r.base), base)
	})
}
