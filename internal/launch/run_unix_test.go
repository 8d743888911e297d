//go:build unix

package launch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childMode is the variable that makes this test binary a rank of a job. It names a file that ranks
// may write for each other.
const childMode = "PRIMUS_TEST_LAUNCH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "" {
		os.Exit(child(os.Args[1]))
	}
	primustest.EndChildren()
	os.Exit(m.Run())
}

// child is a rank that does what its argument says.
func child(mode string) int {
	rank, world := os.Getenv("RANK"), os.Getenv("WORLD_SIZE")
	signals := make(chan os.Signal, 1)
	switch mode {
	case "talk":
		fmt.Printf("rank %s of %s\npart", rank, world)
		fmt.Fprintf(os.Stderr, "ial\n")
		fmt.Print("no newline at the end")
		return 0
	case "raise":
		if rank != "1" {
			time.Sleep(time.Minute)
		}
		fmt.Println("Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\nValueError: no data\nby the way")
		return 3
	case "late": // rank 1 raises, and its peer ends first
		if rank == "1" {
			fmt.Println("Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\nValueError: no data")
			_ = os.WriteFile(os.Getenv(childMode), nil, 0o600)
			time.Sleep(time.Minute)
		}
		for _, err := os.Stat(os.Getenv(childMode)); err != nil; _, err = os.Stat(os.Getenv(childMode)) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		fmt.Println("Traceback (most recent call last):\n  File \"train.py\", line 2, in <module>\nRuntimeError: connection closed by peer")
		return 1
	case "killed":
		if rank == "1" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		time.Sleep(time.Minute)
	case "polite", "stubborn":
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		fmt.Println("ready")
		for s := range signals {
			fmt.Println("got", s)
			if mode == "polite" {
				return 0
			}
		}
	case "silent":
		fmt.Println("started", os.Getpid())
		_ = os.WriteFile(started(rank), nil, 0o600)
		time.Sleep(time.Minute)
	case "parent", "family": // of processes that keep the output open, one of them in a session of its own
		signal.Ignore(os.Interrupt, syscall.SIGTERM) // and so do they
		for _, session := range []bool{false, true} {
			cmd := exec.Command("sleep", "60")
			cmd.Stdout, cmd.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: session}
			if err := cmd.Start(); err != nil {
				return 1
			}
			fmt.Println("child", cmd.Process.Pid)
		}
		if mode == "family" {
			fmt.Println("child", os.Getpid())
			time.Sleep(time.Minute)
		}
	case "-m": // torchrun
		rank := os.Args[slices.Index(os.Args, "--no_python")+1:]
		for local := range 2 {
			cmd := exec.Command(rank[0], rank[1:]...)
			for i, arg := range cmd.Args { // as Python's string.Template does
				cmd.Args[i] = strings.ReplaceAll(arg, "$$", "$")
			}
			cmd.Env = append(os.Environ(), fmt.Sprint("RANK=", 2+local), "WORLD_SIZE=4")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as that of PyTorch 2 does
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if cmd.Start() != nil {
				return 1
			}
			if rank[len(rank)-1] != "silent" {
				_ = cmd.Wait()
				continue
			}
			for _, err := os.Stat(started(fmt.Sprint(2 + local))); err != nil; _, err = os.Stat(started(fmt.Sprint(2 + local))) {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if rank[len(rank)-1] == "silent" {
			return 0 // its ranks outlive it
		}
		fmt.Println("E1122 failed\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026\n  rank      : 3 (local_rank: 1)\n  exitcode  : -11 (pid: 7086)")
		return 1
	case "launcher": // runs a job and is killed
		dir := os.Args[2]
		plan, err := launch.NewPlan(launch.Job{Program: []string{"family"}, PerDevice: true, LogDir: dir}, options(2))
		if err != nil {
			return 1
		}
		_ = launch.Run(context.Background(), plan, launch.Settings{})
	}
	return 0
}

// started names the file that a silent rank writes once it has said that it has started.
func started(rank string) string { return os.Getenv(childMode) + "-" + rank }

func options(ranks int) launch.Options {
	o, err := launch.Options{Python: os.Args[0], PerNode: ranks, Ranks: "all", Grace: 10 * time.Second}.Resolve(
		func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err)
	}
	return o
}

