package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFromTextToAnswers follows the walk-through: from text to a model that answers over HTTP.
func TestFromTextToAnswers(t *testing.T) {
	primustest.Sequential(t, "it types the commands of a page")
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	commandtest.Tools(t, "bash", "curl", "jq")
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "tutorials", "from-text-to-answers.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"docs", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)))
	}
	assert.GreaterOrEqual(t, runCommands(t, dir, string(text), strings.NewReplacer(freePorts(t, "8000")...)), 4)
}
