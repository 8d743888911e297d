package check_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/primus-fl/primus/opstest"
)

// A check that could not look for leaks says so.
func TestTooFewCallsAreNoted(t *testing.T) {
	for _, tooFew := range []bool{false, true} {
		r := &check.Report{Checks: []check.OpReport{{
			Op: "gelu", Impl: "vendor.acme", Device: "opencl:0", Results: []opstest.Result{{Served: 1}}, Leaks: &check.Leaks{Calls: 700, TooFew: tooFew},
		}}}
		r.Conclude()
		assert.True(t, r.Passed)
		if !tooFew {
			assert.Empty(t, r.Notes)
			continue
		}
		assert.Equal(t, []string{"gelu, vendor.acme on opencl:0 was not checked for leaks: only 700 calls fit into 10s, too few to tell a leak from what a driver keeps; check on a machine with less to do"}, r.Notes)
	}
}