// lines are what a job shows.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) show(who, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, who+": "+line)
}

// run runs two ranks in a mode.
func run(ctx context.Context, t *testing.T, mode string, change func(*launch.Options)) (*lines, string, error) {
	t.Helper()
	t.Setenv(childMode, filepath.Join(t.TempDir(), "raised"))
	dir := t.TempDir()
	o := options(2)
	if change != nil {
		change(&o)
	}
	plan, err := launch.NewPlan(launch.Job{Program: []string{mode}, PerDevice: true, LogDir: dir}, o)
	require.NoError(t, err)
	var shown lines
	err = launch.Run(ctx, plan, launch.Settings{Show: shown.show})
	return &shown, dir, err
}

func TestRunPartsLinesByRank(t *testing.T) {
	shown, dir, err := run(t.Context(), t, "talk", func(o *launch.Options) { o.Ranks = "last" })
	require.NoError(t, err)
	for rank := range 2 {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank)))
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("rank %d of 2\npartial\nno newline at the end\n", rank), string(text))
	}
	assert.Equal(t, []string{"rank 1: rank 1 of 2", "rank 1: partial", "rank 1: no newline at the end"}, shown.text)
}

func TestRunStartsRanksAfterOthersHaveEnded(t *testing.T) {
	path, err := exec.LookPath("true")
	require.NoError(t, err)
	o := options(64)
	o.Python = path
	for range 5 {
		plan, err := launch.NewPlan(launch.Job{Program: []string{"-"}, PerDevice: true, LogDir: t.TempDir()}, o)
		require.NoError(t, err)
		require.NoError(t, launch.Run(t.Context(), plan, launch.Settings{}))
	}
}

// The file of a rank is not another one under that name.
func TestRunFollowsNoLinks(t *testing.T) {
	path, err := exec.LookPath("echo")
	require.NoError(t, err)
	dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("mine\n"), 0o600))
	require.NoError(t, os.Symlink(precious, filepath.Join(dir, "rank-0.log")))
	o := options(1)
	o.Python = path
	plan, err := launch.NewPlan(launch.Job{Program: []string{"-"}, PerDevice: true, LogDir: dir}, o)
	require.NoError(t, err)
	require.ErrorContains(t, launch.Run(t.Context(), plan, launch.Settings{}), "rank-0.log is a symbolic link, want a regular file")
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "mine\n", string(text))
}

func TestRunEndsWithTheFirstFailure(t *testing.T) {
	begin := time.Now()
	_, dir, err := run(t.Context(), t, "raise", nil)
	var failure *launch.Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 1, failure.Rank)
	assert.Equal(t, 3, failure.ExitCode())
	assert.Equal(t, "ValueError: no data", failure.Cause())
	assert.ErrorContains(t, err, "rank 1 exited with 3: ValueError: no data\nits last lines (all are in "+filepath.Join(dir, "rank-1.log")+"):")
	assert.ErrorContains(t, err, "  | by the way")
	assert.Less(t, time.Since(begin), 45*time.Second, "the other rank is ended")
}

// A rank that ends because its peer has raised an exception is not the cause.
func TestRunNamesTheRankThatRaisedFirst(t *testing.T) {
	_, _, err := run(t.Context(), t, "late", nil)
	var failure *launch.Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 1, failure.Rank)
	assert.Equal(t, "ValueError: no data", failure.Cause())
	assert.Equal(t, 1, failure.ExitCode())
}

func torchrunOfNode1(o *launch.Options) { o.Launcher, o.Nodes, o.NodeRank = launch.Torchrun, 2, 1 }

