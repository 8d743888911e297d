package plugin_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/ops"
)

// Libraries are compiled with the indexes of arguments, so those of testdata/layout.golden stay
// what they are. Lines may be added: for a new op, or for an argument after the last one of an op.
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
	assert.Empty(t, without(frozen, now), "arguments that libraries are compiled with are gone, or have another index, name or sort")
	assert.Empty(t, without(now, frozen), "go generate ./vendors/abi adds the lines of new arguments to testdata/layout.golden")
}

// without returns the lines that others lack.
func without(lines, others []string) []string {
	have := map[string]bool{}
	for _, l := range others {
		have[l] = true
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return have[l] })
}
