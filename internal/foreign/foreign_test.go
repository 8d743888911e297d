package foreign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/foreign"
)

// The page for users of TransformerEngine-FL has the table.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "from-transformerengine-fl.md"))
	require.NoError(t, err)
	var rows strings.Builder
	for _, o := range foreign.Ops() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", o.Name, o.Purpose, o.Instead)
	}
	assert.Contains(t, string(text), "| op | TransformerEngine-FL uses it to | here |\n|---|---|---|\n"+rows.String()+"\n")
}

func TestFind(t *testing.T) {
	t.Parallel()
	all := foreign.Ops()
	assert.True(t, slices.IsSortedFunc(all, func(a, b foreign.Op) int { return strings.Compare(a.Name, b.Name) }))
	for _, name := range []string{"get_cublasLt_version", "get_cublaslt_version"} {
		o, ok := foreign.Find(name)
		require.True(t, ok, name)
		assert.Equal(t, "get_cublasLt_version: not dispatched here\nTransformerEngine-FL: ask for the version of cuBLASLt\nhere: "+o.Instead, o.String())
	}
	_, ok := foreign.Find("swiglu")
	assert.False(t, ok)
}