func TestRunReadsTheRanksOfTorchrun(t *testing.T) {
	shown, dir, err := run(t.Context(), t, "talk", torchrunOfNode1)
	assert.ErrorContains(t, err, "rank 3 was ended by signal 11 (segmentation fault)")
	assert.ErrorContains(t, err, "  | no newline at the end")
	var failure *launch.Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 139, failure.ExitCode())
	text, readErr := os.ReadFile(filepath.Join(dir, "rank-2.log"))
	require.NoError(t, readErr)
	assert.Equal(t, "rank 2 of 4\npartial\nno newline at the end\n", string(text))
	assert.Contains(t, shown.text, "torchrun: E1122 failed")
	assert.Contains(t, shown.text, "rank 3: rank 3 of 4")
	assert.NotContains(t, strings.Join(shown.text, "\n"), "primus: process", "that line is for the launcher")
	left, err := filepath.Glob(filepath.Join(dir, "pipe-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the pipes are removed")
}

// torchrun that ends without its ranks, which are in sessions of their own, leaves nothing.
func TestRunEndsWhatTorchrunLeaves(t *testing.T) {
	pids := map[string]bool{}
	shown, _, err := run(t.Context(), t, "silent", torchrunOfNode1)
	require.NoError(t, err)
	for _, line := range shown.text {
		if _, pid, ok := strings.Cut(line, "started "); ok {
			pids[pid] = true
		}
	}
	require.Len(t, pids, 2)
	for text := range pids {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return gone(pid) }, 2*time.Minute, 10*time.Millisecond)
	}
}

func TestRunNamesTheSignalOfAKilledRank(t *testing.T) {
	_, _, err := run(t.Context(), t, "killed", nil)
	var failure *launch.Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 1, failure.Rank)
	assert.Equal(t, 137, failure.ExitCode())
	assert.EqualError(t, err, "rank 1 was ended by signal 9 (killed)")
}

// stopped is the cause of a context that a signal ended.
type stopped syscall.Signal

func (s stopped) Error() string          { return "stopped" }
func (s stopped) Signal() syscall.Signal { return syscall.Signal(s) }

func TestRunForwardsTheSignalOnce(t *testing.T) {
	for _, tt := range []struct {
		mode  string
		cause error
		want  string
		grace time.Duration
	}{
		{"polite", nil, "got interrupt", time.Minute},
		{"polite", stopped(syscall.SIGTERM), "got terminated", time.Minute},
		{"stubborn", errors.New("the service"), "got terminated", 100 * time.Millisecond},
	} {
		t.Run(tt.mode+" "+tt.want, func(t *testing.T) {
			t.Setenv(childMode, "1")
			o := options(2)
			o.Grace = tt.grace
			plan, err := launch.NewPlan(launch.Job{Program: []string{tt.mode}, PerDevice: true, LogDir: t.TempDir()}, o)
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			var shown lines
			ready := 0
			err = launch.Run(ctx, plan, launch.Settings{Show: shown.show, Line: func(_ int, line string) bool {
				if ready++; line == "ready" && ready == 2 {
					cancel(tt.cause)
				}
				return line == "ready"
			}})
			if tt.cause == nil {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorIs(t, err, tt.cause)
			}
			assert.Equal(t, 1, strings.Count(strings.Join(shown.text, "\n"), "rank 0: "+tt.want), "the signal comes once: %q", shown.text)
		})
	}
}

func TestAttach(t *testing.T) {
	t.Setenv(childMode, "1")
	attach := func(ctx context.Context, mode string, grace time.Duration, out io.Writer) error {
		return launch.Attach(ctx, launch.Command{Argv: []string{os.Args[0], mode}, Environ: os.Environ(), Out: out, Err: out, Grace: grace})
	}
	var out strings.Builder
	require.NoError(t, attach(t.Context(), "talk", time.Minute, &out))
	assert.Contains(t, out.String(), "partial")
	t.Setenv("RANK", "1")
	err := attach(t.Context(), "raise", time.Minute, io.Discard)
	var exit *launch.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
	require.ErrorAs(t, attach(t.Context(), "killed", time.Minute, io.Discard), &exit)
	assert.Equal(t, 137, exit.ExitCode())
	require.ErrorContains(t, launch.Attach(t.Context(), launch.Command{Argv: []string{"no-such-program"}}), "start no-such-program: ")

	for mode, want := range map[string]string{"polite": "ready\ngot terminated\n", "stubborn": "ready\ngot terminated\n"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		text := &watched{found: func() { cancel(stopped(syscall.SIGINT)) }}
		grace := time.Minute
		if mode == "stubborn" {
			grace = 200 * time.Millisecond
		}
		require.ErrorIs(t, attach(ctx, mode, grace, text), stopped(syscall.SIGINT))
		assert.Equal(t, want, text.String(), mode)
	}
}

