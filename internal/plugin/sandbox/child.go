package sandbox

import (
	"bytes"
	"cmp"
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

	"github.com/primus-fl/primus/internal/plaintext"
)

// Settings say how a plugin runs in a child process.
type Settings struct {
	// Command starts this program as a child; the path of the plugin is appended to it.
	Command []string
	// Env is the environment of the child; nil means that of this process.
	Env []string
	// Timeout is how long the plugin may take to answer.
	Timeout time.Duration
}

// lifelineEnv tells a child the number of the file that closes when its parent ends.
const lifelineEnv = "PRIMUS_PLUGIN_LIFELINE"

// keptEnv is set in the child of a keeper.
const keptEnv = "PRIMUS_PLUGIN_KEPT"

// Variables are those that the environment of a child has and that of another process has not.
func Variables() []string { return []string{lifelineEnv, keptEnv, "GOTRACEBACK"} }

// firstExtraFile is the number that the first of cmd.ExtraFiles has in a child.
const firstExtraFile = 3

// cleanupLimit is how long the keeper of a child may take to end processes that multiply.
const cleanupLimit = 5 * time.Second

// child is a process that runs code of a plugin.
type child struct {
	cmd      *exec.Cmd
	stderr   *listener
	lifeline *os.File // the child ends when this is closed
}

// newChild prepares a child that gets the files from number firstExtraFile+1 on. The child has its
// own process group, so an interrupt from a terminal does not end it before this process.
func newChild(ctx context.Context, set Settings, path string, files ...*os.File) (*child, error) {
	if len(set.Command) == 0 {
		return nil, errors.New("sandbox: given no command, want the one that starts this program again")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c := &child{cmd: exec.CommandContext(ctx, set.Command[0], append(set.Command[1:len(set.Command):len(set.Command)], path)...), stderr: &listener{}, lifeline: ours}
	c.cmd.Env = set.Env
	if c.cmd.Env == nil {
		c.cmd.Env = os.Environ()
	}
	c.cmd.Env = append(c.cmd.Env[:len(c.cmd.Env):len(c.cmd.Env)], "GOTRACEBACK=none", lifelineEnv+"="+strconv.Itoa(firstExtraFile))
	c.cmd.ExtraFiles = append([]*os.File{theirs}, files...)
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = cleanupLimit + 5*time.Second // longer than a keeper takes, which must not be killed before it is done
	ownGroup(c.cmd)
	return c, nil
}

// start starts the child. The caller must call wait or close afterwards.
func (c *child) start() error {
	defer c.cmd.ExtraFiles[0].Close()
	if err := c.cmd.Start(); err != nil {
		c.lifeline.Close()
		return fmt.Errorf("start a child process: %w", err)
	}
	return nil
}

// wait waits until the child and its output have ended.
func (c *child) wait() error {
	defer c.lifeline.Close()
	defer c.stderr.end()
	return c.cmd.Wait()
}

// crash matches what Go prints when a signal ends a program whose code caused it.
var crash = regexp.MustCompile(`^(SIG[A-Z0-9]+): (.+)$`)

// death says how a child has ended after wait, and in which step.
func (c *child) death() string { return c.ending() + in(c.stderr.step()) }

// ending says how a child has ended after wait.
func (c *child) ending() string {
	switch signal, said := endedBy(c.cmd.ProcessState), c.stderr; {
	case signal != "" || said.ended != "":
		return "it was ended by " + cmp.Or(said.ended, signal)
	case said.crash != nil:
		return fmt.Sprintf("it crashed with %s (%s)", said.crash[1], plaintext.Text(said.crash[2]))
	case said.last != "":
		return fmt.Sprintf("it ended its process with status %d after the line %q", c.cmd.ProcessState.ExitCode(), said.last)
	default:
		return fmt.Sprintf("it ended its process with status %d", c.cmd.ProcessState.ExitCode())
	}
}

func in(step string) string {
	if step == "" {
		return ""
	}
	return " in " + step
}

// enterChild is the first call of a child that was given a number of files.
func enterChild(files int) {
	keep(files)
	watchLifeline()
}

// watchLifeline ends this process when its parent has ended.
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

// Marks begin the lines that this package prints, unlike those from the code of a plugin.
const (
	stepMark = "primus: runs "                // what a child runs next
	endMark  = "primus: was ended by "        // the signal that ended the child of a keeper
	leftMark = "primus: processes left over " // number of processes that a keeper has ended
)

// announceStep tells the host what runs next.
func announceStep(name string) { fmt.Fprintf(os.Stderr, "%s%s\n", stepMark, name) }

// listener splits the standard error of a child into lines. It keeps the lines that say how the
// child has ended, however much Go prints about a crash.
type listener struct {
	line func(string) // is called with each line; nil drops them

	mu    sync.Mutex
	part  []byte   // of a line
	runs  string   // the last step
	crash []string // the first line that crash matches
	last  string   // the last line that did not come from a child's own code
	ended string   // the signal that ended the child of a keeper
	left  int      // processes that a keeper has ended
}

const (
	maxLine   = 16 << 10
	maxQuoted = 200
	maxStep   = 1 << 10
)

// Write implements io.Writer.
func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		line, rest, ended := bytes.Cut(l.part, []byte("\n"))
		if !ended && len(line) < maxLine {
			return len(p), nil
		}
		l.take(string(line))
		l.part = append(l.part[:0], bytes.Clone(rest)...)
	}
}

// end treats the rest of the output of a child that has ended as a line.
func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.take(string(l.part))
		l.part = nil
	}
}

func (l *listener) take(line string) {
	text := strings.TrimSpace(line)
	if name, ok := strings.CutPrefix(line, stepMark); ok {
		l.runs = plaintext.Text(name[:min(len(name), maxStep)])
	} else if signal, ok := strings.CutPrefix(line, endMark); ok {
		l.ended = plaintext.Text(signal[:min(len(signal), maxQuoted)])
	} else if n, ok := strings.CutPrefix(line, leftMark); ok {
		l.left, _ = strconv.Atoi(n)
	} else if text != "" && !strings.HasPrefix(line, logMark) {
		l.last = strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "?") // quoted when it is printed
	}
	if l.crash == nil {
		l.crash = crash.FindStringSubmatch(line)
	}
	if l.line != nil {
		l.line(line)
	}
}

// step returns the last step of a child, "" if it did not announce any.
func (l *listener) step() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs
}
