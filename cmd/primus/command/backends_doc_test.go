package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBackendsCommands runs what docs/howto/backends.md shows, on the files of Primus with source
// trees of the shape of the frameworks.
func TestBackendsCommands(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "howto", "backends.md"))
	require.NoError(t, err)
	checkout := commandtest.RecordedInputs(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(checkout, "Primus"))
	thirdParty := filepath.Join(checkout, "third_party")
	require.NoError(t, os.MkdirAll(filepath.Join(thirdParty, "Megatron-Bridge", "src"), 0o755))
	for framework, tree := range map[string]string{"megatron": "Megatron-LM", "torchtitan": "torchtitan", "maxtext": "maxtext"} {
		require.NoError(t, os.Symlink(filepath.Join(root, "internal", "backends", framework, "testdata", tree), filepath.Join(thirdParty, tree)))
	}
	commands, output := 0, ""
	for _, b := range commandtest.Blocks(string(text)) {
		switch language, norun, _ := strings.Cut(b.Language, " norun="); {
		case norun != "":
		case language == "sh":
			commands += len(b.Lines)
			output = runBlock(t, b, 0)
		case language == "text":
			checkOutput(t, b, output)
		default:
			t.Errorf("a block of language %q, want sh or text, so that it is run", b.Language)
		}
	}
	assert.GreaterOrEqual(t, commands, 6, "one for each framework")
}
