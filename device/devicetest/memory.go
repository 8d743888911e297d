package devicetest

import (
	"bytes"
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
		skipUnlessAccessible(t, b)
		for range 3 {
			for _, size := range blockSizes {
				p, err := b.Alloc(size)
				require.NoError(t, err)
				assert.Truef(t, isZero(read(t, b, p, size)), "block of %d bytes is not zero", size)
				write(t, b, p, filled(size, 0xff))
				require.NoError(t, b.Free(p))
			}
		}
	}},
	{"memory_keeps_what_is_written", func(t *testing.T, b device.Backend) {
		skipUnlessAccessible(t, b)
		blocks := make([]unsafe.Pointer, len(blockSizes))
		for i, size := range blockSizes {
			blocks[i] = alloc(t, b, size)
			write(t, b, blocks[i], filled(size, byte(i+1)))
		}
		for i, size := range blockSizes {
			assert.Truef(t, slices.Equal(filled(size, byte(i+1)), read(t, b, blocks[i], size)), "block of %d bytes has changed", size)
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
		accessible := isAccessible(t, b)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 100 {
					size := blockSizes[(i+g)%9]
					p, err := b.Alloc(size)
					if !assert.NoError(t, err) {
						return
					}
					if accessible {
						assert.True(t, isZero(read(t, b, p, size)), "somebody else writes to the block")
						write(t, b, p, filled(size, byte(g+1)))
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

// isAccessible reports whether the content of blocks can be read and written: by the processor, or
// because the backend is a device.Copier.
func isAccessible(t *testing.T, b device.Backend) bool {
	t.Helper()
	_, copies := b.(device.Copier)
	return copies || onHost(t, b)
}

func onHost(t *testing.T, b device.Backend) bool {
	t.Helper()
	d, err := b.Device()
	assert.NoError(t, err)
	return d.Type == device.TypeCPU
}

func skipUnlessAccessible(t *testing.T, b device.Backend) {
	t.Helper()
	if !isAccessible(t, b) {
		t.Skipf("backend %s is no device.Copier, and the processor cannot read its memory", b.Name())
	}
}

// read returns a copy of a block.
func read(t *testing.T, b device.Backend, p unsafe.Pointer, size uint64) []byte {
	t.Helper()
	if onHost(t, b) {
		return slices.Clone(unsafe.Slice((*byte)(p), size))
	}
	content := filled(size, 0x55)
	assert.NoError(t, b.(device.Copier).CopyOut(content, p, device.DefaultStream))
	return content
}

// write copies to a block.
func write(t *testing.T, b device.Backend, p unsafe.Pointer, content []byte) {
	t.Helper()
	if onHost(t, b) {
		copy(unsafe.Slice((*byte)(p), len(content)), content)
		return
	}
	assert.NoError(t, b.(device.Copier).CopyIn(p, content, device.DefaultStream))
}

func isZero(content []byte) bool {
	return !slices.ContainsFunc(content, func(c byte) bool { return c != 0 })
}

func filled(size uint64, c byte) []byte { return bytes.Repeat([]byte{c}, int(size)) }
