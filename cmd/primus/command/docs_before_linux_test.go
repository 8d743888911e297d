package command_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBeforeARun runs the commands that check nodes. Whether this machine passes is its own affair;
// the commands run to their end and print a result.
func TestBeforeARun(t *testing.T) {
	t.Parallel()
	commandtest.Tools(t, "bash")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "before-a-run.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "primus")))
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	free, err := strconv.Atoi(port)
	require.NoError(t, err)
	ran := 0
	for _, b := range commandtest.Blocks(string(text)) {
		if b.Language != "sh" {
			continue
		}
		ran++
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", strings.Join(b.Lines, "\n"))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), commandtest.RoleEnv+"=primus", "PATH="+dir+":"+os.Getenv("PATH"), "MASTER_PORT="+strconv.Itoa(free-1))
		output, _ := cmd.CombinedOutput() // a check may fail here
		require.NoError(t, ctx.Err(), "%s", output)
		assert.NotContains(t, string(output), "primus: error", "%v", b.Lines)
		assert.Regexp(t, ` ok, \d+ warnings?, \d+ failures?|\d of 1 passed|"status": `, string(output))
	}
	assert.Equal(t, 3, ran)
}

// TestScalingGuide runs the commands of the guide and compares the memory that they print with the
// guide's.
func TestScalingGuide(t *testing.T) {
	primustest.Sequential(t, "it types the commands of a page")
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "scaling.md"))
	require.NoError(t, err)
	var printed []string
	for _, b := range commandtest.Blocks(string(text)) {
		if b.Language != "sh" {
			continue
		}
		for _, line := range b.Lines {
			got := commandtest.Run(t, strings.Fields(strings.TrimPrefix(line, "bin/primus "))...)
			require.Zero(t, got.Code, got.Stderr)
			parts := regexp.MustCompile(`(?m)^ +memory +(\d.*?) \(`).FindStringSubmatch(got.Out)
			require.NotNil(t, parts, got.Out)
			printed = append(printed, parts[1])
		}
	}
	require.Len(t, printed, 2)
	assert.Contains(t, string(text), printed[0]+" in one process and "+printed[1]+" on each of 4 ranks")
}
