package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Settings say how a plugin runs in a child process.
type Settings struct {
	// Command starts this program so that it serves the file that follows as the
	// last argument.
	Command []string
	// Env is the environment of the child; nil stands for that of this process.
	Env []string
	// Timeout is how long the plugin may take to answer.
	Timeout time.Duration
}

// lifelineEnv tells a child which of its files ends when its parent does.
const lifelineEnv = "PRIMUS_PLUGIN_LIFELINE"

// firstExtraFile is the number of the first of cmd.ExtraFiles in a child.
const firstExtraFile = 3

// child is a process that runs code of a plugin.
type child struct {
	cmd      *exec.Cmd
	stderr   *tail
	lifeline *os.File // the child ends when this is closed
}

// newChild prepares a child with files that it finds from firstExtraFile+1 on. The
// child has a process group of its own, so that an interrupt from a terminal does not
// end it before this process.
func newChild(ctx context.Context, set Settings, path string, files ...*os.File) (*child, error) {
	if len(set.Command) == 0 {
		return nil, errors.New("sandbox: got no command, want the one that starts this program again")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c := &child{cmd: exec.CommandContext(ctx, set.Command[0], append(set.Command[1:len(set.Command):len(set.Command)], path)...), stderr: &tail{}, lifeline: ours}
	c.cmd.Env = set.Env
	if c.cmd.Env == nil {
		c.cmd.Env = os.Environ()
	}
	c.cmd.Env = append(c.cmd.Env[:len(c.cmd.Env):len(c.cmd.Env)], "GOTRACEBACK=none", lifelineEnv+"="+strconv.Itoa(firstExtraFile))
	c.cmd.ExtraFiles = append([]*os.File{theirs}, files...)
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = time.Second
	ownGroup(c.cmd)
	return c, nil
}

// start starts the child. wait or close has to follow.
func (c *child) start() error {
	defer c.cmd.ExtraFiles[0].Close()
	if err := c.cmd.Start(); err != nil {
		c.lifeline.Close()
		return fmt.Errorf("start a child process: %w", err)
	}
	return nil
}

// wait waits for the end of the child and of its output.
func (c *child) wait() error {
	defer c.lifeline.Close()
	return c.cmd.Wait()
}

// crash matches what Go prints when a signal ends a program whose code caused it.
var crash = regexp.MustCompile(`(?m)^(SIG[A-Z0-9]+): (.+)$`)

// death says how a child that was waited for has ended, and in what.
func (c *child) death() string { return c.ending() + in(step(c.stderr.String())) }

// ending says how a child that was waited for has ended.
func (c *child) ending() string {
	text := c.stderr.String()
	how := ""
	switch signal, found := endedBy(c.cmd.ProcessState), crash.FindStringSubmatch(text); {
	case signal != "":
		how = "it was ended by " + signal
	case found != nil:
		how = fmt.Sprintf("it crashed with %s (%s)", found[1], found[2])
	default:
		how = fmt.Sprintf("it ended its process with status %d", c.cmd.ProcessState.ExitCode())
		if line := lastLine(text); line != "" {
			how += fmt.Sprintf(" after the line %q", line)
		}
	}
	return how
}

// stepMark begins the lines on which a child says what it runs next.
const stepMark = "primus: runs "

// step returns what a child ran last, "" when it did not say.
func step(stderr string) string {
	at := strings.LastIndex(stderr, stepMark)
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(stderr[at+len(stepMark):], "\n")
	return name
}

func in(step string) string {
	if step == "" {
		return ""
	}
	return " in " + step
}

// lastLine returns the last line that did not come from a child's own code.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, stepMark) && !strings.HasPrefix(line, logMark) {
			last = line
		}
	}
	return strings.ToValidUTF8(last[:min(len(last), 200)], "?")
}

// watchLifeline ends this process when its parent has ended, whatever runs then.
func watchLifeline() {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return // started by hand
	}
	line := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, line)
		os.Exit(1)
	}()
}

// tail keeps the end of what is written to it and hands on whole lines.
type tail struct {
	line func(string) // nil drops them

	mu   sync.Mutex
	text []byte
	part []byte // of a line
}

const tailBytes = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], bytes.Clone(t.text[over:])...)
	}
	if t.line == nil {
		return len(p), nil
	}
	t.part = append(t.part, p...)
	for {
		line, rest, ended := bytes.Cut(t.part, []byte("\n"))
		if !ended && len(line) < tailBytes {
			return len(p), nil
		}
		t.line(string(line))
		t.part = append(t.part[:0], bytes.Clone(rest)...)
	}
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
