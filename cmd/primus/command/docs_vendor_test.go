package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWritingAVendor follows the guide in a shell: its commands succeed and print what the guide
// shows after them, and its listings are in the files that they name.
func TestWritingAVendor(t *testing.T) {
	primustest.Sequential(t, "it types the commands of a page")
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	commandtest.Tools(t, "bash", "make", "cc", "go", "sed", "grep")
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "tutorials", "writing-a-vendor.md"))
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	bin, dir, commands, output := t.TempDir(), t.TempDir(), 0, ""
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "primus")))
	where := filepath.Join(bin, "where") // the guide changes directories
	env := append(os.Environ(), commandtest.RoleEnv+"=primus", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PRIMUS_SOURCE="+root, "GOPROXY=off", "WHERE="+where)
	for _, b := range commandtest.Blocks(string(text)) {
		switch b.Language {
		case "c", "go":
			checkListing(t, root, b)
		case "sh":
			commands += len(b.Lines)
			cmd := exec.Command("bash", "-ec", strings.Join(b.Lines, "\n")+"\npwd > $WHERE\n")
			cmd.Dir, cmd.Env = dir, env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", strings.Join(b.Lines, "\n"), out)
			output = string(out)
			now, err := os.ReadFile(where)
			require.NoError(t, err)
			dir = strings.TrimSpace(string(now))
		case "text":
			rest := commandtest.OneSpace(output)
			for _, line := range b.Lines {
				var found bool
				_, rest, found = strings.Cut(rest, commandtest.OneSpace(line))
				require.True(t, found, "%q in this order in\n%s", line, output)
			}
		}
	}
	assert.GreaterOrEqual(t, commands, 15)
}
