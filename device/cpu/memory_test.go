package cpu

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

func isZero(content []byte) bool {
	return !slices.ContainsFunc(content, func(c byte) bool { return c != 0 })
}

func fill(content []byte) {
	for i := range content {
		content[i] = 0xa5
	}
}

func TestReusedMemoryIsZeroedAndAligned(t *testing.T) {
	t.Parallel()
	b := open(t)
	for round := range 3 {
		for size := uint64(1); size < 300<<10; size += 1 + size/7 {
			p := mustAlloc(t, b, size)
			require.Zero(t, uintptr(p)%alignment)
			content := unsafe.Slice((*byte)(p), size)
			require.Truef(t, isZero(content), "round %d, %d bytes", round, size)
			fill(content)
			require.NoError(t, b.Free(p))
		}
	}
}

func TestFreedMemoryIsReused(t *testing.T) {
	t.Parallel()
	for _, size := range []uint64{1, 4096, smallBlock, smallBlock + 1, 1 << 20, reuseLimit} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			p := newFakePager()
			b := openOn(t, p, 0)
			first := mustAlloc(t, b, size)
			require.NoError(t, b.Free(first))
			second := mustAlloc(t, b, size)
			assert.Equal(t, first, second)
			assert.Equal(t, 1, p.acquired)
			require.NoError(t, b.Free(second))
		})
	}
}

func TestSmallBlocksShareMemory(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 0)
	var blocks []unsafe.Pointer
	for range 1000 {
		blocks = append(blocks, mustAlloc(t, b, 64))
	}
	assert.Equal(t, 1, p.acquired)
	for _, block := range blocks {
		require.NoError(t, b.Free(block))
	}
}

func TestAllocErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give uint64
		want string
	}{
		{"nothing", 0, "cpu: alloc of 0 bytes: want at least 1"},
		{"too much", maxBlock + 1, fmt.Sprintf("cpu: alloc of %d bytes: want at most %d", uint64(maxBlock+1), uint64(maxBlock))},
		{"most", 1<<64 - 1, fmt.Sprintf("cpu: alloc of 18446744073709551615 bytes: want at most %d", uint64(maxBlock))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			p, err := b.Alloc(tt.give)
			require.EqualError(t, err, tt.want)
			assert.Nil(t, p)
			assert.Zero(t, b.Stats())
		})
	}
}

