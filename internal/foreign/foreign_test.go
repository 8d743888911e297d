package foreign_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/foreign"
)

// The page for users of TransformerEngine-FL has the list.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "from-transformerengine-fl.md"))
	require.NoError(t, err)
	var names []string
	for _, o := range foreign.Ops() {
		names = append(names, "`"+o.Name+"`")
	}
	assert.Contains(t, strings.Join(strings.Fields(string(text)), " "), " what stands for it: "+strings.Join(names, ", ")+". ")
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
