package launch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessesEndWithTheLauncher(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "launcher", dir)
	cmd.Env = append(os.Environ(), childMode+"=1")
	require.NoError(t, cmd.Start())
	logs := func() []int {
		var pids []int
		for _, status := range mustGlob(t, "/proc/[0-9]*/cmdline") {
			text, err := os.ReadFile(status)
			if err == nil && bytes.HasSuffix(text, []byte("\x00silent\x00")) && bytes.HasPrefix(text, []byte(os.Args[0])) {
				pids = append(pids, len(pids))
			}
		}
		return pids
	}
	require.Eventually(t, func() bool { return len(mustGlob(t, filepath.Join(dir, "rank-*.log"))) == 2 }, 2*time.Minute, 10*time.Millisecond)
	require.Len(t, logs(), 2)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	assert.Eventually(t, func() bool { return len(logs()) == 0 }, 2*time.Minute, 10*time.Millisecond, "no rank outlives its launcher")
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}
