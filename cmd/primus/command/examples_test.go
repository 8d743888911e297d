package command_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/modes"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command has examples, and each is a line that this program takes.
func TestExamplesOfHelp(t *testing.T) {
	primustest.Sequential(t, "it runs one command after the other")
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join("Primus", "primus", "configs"), 0o755))
	require.NoError(t, os.Mkdir("notes", 0o755))
	require.NoError(t, os.WriteFile("notes/a.txt", bytes.Repeat([]byte("A line of some text.\n"), 1000), 0o600))
	seen := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		group := c.HasSubCommands() // its examples are of the commands below it
		if c.Hidden || group && c.Example == "" || c.Name() == "help" || c.HasParent() && c.Parent().Name() == "completion" {
			return
		}
		require.NotEmpty(t, c.Example, "%s has no example", c.CommandPath())
		own := false
		for line := range strings.SplitSeq(c.Example, "\n") {
			words := shellWords(line)
			for len(words) > 0 && words[0] != "primus" {
				words = words[1:] // variables, and a command before a pipe
			}
			if len(words) == 0 {
				continue
			}
			seen++
			root := command.NewRoot(command.Streams{Out: io.Discard, Err: io.Discard})
			words = append(words[:1], modes.Reorder(words[1:])...)
			found, rest, err := root.Find(words[1:])
			require.NoError(t, err, line)
			own = own || found.CommandPath() == c.CommandPath()
			if found.DisableFlagParsing { // it takes overrides
				if strings.Contains(line, ".yaml") { // and ends because the experiment is not here
					got := commandtest.Run(t, words[1:]...)
					assert.Equal(t, 1, got.Code, "%s: %s", line, got.Stderr)
				} else if found.Flags().Lookup("dry-run") != nil {
					dry := append(words[1:], "--dry-run")
					if slices.Contains(words, "--") { // the options of a mode come first
						dry = append([]string{"--dry-run"}, words[1:]...)
					}
					got := commandtest.Run(t, dry...)
					assert.Zero(t, got.Code, "%s: %s", line, got.Stderr)
				}
				continue
			}
			require.NoError(t, found.ParseFlags(rest), line)
			assert.NoError(t, found.ValidateArgs(found.Flags().Args()), line)
		}
		assert.True(t, own || group, "no example of %s shows it", c.CommandPath())
	}
	check(command.NewRoot(command.Streams{Out: io.Discard, Err: io.Discard}))
	assert.Greater(t, seen, 60)
}

// shellWords splits the first command of a line that names primus; quotes keep spaces, and a
// redirection or pipe ends it.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		for _, w := range strings.Fields(part) {
			if (w == ">" || w == "|") && slices.Contains(words, "primus") {
				return words
			}
			words = append(words, w)
		}
	}
	return words
}
