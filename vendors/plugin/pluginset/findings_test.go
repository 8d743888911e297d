package pluginset_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
	"github.com/stretchr/testify/assert"
)

// An op that the program does not have, such as one that is misspelt, is reported.
func TestFindingsNameWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	p := pluginset.Plugin{Report: &plugin.Report{LeftOut: []plugin.UnusedOp{{Op: "residual_ad", Impl: "vendor.acme", Reason: "this program's catalogue has no such op"}}}}
	assert.Equal(t, `impl "vendor.acme" of op "residual_ad" is left out: this program's catalogue has no such op`, p.Findings())
}
