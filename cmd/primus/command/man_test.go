package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManual writes the manual, and reads every page as a user does: man has no complaint, and no
// word of the help is lost to the markup.
func TestManual(t *testing.T) {
	primustest.Sequential(t, "it runs one command after the other")
	primustest.Long(t, "it types the commands of a page")
	dir := filepath.Join(t.TempDir(), "man1")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	got := commandtest.Run(t, "man", "--dir", dir)
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, commandtest.Run(t, "--help").Out, "\n  man ", "it is for packagers")
	man, err := exec.LookPath("man")
	if err != nil {
		t.Log("no man on this machine: the pages are not rendered")
	}
	pages := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" { // the last two are of cobra
			return
		}
		pages++
		file := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(source), `"1" "Nov 2023" "primus `)
		if man != "" {
			text := rendered(t, man, file)
			for _, word := range strings.Fields(cmd.Short + " " + cmd.Long + " " + cmd.Example) {
				assert.True(t, strings.Contains(text, word), "%s lacks %q:\n%s", file, word, text)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(command.NewRoot(command.Streams{}))
	assert.Greater(t, pages, 40)

	assert.Equal(t, 2, commandtest.Run(t, "man").Code)
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	assert.Contains(t, commandtest.Run(t, "man", "--dir", filepath.Join(blocked, "man1")).Stderr, "write manual pages: ")
}

// rendered returns a page as plain text. What man or groff complain about is a failure.
func rendered(t *testing.T, man, file string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), man, "--warnings", "--nh", "--nj", "-l", file)
	cmd.Env = append(os.Environ(), "MANWIDTH=4000", "MANPAGER=cat", "MANROFFOPT=", "LC_ALL=C.UTF-8")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	require.NoError(t, err, "%s", complaints.String())
	assert.Empty(t, complaints.String(), file)
	return string(text)
}
