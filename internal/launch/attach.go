package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"github.com/primus-fl/primus/internal/procgroup"
)

// Command is a program that runs primus elsewhere, such as srun or docker.
type Command struct {
	Argv     []string
	Environ  []string
	Dir      string
	Out, Err io.Writer
	Grace    time.Duration // time between the signal that asks it to end and the one that kills it
}

// Attach runs a command until it ends. When ctx ends, Attach sends SIGTERM to the command, which
// srun and docker pass on, and returns the cause of ctx. If the command fails, the error is an
// *ExitError.
func Attach(ctx context.Context, c Command) error {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Environ, c.Dir, c.Out, c.Err
	cmd.SysProcAttr = procgroup.Attr(0, syscall.SIGTERM)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.Grace
	// The kernel sends the signal of the group when the thread that started the command ends.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code := exit.ExitCode()
		if s, signaled := procgroup.EndedBy(exit.ProcessState); signaled {
			code = 128 + int(s)
		}
		return &ExitError{Program: c.Argv[0], Code: code}
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	return nil
}

// ExitError is the failure of a command that has printed the reason itself.
type ExitError struct {
	Program string
	Code    int // exit code, or 128 plus the number of the signal that ended it
}

// Error names the command and its exit code.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s exited with %d, for the reason that it gives above", e.Program[strings.LastIndex(e.Program, "/")+1:], e.Code)
}

// ExitCode returns the exit code for a program that ends because of this failure.
func (e *ExitError) ExitCode() int { return e.Code }
