package cpu

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ends returns the first and the last byte of a region.
func ends(p unsafe.Pointer, length uint64) (first, last *byte) {
	return (*byte)(p), (*byte)(unsafe.Add(p, length-1))
}

func TestRegionsShareAChunk(t *testing.T) {
	t.Parallel()
	for _, length := range []uint64{1 << 16, 3 << 20, minMapping} {
		p := &hugePager{}
		var regions []unsafe.Pointer
		acquire := func() {
			r, err := p.acquire(length)
			require.NoError(t, err)
			first, last := ends(r, length)
			require.Zero(t, *first)
			require.Zero(t, *last)
			*first, *last = byte(len(regions)), byte(len(regions)+1)
			regions = append(regions, r)
		}
		for range min(chunkLength/length, 100) + 2 {
			acquire()
		}
		if length < minMapping {
			assert.Equal(t, unsafe.Add(regions[0], withGap(length)), regions[1])
		}
		require.NoError(t, p.release(regions[0], length))
		require.NoError(t, p.close())
		require.NoError(t, p.close())
		acquire()
		for i, r := range regions[1:] {
			first, last := ends(r, length)
			assert.Equal(t, []byte{byte(i + 1), byte(i + 2)}, []byte{*first, *last})
			require.NoError(t, p.release(r, length))
		}
		require.NoError(t, p.close())
	}
}

func TestHugePagesAreAskedFor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skipf("this kernel has no huge pages: %v", err)
	}
	p := &hugePager{}
	for _, length := range []uint64{1 << 16, minMapping} {
		r, err := p.acquire(length)
		require.NoError(t, err)
		assert.Contains(t, flagsOf(t, r), "hg")
		require.NoError(t, p.release(r, length))
	}
	require.NoError(t, p.close())
}

// flagsOf returns the flags of the mapping with an address.
func flagsOf(t *testing.T, p unsafe.Pointer) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no list of mappings: %v", err)
	}
	here := false
	for line := range strings.Lines(string(text)) {
		var begin, end uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &begin, &end); n == 2 {
			here = begin <= uintptr(p) && uintptr(p) < end
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && here {
			return strings.Fields(flags)
		}
	}
	t.Skip("this kernel lists no flags of mappings")
	return nil
}
