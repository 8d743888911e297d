package plugin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/vendors/plugin"
)

// Libraries are compiled with the indexes of arguments, so those of testdata/layout.golden stay what
// they are. Lines may be added: for a new op, or for an argument after the last one of an op.
func TestLayoutsAreFrozen(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/layout.golden")
	require.NoError(t, err)
	frozen := strings.Split(strings.TrimSpace(string(text)), "\n")
	var now []string
	for _, op := range ops.All() {
		params, err := plugin.Layout(op)
		if err != nil {
			continue
		}
		for _, p := range params {
			now = append(now, fmt.Sprintf("%s %d %s: %v", op.Name(), p.Index, p.Macro(), p.Sort))
		}
	}
	assert.Subset(t, now, frozen, "an argument that libraries are compiled with is gone, or has another index, name or sort")
	assert.Subset(t, frozen, now, "add the lines of new arguments to testdata/layout.golden")
}
