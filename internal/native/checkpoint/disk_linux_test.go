package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
)

// inNamespace runs a role in a child with mounts of its own, which vanish with
// it. It skips the test where the system forbids that.
func inNamespace(t *testing.T, role string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if exit, ran := errors.AsType[*exec.ExitError](err); err != nil && (!ran || strings.Contains(string(out), noMount)) {
		t.Skipf("this system allows no private mounts: %v %s", exit, out)
	}
	require.NoError(t, err, "%s", out)
}

const noMount = "mount a small disk"

func mount(dir, options string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	return nil
}

// fullDisk saves to a disk that has room for one checkpoint but not for two.
func fullDisk(dir string) error {
	if err := mount(dir, "size=256k"); err != nil {
		return err
	}
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{})
	if err != nil {
		return err
	}
	if _, err := s.Save(1, saveState(1)); err != nil {
		return err
	}
	_, err = s.Save(2, saveState(2))
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("a save to a full disk gave %w", err)
	}
	for _, want := range []string{"save step 2", dir, "free space on this disk"} {
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("no %q in: %w", want, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+durable.TempMark+"*")); err != nil || len(left) != 0 {
		return fmt.Errorf("the failed save left %v, %w", left, err)
	}
	return intact(s)
}

// readOnly saves to a disk that was mounted read-only after the first save.
func readOnly(dir string) error {
	if err := mount(dir, "size=1m"); err != nil {
		return err
	}
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{})
	if err != nil {
		return err
	}
	if _, err := s.Save(1, saveState(1)); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	_, err = s.Save(2, saveState(2))
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "mounted read-only") {
		return fmt.Errorf("a save to a read-only disk gave %w", err)
	}
	return intact(s)
}

func intact(s *checkpoint.Store) error {
	c, warnings, err := s.Latest()
	if err != nil || len(warnings) != 0 || c.Step() != 1 {
		return fmt.Errorf("the earlier checkpoint is gone: %v, %w", warnings, err)
	}
	return checkState(c)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	inNamespace(t, "full_disk")
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	inNamespace(t, "read_only")
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := newStore(t, filepath.Join(file, "checkpoints")).Save(1, saveState(1))
	require.ErrorIs(t, err, syscall.ENOTDIR)
	assert.ErrorContains(t, err, "a part of the path is a file")

	if os.Geteuid() == 0 {
		return // root writes everywhere
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	_, err = newStore(t, filepath.Join(dir, "checkpoints")).Save(1, saveState(1))
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "check the owner")
}
