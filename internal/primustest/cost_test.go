package primustest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failures collects what a test would have failed with.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

var kept []byte

func TestCost(t *testing.T) {
	allocate := func(n int) func() { return func() { kept = make([]byte, n) } }
	var f failures
	Cost(&f, 100, 10, allocate(1<<20))
	Cost(&f, 1<<20, 10, allocate(10<<20))
	assert.Empty(t, f.texts)
	Cost(&f, 100, 10, allocate(10<<20))
	if assert.Len(t, f.texts, 1) {
		assert.Regexp(t, `^given 100 bytes, 10\d{6} bytes were allocated, want at most 4195304$`, f.texts[0])
	}
	kept = nil
}

func TestMeasured(t *testing.T) {
	dir := t.TempDir()
	var f failures
	Measured(&f, 1)()
	t.Setenv(CostsVariable, dir)
	for _, n := range []int{1 << 20, 3 << 20, 2 << 20} {
		func() {
			defer Measured(&f, 1<<10)()
			kept = make([]byte, n)
		}()
	}
	assert.Empty(t, f.texts)
	func() {
		defer Measured(&f, 100)()
		kept = make([]byte, 65<<20)
	}()
	kept = nil
	if assert.Len(t, f.texts, 1) {
		assert.Regexp(t, `^given 100 bytes, 68\d{6} bytes were allocated, want at most 67518464$`, f.texts[0])
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var bytes, nanoseconds float64
	_, err = fmt.Sscan(string(text), &bytes, &nanoseconds)
	require.NoError(t, err)
	assert.InDelta(t, 65<<10, bytes, 1<<10)
}
