package cpu

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

var errSystem = errors.New("the system says no")

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	p.acquireErr = func(uint64) error { return errSystem }
	b := openOn(t, p, 0)
	block, err := b.Alloc(1 << 30)
	require.EqualError(t, err, "device: out of memory: alloc of 1073741824 bytes: the system says no")
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	require.ErrorIs(t, err, errSystem)
	assert.Nil(t, block)
	assert.Zero(t, b.Stats())
}

func TestIdleMemoryIsGivenUpBeforeOutOfMemory(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	p.acquireErr = func(uint64) error {
		if len(p.held) > 1 {
			return errSystem
		}
		return nil
	}
	b := openOn(t, p, 0)
	live, idle := mustAlloc(t, b, 100), mustAlloc(t, b, 1<<20)
	require.NoError(t, b.Free(idle))

	large, err := b.Alloc(1 << 21)
	require.NoError(t, err)
	assert.Equal(t, 1, p.released)

	_, err = b.Alloc(1 << 21)
	require.ErrorIs(t, err, errSystem, "nothing is left to give up")
	require.NoError(t, b.Free(live))
	require.NoError(t, b.Free(large))
}

func TestIdleMemoryIsBounded(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 0)
	b.arena.idleLimit = 3 << 20
	var blocks []unsafe.Pointer
	for range 5 {
		blocks = append(blocks, mustAlloc(t, b, 1<<20))
	}
	for _, block := range blocks {
		require.NoError(t, b.Free(block))
		assert.LessOrEqual(t, b.Stats().IdleBytes, uint64(3<<20))
	}
	assert.Len(t, p.held, 3)
	for _, block := range blocks[:2] {
		assert.NotContains(t, p.held, block, "the longest idle memory goes first")
	}
}

func TestLargestBlocksAreNotKept(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 0)
	require.NoError(t, b.Free(mustAlloc(t, b, reuseLimit+1)))
	assert.Equal(t, 1, p.released)
	assert.Empty(t, b.arena.open)
	assert.Empty(t, b.arena.regions)
}

func TestReleaseFailureIsReported(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := newBackend(p, func() []int { return []int{0} })
	huge := mustAlloc(t, b, reuseLimit+1)
	require.NoError(t, b.Free(mustAlloc(t, b, 1<<20)))
	p.releaseErr = errSystem
	require.EqualError(t, b.Free(huge), fmt.Sprintf("cpu: return %d bytes to the operating system: the system says no", inPages(reuseLimit+1)))
	require.EqualError(t, b.Close(), "cpu: return 1048576 bytes to the operating system: the system says no")
	require.NoError(t, b.Close())
}

func TestBindFailureIsRemembered(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	p.bindErr = errSystem
	b := openOn(t, p, 0, 8)
	first, second := mustAlloc(t, b, 1<<20), mustAlloc(t, b, 1<<20)
	stats := b.Stats()
	assert.EqualValues(t, 2, stats.BindFailures)
	require.EqualError(t, stats.BindError, "cpu: bind 1048576 bytes to NUMA node 0: the system says no")
	require.ErrorIs(t, stats.BindError, errSystem)
	require.NoError(t, b.Free(first))
	require.NoError(t, b.Free(second))
}

func TestHeapPagerAligns(t *testing.T) {
	t.Parallel()
	for length := uint64(1); length < 1000; length++ {
		p, err := heapPager{}.acquire(length)
		require.NoError(t, err)
		require.Zero(t, uintptr(p)%alignment)
	}
}

func TestHeapPagerCannotBind(t *testing.T) {
	t.Parallel()
	b := openOn(t, heapPager{}, 0, 1)
	require.NoError(t, b.Free(mustAlloc(t, b, 1)))
	assert.EqualError(t, b.Stats().BindError, "cpu: bind 65536 bytes to NUMA node 0: this operating system has no NUMA binding")
}

func TestPartlyUsedRegionsAreFilledUp(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 0)
	var blocks []unsafe.Pointer
	for range 3 * slabBlocks {
		blocks = append(blocks, mustAlloc(t, b, smallBlock))
	}
	require.Equal(t, 3, p.acquired)
	for i := 0; i < len(blocks); i += 2 {
		require.NoError(t, b.Free(blocks[i]))
	}
	for i := 0; i < len(blocks); i += 2 {
		blocks[i] = mustAlloc(t, b, smallBlock)
	}
	assert.Equal(t, 3, p.acquired)
	for _, block := range blocks {
		require.NoError(t, b.Free(block))
	}
	assert.Len(t, p.held, 3)
}

func TestBinFor(t *testing.T) {
	t.Parallel()
	tests := []struct{ give, block, length uint64 }{
		{1, 64, 65536},
		{64, 64, 65536},
		{65, 128, 65536},
		{256, 256, 65536},
		{257, 320, 65536},
		{513, 640, 65536},
		{smallBlock, smallBlock, 1 << 20},
		{smallBlock + 1, 80 << 10, 80 << 10},
		{1<<20 - 1, 1 << 20, 1 << 20},
		{reuseLimit, reuseLimit, reuseLimit},
		{reuseLimit + 1, reuseLimit + 64, reuseLimit + 64},
		{maxBlock, maxBlock, maxBlock},
	}
	for _, tt := range tests {
		b := binFor(tt.give, anyNode)
		assert.Equalf(t, tt.block, b.block, "block for %d bytes", tt.give)
		assert.Equalf(t, inPages(tt.length), b.regionLength(), "region for %d bytes", tt.give)
	}
	for size := uint64(1); size < 2*reuseLimit; size += 1 + size/61 {
		b := binFor(size, anyNode)
		require.GreaterOrEqual(t, b.block, size)
		require.Zero(t, b.block%alignment)
		require.Lessf(t, b.block-size, max(alignment, size/4+1), "waste for %d bytes", size)
	}
}
