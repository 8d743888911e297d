package primustest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
