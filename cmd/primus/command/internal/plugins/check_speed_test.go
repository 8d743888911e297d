package plugins

import (
	"io"
	"testing"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/stretchr/testify/assert"
)

// As everywhere, a ratio above 1 says that what the row is about is faster.
func TestPluginsCheckSpeedIsRelativeToBaseline(t *testing.T) {
	t.Parallel()
	text := plaintext.Render(io.Discard, speedTable([]check.OpReport{{Op: "rmsnorm_fwd", Impl: "vendor.acme", Speed: []check.Speed{
		{Case: "slow", Impl: 4, Baseline: "default.flagos", BaselineTime: 1},
		{Case: "fast", Impl: 1, Baseline: "vendor.opencl", BaselineTime: 2},
		{Case: "alone", Impl: 1},
	}}}))
	assert.Regexp(t, `slow .* default\.flagos`, text)
	assert.Regexp(t, `fast .* vendor\.opencl`, text)
	assert.Regexp(t, `slow .* 0\.25\s*\n`, text)
	assert.Regexp(t, `fast .* 2\.00\s*\n`, text)
	assert.Regexp(t, `alone .* -\s*(\n|$)`, text)
}
