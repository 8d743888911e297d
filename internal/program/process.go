package program

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/settings"
)

// Environ returns an environment for primus: that of this process without what its user has set for
// primus, and with more variables.
func Environ(more ...string) []string {
	keep := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PRIMUS_") || strings.HasPrefix(v, "TE_FL_") || strings.HasPrefix(v, "TEFL_")
	})
	return slices.Concat(keep, []string{settings.EnvFile + "=none", "TEFL_LOG_LEVEL=INFO"}, more)
}

// Process is a program that was started. Tests have primustest.Program.
type Process struct {
	*exec.Cmd
	Log   primustest.Buffer // its standard error
	ended chan struct{}
}

// Start starts a program.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{Cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.Log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the state has the exit code
		close(p.ended)
	}()
	return p, nil
}

// Code returns the exit code of a program that has ended, -1 when a signal ended it.
func (p *Process) Code() int { return p.ProcessState.ExitCode() }

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Reach returns when the program has written some text, or has ended.
func (p *Process) Reach(text string) {
	for !p.Log.Contains(text) && p.Running() {
		time.Sleep(time.Millisecond)
	}
}

// Await returns when the program has ended. One that has not ended in time is told to print its
// goroutines and killed.
func (p *Process) Await(within time.Duration) error {
	select {
	case <-p.ended:
		return nil
	case <-time.After(within):
	}
	_ = p.Process.Signal(syscall.SIGQUIT) // it may have ended
	kill := time.AfterFunc(10*time.Second, p.Kill)
	defer kill.Stop()
	<-p.ended
	return fmt.Errorf("the process hangs:\n%s", p.Tail())
}

// Kill ends the program at once.
func (p *Process) Kill() {
	_ = p.Process.Kill() // it may have ended
	<-p.ended
}

// Tail returns the last lines that the program wrote, for errors.
func (p *Process) Tail() string {
	lines := strings.Split(strings.TrimSpace(p.Log.String()), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-12):], "\n    ")
}
