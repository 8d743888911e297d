package primustest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Program is a child process whose output a test reads while it runs. It ends with the test.
type Program struct {
	*exec.Cmd
	// Log has what the process writes to its standard error, and to its standard output unless
	// Stdout says otherwise.
	Log Buffer
	// Dir is a folder in which the process writes. Like what it prints, that shows that it goes on.
	Dir string

	t     testing.TB
	ended chan struct{}
	err   error
}

// NewProgram prepares a process, which Start or Run starts.
func NewProgram(t testing.TB, cmd *exec.Cmd) *Program {
	return &Program{Cmd: cmd, t: t, ended: make(chan struct{})}
}

// Start starts the process.
func (p *Program) Start() error {
	if p.Stdout == nil {
		p.Stdout = &p.Log
	}
	if p.Stderr == nil {
		p.Stderr = &p.Log
	}
	EndChildren()
	p.Env = append(p.Environ(), childrenVariable+"="+os.Getenv(childrenVariable))
	if err := p.Cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.Cmd.Wait()
		close(p.ended)
	}()
	p.t.Cleanup(func() {
		select {
		case <-p.ended:
			return
		default:
		}
		end := p.Cancel
		if end == nil {
			end = p.Process.Kill
		}
		_ = end() // it may have ended by now
		<-p.ended
	})
	return nil
}

// Run starts the process and waits for its end.
func (p *Program) Run() error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Wait()
}

// Wait waits for the end of the process and returns its error.
func (p *Program) Wait() error {
	p.t.Helper()
	p.await("the end of the process", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	return p.err
}

// WaitFor returns when the process has written some text.
func (p *Program) WaitFor(text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the text %q", text), func() bool { return p.Log.Contains(text) })
}

// WaitUntil returns when something has come true that the process causes.
func (p *Program) WaitUntil(what string, until func() bool) {
	p.t.Helper()
	p.await(what, until)
}

func (p *Program) await(what string, until func() bool) {
	p.t.Helper()
	Wait{What: what, Until: until, Ended: p.ended, Progress: p.progress, Report: p.report}.Do(p.t)
}

// progress returns the size of what the process has written.
func (p *Program) progress() int64 {
	n := int64(p.Log.Len())
	if p.Dir != "" {
		_ = filepath.WalkDir(p.Dir, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				if info, err := entry.Info(); err == nil {
					n += info.Size() + info.ModTime().UnixNano()
				}
			}
			return nil // files come and go
		})
	}
	return n
}

// report returns what the process has written, and where its goroutines and those of its children
// are if it has not ended.
func (p *Program) report() string {
	text := fmt.Sprintf("%s has written:\n%s", filepath.Base(p.Path), tail(p.Log.String()))
	select {
	case <-p.ended:
		return fmt.Sprintf("%s\nand has ended: %v", text, p.err)
	default:
	}
	seen := p.Log.Len()
	for _, pid := range family(p.Process.Pid) {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Signal(syscall.SIGQUIT) // a Go program prints its goroutines
		}
	}
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	return text + "\nIt goes on, here:\n" + tail(p.Log.String()[seen:])
}

// tail returns the end of a text.
func tail(text string) string {
	const most = 64 << 10
	if len(text) > most {
		return "...\n" + text[len(text)-most:]
	}
	return text
}
