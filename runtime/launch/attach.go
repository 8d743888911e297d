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
)

// Command is a program that does the work of this one elsewhere, such as srun or docker.
type Command struct {
	Argv     []string
	Environ  []string
	Dir      string
	Out, Err io.Writer
	Grace    time.Duration // between the signal that ends it and the one that kills it
}

// Attach runs a command to its end. When ctx ends, the command gets SIGTERM, which srun and docker
// pass on, and the cause of ctx is the error. A command that fails is an *ExitError.
func Attach(ctx context.Context, c Command) error {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Environ, c.Dir, c.Out, c.Err
	cmd.SysProcAttr = groupAttr(0, syscall.SIGTERM)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.Grace
	// The kernel sends the signal of groupAttr when the thread ends that started the command.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code := exit.ExitCode()
		if s, signaled := endedBy(exit.ProcessState); signaled {
			code = 128 + int(s)
		}
		return &ExitError{Program: c.Argv[0], Code: code}
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	return nil
}

// ExitError is the failure of a command whose own output says what went wrong.
type ExitError struct {
	Program string
	Code    int // with which it exited; 128 and the signal for one that a signal ended
}

// Error names the command and its exit code.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s exited with %d, for the reason that it gives above", e.Program[strings.LastIndex(e.Program, "/")+1:], e.Code)
}

// ExitCode is what a program exits with that ends because of this failure.
func (e *ExitError) ExitCode() int { return e.Code }
