//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Exit codes of the role of a small disk. 0 means that the run continued to its end.
const (
	codeNoMount   = 3 // this machine allows no private mounts
	codeWrongEnd  = 4 // the full disk was not the error
	codeNotGoneOn = 5 // the run did not continue with more space
)

// onSmallDisk is the role. It mounts a small disk over the workspace and runs primus; when that
// ends with an error, it makes the disk larger and runs primus again. It then copies the content of
// the disk elsewhere, because the disk vanishes with the process.
func onSmallDisk(args []string) int {
	size, workspace, aside, args := args[0], args[1], args[2], args[3:]
	err := os.MkdirAll(workspace, 0o755)
	if err == nil {
		err = syscall.Mount("tmpfs", workspace, "tmpfs", 0, "size="+size)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return codeNoMount
	}
	if code, stderr := again(args); code != 0 {
		if !strings.Contains(stderr, "no space left on device") || !strings.Contains(stderr, workspace) {
			return codeWrongEnd
		}
		if err := syscall.Mount("", workspace, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return codeNoMount
		}
		if code, _ := again(args); code != 0 {
			return codeNotGoneOn
		}
	}
	if err := os.CopyFS(aside, os.DirFS(workspace)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// again runs primus in a process of its own.
func again(args []string) (code int, stderr string) {
	cmd := exec.Command(self(), args...)
	cmd.Env = cleanEnvironment()
	var text strings.Builder
	cmd.Stderr = &text
	err := cmd.Run()
	fmt.Fprint(os.Stderr, text.String())
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// fullDisk trains on a disk that becomes full at some write.
func fullDisk(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	workspace, aside := filepath.Join(l.dir, "ws"), filepath.Join(l.dir, "aside")
	size := fmt.Sprintf("%dk", 64+random.IntN(2600)) // the whole run needs about 2.2 MB
	args := append([]string{size, workspace, aside}, l.command()...)
	p, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args[:1], args...)
		cmd.Env = append(cmd.Env, roleVariable+"="+roleSmallDisk)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errSkip, err)
	}
	code, err := p.wait()
	switch {
	case err != nil:
		return 1, err
	case code == codeNoMount:
		return 0, fmt.Errorf("%w: this machine allows no private mounts: %s", errSkip, p.Tail())
	case code == codeWrongEnd:
		return 1, fmt.Errorf("on a disk of %s the run ends, and not because that is full\n%s", size, p.Tail())
	case code != 0:
		return 1, fmt.Errorf("after a full disk of %s: exit code %d\n%s", size, code, p.Tail())
	}
	return 1, errors.Join(os.RemoveAll(workspace), os.Rename(aside, workspace), l.endsAsUndisturbed(ctx))
}
