package cpu

import (
	"container/list"
	"math/bits"
	"os"
	"unsafe"
)

const (
	// alignment is the alignment of every block: a cache line, and a vector of 512 bits.
	alignment = 64

	// smallBlock is the largest block that shares its region with others.
	smallBlock = 64 << 10

	// slabLength and slabBlocks are the least length of a region of small
	// blocks and the least number of blocks in it.
	slabLength = 64 << 10
	slabBlocks = 16

	// reuseLimit is the largest block that is kept for reuse when freed.
	reuseLimit = 64 << 20
)

// bin identifies the regions that can serve a request.
type bin struct {
	node  int // NUMA node, or anyNode
	block uint64
}

// anyNode is the node of memory that is not bound to a NUMA node.
const anyNode = -1

// binFor rounds size up to a multiple of the alignment, in steps of an eighth to a quarter of the
// size, so that freed blocks can serve requests of similar size. Blocks that are not reused are
// only rounded to the alignment.
func binFor(size uint64, node int) bin {
	if size > reuseLimit {
		return bin{node, roundUp(size, alignment)}
	}
	step := uint64(alignment)
	if size > alignment {
		step = max(step, 1<<(bits.Len64(size-1)-3))
	}
	return bin{node, roundUp(size, step)}
}

// regionLength returns how much memory to take for a region of the bin.
func (b bin) regionLength() uint64 {
	length := b.block
	if b.block <= smallBlock {
		length = max(slabLength, slabBlocks*b.block)
	}
	return roundUp(length, uint64(os.Getpagesize()))
}

func roundUp(n, step uint64) uint64 { return (n + step - 1) &^ (step - 1) }

// region is memory from the pager, cut into blocks of one size.
type region struct {
	base   unsafe.Pointer
	length uint64
	bin    bin

	sizes []uint64      // requested size by block, 0 unless the block is live
	fresh int           // blocks from this index on have never been used
	used  []int         // blocks before fresh that are free
	taken int           // blocks that are live or about to be
	idle  *list.Element // position in the list of regions without taken blocks, or nil
}

func newRegion(base unsafe.Pointer, length uint64, b bin) *region {
	count := uint64(1)
	if b.block <= smallBlock {
		count = length / b.block
	}
	return &region{base: base, length: length, bin: b, sizes: make([]uint64, count)}
}

func (r *region) full() bool { return r.taken == len(r.sizes) }

// take returns a free block of a region that is not full, and whether the block still holds what
// was written to it before.
func (r *region) take() (index int, dirty bool) {
	r.taken++
	if last := len(r.used) - 1; last >= 0 {
		index, r.used = r.used[last], r.used[:last]
		return index, true
	}
	r.fresh++
	return r.fresh - 1, false
}

// release makes a taken block free.
func (r *region) release(index int) {
	r.taken--
	r.sizes[index] = 0
	r.used = append(r.used, index)
}

func (r *region) pointer(index int) unsafe.Pointer {
	return unsafe.Add(r.base, uintptr(index)*uintptr(r.bin.block))
}

func (r *region) extent() extent { return extent{uintptr(r.base), r.length, r.bin.block} }

// extent is the address range of a region. It does not keep the memory alive.
type extent struct {
	base   uintptr
	length uint64
	block  uint64
}

// locate returns the block that contains the address and the offset of the address in it.
func (e extent) locate(address uintptr) (index int, offset uint64, ok bool) {
	if address < e.base || uint64(address-e.base) >= e.length {
		return 0, 0, false
	}
	distance := uint64(address - e.base)
	return int(distance / e.block), distance % e.block, true
}