// watched is a text of which found is told once there is some.
type watched struct {
	strings.Builder
	found func()
}

func (w *watched) Write(p []byte) (int, error) {
	defer w.found()
	return w.Builder.Write(p)
}

func TestRunEndsAHang(t *testing.T) {
	_, dir, err := run(t.Context(), t, "silent", func(o *launch.Options) {
		o.Hang, o.HangEnds, o.HangCommand = 300*time.Millisecond, true, `for pid in $PRIMUS_RANK_PIDS; do kill -0 $pid && echo rank $pid; done; exit 3`
	})
	require.ErrorContains(t, err, "no rank has written a line for 300ms (--hang-timeout), so the job was ended (--on-hang abort)")
	assert.ErrorContains(t, err, "goroutine", "the last lines are where the rank was")
	text, err := os.ReadFile(filepath.Join(dir, "hang.log"))
	require.NoError(t, err)
	assert.Regexp(t, `^rank \d+\nrank \d+\n$`, string(text))
}

// However a job ends, nothing of what its ranks have started is left.
func TestRunEndsWhatItsProcessesHaveStarted(t *testing.T) {
	t.Run("done", func(t *testing.T) {
		_, dir, err := run(t.Context(), t, "parent", nil)
		require.NoError(t, err)
		allGone(t, dir, 4)
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Setenv(childMode, "1")
		o, dir := options(2), t.TempDir()
		o.Grace = 100 * time.Millisecond
		plan, err := launch.NewPlan(launch.Job{Program: []string{"family"}, PerDevice: true, LogDir: dir}, o)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		children := 0
		err = launch.Run(ctx, plan, launch.Settings{Line: func(_ int, line string) bool {
			if children++; children == 6 {
				cancel()
			}
			return true
		}})
		require.ErrorIs(t, err, context.Canceled)
		allGone(t, dir, 6)
	})
}

// children returns the processes that the ranks of a job have named so far.
func children(t *testing.T, dir string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "rank-*.log"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if number, ok := strings.CutPrefix(strings.TrimSpace(line), "child "); ok && strings.HasSuffix(line, "\n") {
				pid, err := strconv.Atoi(number)
				require.NoError(t, err)
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func allGone(t *testing.T, dir string, want int) {
	t.Helper()
	pids := children(t, dir)
	assert.Len(t, pids, want)
	for _, pid := range pids {
		assert.Eventually(t, func() bool { return gone(pid) }, 2*time.Minute, 10*time.Millisecond)
	}
}

// gone reports whether a process has ended; one that nobody has waited for yet has.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(text), ") Z ")
}

func TestRunWithoutTheProgram(t *testing.T) {
	_, _, err := run(t.Context(), t, "talk", func(o *launch.Options) { o.Python = "no-such-python" })
	assert.ErrorContains(t, err, `start rank 0: exec: "no-such-python": executable file not found`)
}

func TestRunRemovesTemporaryFiles(t *testing.T) {
	t.Setenv(childMode, "1")
	dir := t.TempDir()
	files := []launch.File{{Path: filepath.Join(dir, "sub", "a"), Content: "x"}, {Path: filepath.Join(dir, "b"), Content: "y", Temporary: true}}
	plan, err := launch.NewPlan(launch.Job{Program: []string{"raise"}, PerDevice: true, LogDir: dir, Files: files}, options(2))
	require.NoError(t, err)
	require.Error(t, launch.Run(t.Context(), plan, launch.Settings{}))
	info, err := os.Stat(files[0].Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.NoFileExists(t, files[1].Path)
}