func TestFreeErrors(t *testing.T) {
	t.Parallel()
	b := open(t)
	small, large, huge := mustAlloc(t, b, 100), mustAlloc(t, b, 1<<20), mustAlloc(t, b, reuseLimit+1)
	freedSmall, freedLarge, freedHuge := mustAlloc(t, b, 1000), mustAlloc(t, b, 1<<21), mustAlloc(t, b, reuseLimit+1)
	for _, p := range []unsafe.Pointer{freedSmall, freedLarge, freedHuge} {
		require.NoError(t, b.Free(p))
	}
	onHeap := unsafe.Pointer(new(int64))

	const (
		foreign = "cpu: free %#x: Alloc of this backend did not return this pointer"
		freed   = "cpu: free %#x: the block is already freed"
		inFreed = "cpu: free %#x: inside a block that is already freed"
		inside  = "cpu: free %#x: %d bytes into the block of %d bytes at %#x; pass the pointer that Alloc returned"
	)
	tests := []struct {
		name string
		give unsafe.Pointer
		want string
	}{
		{"nil", nil, "cpu: free 0x0: want a pointer that Alloc returned"},
		{"foreign", onHeap, fmt.Sprintf(foreign, uintptr(onHeap))},
		{"block not yet handed out", unsafe.Add(small, 128), fmt.Sprintf(foreign, uintptr(small)+128)},
		{"freed small", freedSmall, fmt.Sprintf(freed, uintptr(freedSmall))},
		{"freed large", freedLarge, fmt.Sprintf(freed, uintptr(freedLarge))},
		{"freed and returned to the system", freedHuge, fmt.Sprintf(freed, uintptr(freedHuge))},
		{"inside small", unsafe.Add(small, 1), fmt.Sprintf(inside, uintptr(small)+1, 1, 100, uintptr(small))},
		{"after the end of small", unsafe.Add(small, 101), fmt.Sprintf(inside, uintptr(small)+101, 101, 100, uintptr(small))},
		{"inside large", unsafe.Add(large, 64), fmt.Sprintf(inside, uintptr(large)+64, 64, 1<<20, uintptr(large))},
		{"inside huge", unsafe.Add(huge, reuseLimit), fmt.Sprintf(inside, uintptr(huge)+reuseLimit, reuseLimit, reuseLimit+1, uintptr(huge))},
		{"inside freed small", unsafe.Add(freedSmall, 64), fmt.Sprintf(inFreed, uintptr(freedSmall)+64)},
		{"inside freed large", unsafe.Add(freedLarge, 64), fmt.Sprintf(inFreed, uintptr(freedLarge)+64)},
		{"inside freed and returned", unsafe.Add(freedHuge, 64), fmt.Sprintf(inFreed, uintptr(freedHuge)+64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := b.Stats()
			require.EqualError(t, b.Free(tt.give), tt.want)
			assert.Equal(t, before, b.Stats())
		})
	}
	for _, p := range []unsafe.Pointer{small, large, huge} {
		require.NoError(t, b.Free(p))
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	b := openOn(t, newFakePager(), 0)
	assert.Zero(t, b.Stats())

	small, huge := mustAlloc(t, b, 100), mustAlloc(t, b, reuseLimit+1)
	slab, direct := uint64(slabLength), inPages(reuseLimit+1)
	assert.Equal(t, Stats{Blocks: 2, Bytes: reuseLimit + 101, PeakBytes: reuseLimit + 101, MappedBytes: slab + direct}, b.Stats())

	require.NoError(t, b.Free(huge))
	assert.Equal(t, Stats{Blocks: 1, Bytes: 100, PeakBytes: reuseLimit + 101, MappedBytes: slab}, b.Stats())

	require.NoError(t, b.Free(small))
	assert.Equal(t, Stats{PeakBytes: reuseLimit + 101, MappedBytes: slab, IdleBytes: slab}, b.Stats())

	require.NoError(t, b.Free(mustAlloc(t, b, 128)))
	require.NoError(t, b.Close())
	assert.Equal(t, Stats{PeakBytes: reuseLimit + 101}, b.Stats())
}

func TestCloseReportsLeaks(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := newBackend(p, func() []int { return []int{0} })
	small, large := mustAlloc(t, b, 100), mustAlloc(t, b, 1<<20)
	require.NoError(t, b.Free(mustAlloc(t, b, 1<<22)))

	const leak = "cpu: close: still allocated: 2 blocks, 1048676 bytes; free them first"
	require.EqualError(t, b.Close(), leak)
	require.EqualError(t, b.Close(), leak, "nothing has changed")
	assert.Len(t, p.held, 2, "only memory without live blocks is released")
	*(*byte)(small) = 1

	_, err := b.Alloc(1)
	require.EqualError(t, err, "device: backend is closed: alloc of 1 bytes")
	require.ErrorIs(t, err, device.ErrClosed)

	require.NoError(t, b.Free(small))
	require.NoError(t, b.Free(large))
	assert.Empty(t, p.held, "a closed backend keeps nothing for reuse")
	require.NoError(t, b.Close())
	assert.EqualError(t, b.Free(small), fmt.Sprintf("cpu: free %#x: the block is already freed", uintptr(small)))
}

func TestMemoryHammer(t *testing.T) {
	t.Parallel()
	b := open(t)
	sizes := []uint64{1, 64, 100, 4096, 65536, 65537, 1 << 20}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			<-start
			var kept []unsafe.Pointer
			for i := range 200 {
				size := sizes[(i*7+g)%len(sizes)]
				p, err := b.Alloc(size)
				if !assert.NoError(t, err) {
					return
				}
				ends := unsafe.Slice((*byte)(p), size)
				assert.Zero(t, ends[0])
				assert.Zero(t, ends[size-1])
				ends[0], ends[size-1] = 1, 1
				kept = append(kept, p)
				if len(kept) > 5 {
					assert.NoError(t, b.Free(kept[0]))
					assert.Error(t, b.Free(unsafe.Add(kept[1], 1)))
					kept = kept[1:]
				}
				assert.LessOrEqual(t, b.Stats().IdleBytes, uint64(idleLimit))
			}
			for _, p := range kept {
				assert.NoError(t, b.Free(p))
			}
		})
	}
	close(start)
	wg.Wait()
	assert.Zero(t, b.Stats().Blocks)
	assert.Zero(t, b.Stats().Bytes)
}
