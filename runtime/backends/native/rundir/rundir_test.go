package rundir_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
	"github.com/primus-fl/primus/runtime/backends/native/rundir"
)

// childEnv makes a child process of the test binary hold the run directory it
// names.
const childEnv = "PRIMUS_RUNDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := rundir.Open(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

func open(t *testing.T, path string) *rundir.Dir {
	t.Helper()
	d, err := rundir.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestOpenCreatesTheDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "output", "group", "user", "exp")
	d := open(t, path)
	assert.Equal(t, path, d.Path())
	assert.Equal(t, filepath.Join(path, "a", "b"), d.Path("a", "b"))
	assert.DirExists(t, d.Path())
	assert.Empty(t, d.Warnings())

	require.NoError(t, d.WriteFile("config.yaml", []byte("one")))
	require.NoError(t, d.WriteFile("config.yaml", []byte("two")))
	got, err := os.ReadFile(d.Path("config.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "two", string(got))
	require.ErrorContains(t, d.WriteFile("absent/config.yaml", nil), "rundir: write absent/config.yaml")

	_, err = rundir.Open("")
	require.ErrorContains(t, err, "set workspace, work_group, user_name and exp_name")
}

func TestTheLogIsAppended(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	for range 2 {
		d := open(t, path)
		_, err := io.WriteString(d.Log(), "line\n")
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())
		_, err = io.WriteString(d.Log(), "late\n")
		require.ErrorIs(t, err, os.ErrClosed)
	}
	got, err := os.ReadFile(filepath.Join(path, rundir.LogName))
	require.NoError(t, err)
	assert.Equal(t, "line\nline\n", string(got))
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := rundir.Open(filepath.Join(file, "exp"))
	require.ErrorContains(t, err, "create the run directory "+file)
	assert.ErrorContains(t, err, "a part of the path is a file")

	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere")
	}
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o555))
	_, err = rundir.Open(path)
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "is not writable")
}

func TestASecondRunIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no locks on this system")
	}
	path := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	_, err = rundir.Open(path)
	var locked *durable.LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, cmd.Process.Pid, locked.PID)
	assert.ErrorContains(t, err, fmt.Sprintf("in use by process %d: wait for it or choose another exp_name", cmd.Process.Pid))

	// The lock of a killed run does not stay.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_ = stdin.Close()
	open(t, path)
}

func TestOpenRemovesTemporaryFiles(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	stale := filepath.Join(path, durable.TempName(".loss.png"))
	require.NoError(t, os.WriteFile(stale, nil, 0o644))
	d := open(t, path)
	assert.NoFileExists(t, stale)
	assert.Empty(t, d.Warnings())
}
