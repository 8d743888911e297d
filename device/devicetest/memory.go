package devicetest

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// alignment is what the contract promises for every block.
const alignment = 64

// blockSizes has sizes around the alignment, a page and a huge page.
var blockSizes = []uint64{1, 2, 63, 64, 65, 1000, 4095, 4096, 4097, 1 << 16, 1<<16 + 1, 1<<20 - 1, 1 << 21, 3<<20 + 5}

var memoryChecks = []check{
	{"blocks_are_aligned", func(t *testing.T, b device.Backend) {
		for _, size := range blockSizes {
			p := alloc(t, b, size)
			assert.Zerof(t, uintptr(p)%alignment, "block of %d bytes at %p", size, p)
		}
	}},
	{"blocks_do_not_overlap", func(t *testing.T, b device.Backend) {
		type block struct{ start, end uintptr }
		var blocks []block
		for range 4 {
			for _, size := range blockSizes {
				start := uintptr(alloc(t, b, size))
				blocks = append(blocks, block{start, start + uintptr(size)})
			}
		}
		slices.SortFunc(blocks, func(x, y block) int { return cmp.Compare(x.start, y.start) })
		for i := 1; i < len(blocks); i++ {
			assert.LessOrEqual(t, blocks[i-1].end, blocks[i].start)
		}
	}},
	{"memory_is_zeroed_also_when_used_before", func(t *testing.T, b device.Backend) {
		skipUnlessReadable(t, b)
		for range 3 {
			for _, size := range blockSizes {
				p, err := b.Alloc(size)
				require.NoError(t, err)
				content := unsafe.Slice((*byte)(p), size)
				assert.Truef(t, isZero(content), "block of %d bytes is not zero", size)
				fill(content, 0xff)
				require.NoError(t, b.Free(p))
			}
		}
	}},
	{"memory_keeps_what_is_written", func(t *testing.T, b device.Backend) {
		skipUnlessReadable(t, b)
		contents := make([][]byte, len(blockSizes))
		for i, size := range blockSizes {
			contents[i] = unsafe.Slice((*byte)(alloc(t, b, size)), size)
			fill(contents[i], byte(i+1))
		}
		for i, content := range contents {
			want := make([]byte, len(content))
			fill(want, byte(i+1))
			assert.Truef(t, slices.Equal(want, content), "block of %d bytes has changed", len(content))
		}
	}},
	{"size_zero_is_an_error", func(t *testing.T, b device.Backend) { assertNoBlock(t, b, 0) }},
	{"impossible_size_is_an_error", func(t *testing.T, b device.Backend) {
		for _, size := range []uint64{1<<60 + 1, math.MaxInt64, math.MaxUint64 - 4096, math.MaxUint64} {
			assertNoBlock(t, b, size)
		}
	}},
	{"second_free_is_an_error", func(t *testing.T, b device.Backend) {
		for _, size := range blockSizes {
			p, err := b.Alloc(size)
			require.NoError(t, err)
			require.NoError(t, b.Free(p))
			assert.Errorf(t, b.Free(p), "second free of %d bytes", size)
		}
	}},
	{"free_of_nil_is_an_error", func(t *testing.T, b device.Backend) { assert.Error(t, b.Free(nil)) }},
	{"free_of_foreign_memory_is_an_error", func(t *testing.T, b device.Backend) {
		assert.Error(t, b.Free(unsafe.Pointer(new([alignment]byte))))
	}},
	{"free_of_an_interior_pointer_is_an_error", func(t *testing.T, b device.Backend) {
		for _, size := range blockSizes[1:] {
			p := alloc(t, b, size)
			assert.Errorf(t, b.Free(unsafe.Add(p, size/2)), "middle of %d bytes", size)
		}
	}},
	{"errors_of_free_leave_live_blocks_alone", func(t *testing.T, b device.Backend) {
		p, err := b.Alloc(4096)
		require.NoError(t, err)
		assert.Error(t, b.Free(unsafe.Add(p, 1)))
		assert.Error(t, b.Free(nil))
		assert.NoError(t, b.Free(p))
	}},
	{"goroutines_share_the_backend", func(t *testing.T, b device.Backend) {
		readable := isReadable(t, b)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 100 {
					size := blockSizes[(i+g)%9]
					p, err := b.Alloc(size)
					if !assert.NoError(t, err) {
						return
					}
					if readable {
						content := unsafe.Slice((*byte)(p), size)
						assert.True(t, isZero(content), "somebody else writes to the block")
						fill(content, byte(g+1))
					}
					assert.NoError(t, b.Free(p))
				}
			})
		}
		wg.Wait()
	}},
}

// alloc returns a block that is freed at the end of the test.
func alloc(t *testing.T, b device.Backend, size uint64) unsafe.Pointer {
	t.Helper()
	p, err := b.Alloc(size)
	require.NoErrorf(t, err, "alloc of %d bytes", size)
	require.NotNilf(t, p, "alloc of %d bytes", size)
	t.Cleanup(func() { assert.NoError(t, b.Free(p)) })
	return p
}

func assertNoBlock(t *testing.T, b device.Backend, size uint64) {
	t.Helper()
	p, err := b.Alloc(size)
	assert.Errorf(t, err, "alloc of %d bytes", size)
	assert.Nilf(t, p, "alloc of %d bytes", size)
}

func isReadable(t *testing.T, b device.Backend) bool {
	t.Helper()
	d, err := b.Device()
	require.NoError(t, err)
	return d.Type == device.TypeCPU
}

func skipUnlessReadable(t *testing.T, b device.Backend) {
	t.Helper()
	if !isReadable(t, b) {
		t.Skip("the contract has no way to read the memory of this device")
	}
}

func isZero(content []byte) bool {
	return !slices.ContainsFunc(content, func(c byte) bool { return c != 0 })
}

func fill(content []byte, c byte) {
	for i := range content {
		content[i] = c
	}
}
