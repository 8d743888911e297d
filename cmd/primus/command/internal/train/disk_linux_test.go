package train_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The roles of children that run primus with a workspace on a disk of their own, which vanishes
// with them.
const (
	roleFullDisk = "full disk"
	roleReadOnly = "read-only disk"
)

const noMount = "mount a small disk"

// mounted plays such a role: the first argument is the workspace, the others are those of primus.
func mounted(role string, args []string) int {
	workspace := args[0]
	options := map[string]string{roleFullDisk: "size=700k", roleReadOnly: "size=8m"}[role]
	err := os.MkdirAll(workspace, 0o755)
	if err == nil {
		err = syscall.Mount("tmpfs", workspace, "tmpfs", 0, options)
	}
	if err == nil && role == roleReadOnly {
		err = syscall.Mount("", workspace, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", noMount, err)
		return 1
	}
	code := command.Main(args[1:], command.StandardStreams())
	if found, err := exec.Command("find", workspace, "-name", "*.tmp-*", "-o", "-path", "*checkpoints/step-*", "-name", "*[0-9]").Output(); err == nil {
		fmt.Printf("left: %s\n", strings.Join(strings.Fields(string(found)), " "))
	}
	return code
}

// onDisk runs the experiment in such a role. It skips the test where the system forbids private
// mounts.
func onDisk(l *commandtest.Lab, role string, more ...string) commandtest.Outcome {
	l.T.Helper()
	cmd := commandtest.Child(l.T.Context(), []string{commandtest.RoleEnv + "=" + role}, append([]string{l.Workspace}, l.Args(more...)...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if exit, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran || strings.Contains(stderr.String(), noMount) {
		l.T.Skipf("this system allows no private mounts: %v %v %s", err, exit, stderr.String())
	}
	return commandtest.Outcome{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Stderr: stderr.String()}
}

// A disk that fills up in the middle: the error says so, and the checkpoints that were finished
// stay.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	got := onDisk(l, roleFullDisk, "save_interval=1", "num_layers=2")
	assert.Equal(t, 1, got.Code, got.Stderr)
	line := commandtest.OnlyError(t, got)
	for _, part := range []string{"save step", "no space left on device", l.Workspace, "free space"} {
		assert.Contains(t, line, part)
	}
	left := got.Out[strings.LastIndex(got.Out, "left: "):]
	assert.NotContains(t, left, ".tmp-")
	assert.Contains(t, left, "step-00000001")
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	got := onDisk(l, roleReadOnly)
	assert.Equal(t, 1, got.Code)
	line := commandtest.OnlyError(t, got)
	for _, part := range []string{"run directory", l.Workspace, "read-only"} {
		assert.Contains(t, line, part)
	}
}

// asNobody runs the experiment without the rights of root, to whom every file is readable and
// writable.
func asNobody(l *commandtest.Lab) commandtest.Outcome {
	l.T.Helper()
	if os.Geteuid() != 0 {
		return l.Train()
	}
	for dir, mode := range map[string]os.FileMode{filepath.Dir(l.Dir): 0o755, l.Dir: 0o777} {
		require.NoError(l.T, os.Chmod(dir, mode))
	}
	cmd := commandtest.Child(l.T.Context(), nil, l.Args()...)
	cmd.Path = "/proc/self/exe" // the test binary lies where only root may look
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		l.T.Skipf("this system starts no child with fewer rights: %v", err)
	}
	return commandtest.Outcome{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Stderr: stderr.String()}
}
