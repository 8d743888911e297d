package rundir_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/rundir"
)

// childEnv makes a child process of the test binary hold the run directory below
// the workspace it names.
const childEnv = "PRIMUS_RUNDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	workspace := os.Getenv(childEnv)
	if workspace == "" {
		os.Exit(m.Run())
	}
	if _, err := rundir.Open(location(workspace)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

func location(workspace string) rundir.Location {
	return rundir.Location{Workspace: workspace, WorkGroup: "group", UserName: "user", ExpName: "exp"}
}

func open(t *testing.T, l rundir.Location) *rundir.Dir {
	t.Helper()
	d, err := rundir.Open(l)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestOpenCreatesTheDirectory(t *testing.T) {
	t.Parallel()
	workspace := filepath.Join(t.TempDir(), "new")
	d := open(t, location(workspace))
	assert.Equal(t, filepath.Join(workspace, "group", "user", "exp"), d.Path())
	assert.Equal(t, filepath.Join(d.Path(), "a", "b"), d.Path("a", "b"))
	assert.DirExists(t, d.Path())
	assert.Empty(t, d.Warnings())

	require.NoError(t, d.WriteFile("config.yaml", []byte("one")))
	require.NoError(t, d.WriteFile("config.yaml", []byte("two")))
	got, err := os.ReadFile(d.Path("config.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "two", string(got))
	require.ErrorContains(t, d.WriteFile("absent/config.yaml", nil), "rundir: write absent/config.yaml")
}

func TestBadLocations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		give rundir.Location
		want []string
	}{
		{"all empty", rundir.Location{}, []string{"workspace", "work_group", "user_name", "exp_name"}},
		{"path as name", rundir.Location{Workspace: "w", WorkGroup: "a/b", UserName: "u", ExpName: "e"}, []string{`work_group: given "a/b"`}},
		{"parent as name", rundir.Location{Workspace: "w", WorkGroup: "g", UserName: "..", ExpName: "e"}, []string{`user_name: given ".."`}},
		{"absolute name", rundir.Location{Workspace: "w", WorkGroup: "g", UserName: "u", ExpName: "/etc"}, []string{`exp_name: given "/etc"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := rundir.Open(tt.give)
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := rundir.Open(location(file))
	require.ErrorContains(t, err, "create the run directory "+file)
	assert.ErrorContains(t, err, "a part of the path is a file")

	if os.Geteuid() == 0 {
		return // root writes everywhere
	}
	workspace := t.TempDir()
	path := location(workspace).Path()
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, os.Chmod(path, 0o555))
	_, err = rundir.Open(location(workspace))
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "is not writable")
}

func TestASecondRunIsRefused(t *testing.T) {
	t.Parallel()
	probe := open(t, location(t.TempDir()))
	if len(probe.Warnings()) > 0 {
		t.Skip(probe.Warnings()[0])
	}
	workspace := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+workspace)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	_, err = rundir.Open(location(workspace))
	var locked *durable.LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, cmd.Process.Pid, locked.PID)
	assert.ErrorContains(t, err, fmt.Sprintf("in use by process %d: wait for it or choose another exp_name", cmd.Process.Pid))

	// The lock of a killed run does not stay.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_ = stdin.Close()
	open(t, location(workspace))
}

func TestOpenRemovesTemporaryFiles(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	path := location(workspace).Path()
	require.NoError(t, os.MkdirAll(path, 0o755))
	stale := filepath.Join(path, durable.TempName(".loss.png"))
	require.NoError(t, os.WriteFile(stale, nil, 0o644))
	d := open(t, location(workspace))
	assert.NoFileExists(t, stale)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
}
