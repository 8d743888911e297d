package launch_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A launcher that is killed can end nothing itself.
func TestProcessesEndWithTheLauncher(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "launcher", dir)
	cmd.Env = append(os.Environ(), childMode+"=1")
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(children(t, dir)) == 6 }, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	allGone(t, dir, 6)
}
