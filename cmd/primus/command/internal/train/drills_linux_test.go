package train_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endless are arguments of a run that does not end by itself.
var endless = []string{"train_iters=1000000", "lr_decay_iters=1000", "log_interval=1000000", "exp_name=exp", "--threads", "1"}

// place returns the variables with which two ranks of this machine meet.
func place(rank int, host, port string) []string {
	return []string{"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=" + host, "MASTER_PORT=" + port}
}

// fails waits for a job, which has to fail long before a collective gives up.
func (j *job) fails(t *testing.T) {
	t.Helper()
	assert.Error(t, j.Wait())
}

// lastLine returns the last line that a job has written.
func (j *job) lastLine() string {
	lines := strings.Split(strings.TrimSpace(j.Log.String()), "\n")
	return lines[len(lines)-1]
}

// system runs a command of the system.
func system(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return &systemError{strings.Join(append([]string{name}, args...), " "), string(out), err}
	}
	return nil
}

type systemError struct {
	line, out string
	err       error
}

func (e *systemError) Error() string { return e.line + ": " + e.err.Error() + ": " + e.out }

// networks makes two network namespaces with a cable between them, and skips the test where that is
// not possible. It returns their names, and the function that cuts the cable.
func networks(t *testing.T) (names [2]string, cut func()) {
	t.Helper()
	commandtest.Tools(t, "ip", "unshare")
	id := "p" + strconv.Itoa(os.Getpid()%100000)
	var ends [2]string
	for i := range names {
		names[i], ends[i] = id+"-"+strconv.Itoa(i), id+"v"+strconv.Itoa(i)
	}
	for _, name := range names {
		if err := system("ip", "netns", "add", name); err != nil {
			t.Skipf("this machine allows no network namespaces: %v", err)
		}
		t.Cleanup(func() { _ = system("ip", "netns", "delete", name) })
	}
	if err := system("ip", "link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1]); err != nil {
		t.Skipf("this machine allows no pairs of network devices: %v", err)
	}
	for i, name := range names {
		require.NoError(t, system("ip", "-n", name, "address", "add", "10.77.0."+strconv.Itoa(i+1)+"/24", "dev", ends[i]))
		require.NoError(t, system("ip", "-n", name, "link", "set", ends[i], "up"))
		require.NoError(t, system("ip", "-n", name, "link", "set", "lo", "up"))
	}
	return names, func() { require.NoError(t, system("ip", "-n", names[1], "link", "set", ends[1], "down")) }
}

// A rank that loses its network ends the job on both sides, which say what they saw.
func TestPartition(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	needMPICH(t)
	names, cut := networks(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	var ranks []*job
	for rank, name := range names {
		env := append(place(rank, "10.77.0.1", port), "UCX_TLS=^cma") // a read from a process that has ended is fatal to UCX
		child := commandtest.Child(t.Context(), env, l.Args(endless...)...)
		line := append([]string{"netns", "exec", name, "unshare", "--uts", "sh", "-c", `hostname "$0"; exec "$@"`, name}, child.Args...)
		j := &job{l.Program(exec.CommandContext(t.Context(), "ip", line...))}
		j.Env = child.Env
		require.NoError(t, j.Start())
		ranks = append(ranks, j)
	}
	ranks[0].WaitFor("step 1/")
	cut()
	for rank, j := range ranks {
		j.fails(t)
		assert.Contains(t, j.Log.String(), "rank "+strconv.Itoa(1-rank)+" is gone")
	}
}

// A disk that fills up under one rank ends the other one, too.
func TestFullDiskOfARank(t *testing.T) {
	needMPICH(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	args := append([]string{"save_interval=1", "num_layers=2"}, endless...)
	env := append(place(0, "127.0.0.1", port), commandtest.RoleEnv+"="+roleFullDisk)
	full := &job{l.Program(commandtest.Child(t.Context(), env, append([]string{l.Workspace}, l.Args(args...)...)...))}
	full.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if err := full.Start(); err != nil {
		t.Skipf("this system allows no private mounts: %v", err)
	}
	other := start(t, l, place(1, "127.0.0.1", port), args...)
	full.fails(t)
	if strings.Contains(full.Log.String(), noMount) {
		require.NoError(t, other.Process.Kill())
		_ = other.Wait()
		t.Skip(full.Log.String())
	}
	other.fails(t)
	assert.Contains(t, full.Log.String(), "rank 0 of 2: ")
	assert.Contains(t, full.Log.String(), "no space left on device")
	assert.Contains(t, other.lastLine(), "rank 0 is gone")
}

// Ranks that run different programs train nothing.
func TestDifferentPrograms(t *testing.T) {
	needMPICH(t)
	l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, append(program, 0), 0o755)) // it behaves as before
	var ranks []*job
	for rank := range 2 {
		j := &job{l.Program(commandtest.Child(t.Context(), place(rank, "127.0.0.1", port), l.Args("train_iters=2")...))}
		if rank == 1 {
			j.Path = other
		}
		require.NoError(t, j.Start())
		ranks = append(ranks, j)
	}
	for _, j := range ranks {
		j.fails(t)
		assert.Regexp(t, `rank 1 differs from rank 0, so nothing was trained: program \(SHA-256 of its file\): given [0-9a-f]{16}, want [0-9a-f]{16}`, j.Log.String())
	}
}

// Without the library nothing is trained, and the error says what is missing.
func TestMissingLibrary(t *testing.T) {
	l := commandtest.NewLab(t)
	j := start(t, l, []string{"PRIMUS_MPI=/nowhere/libmpi.so"}, "--nproc", "2", "train_iters=2")
	j.fails(t)
	assert.Contains(t, j.Log.String(), "/nowhere/libmpi.so")
	assert.Contains(t, j.Log.String(), "cannot reach each other")
	assert.NoFileExists(t, l.Path("metrics.jsonl"))
}

// Under a launcher of MPI, too, a rank that hangs, or does not come to where the others wait, ends
// the job, and the others name it.
func TestHangingRank(t *testing.T) {
	for name, tt := range map[string]struct {
		launcher string
		rank     int
		args     []string
		want     string
	}{
		"last":    {"openmpi", 1, nil, "the run cannot go on: rank 1 is gone: nothing was heard of it for 15s"},
		"first":   {"mpich", 0, nil, "the run cannot go on: rank 0 is gone: nothing was heard of it for 15s"},
		"waiting": {"openmpi", 1, []string{"distributed_timeout_minutes=0.1"}, `the run cannot go on: .*rank 1 (hangs|does not answer).*distributed_timeout_minutes`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			j := newJob(t, l, tt.launcher, slices.Concat([]string{"2"}, endless, tt.args))
			j.started(t)
			require.NoError(t, syscall.Kill(j.process(t, mpiLaunchers[tt.launcher].rank, tt.rank), syscall.SIGSTOP))
			j.fails(t)
			assert.Regexp(t, tt.want, j.Log.String())
		})
	}
}

// A rank that cannot connect with the first one takes part, and says that it is not watched.
func TestRankThatIsNotWatched(t *testing.T) {
	if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
		t.Skipf("no network namespaces: %v: %s", err, out)
	}
	one, many := commandtest.NewLab(t), commandtest.NewLab(t)
	got := one.Train()
	require.Zero(t, got.Code, got.Stderr)
	j := newJob(t, many, "mpich", []string{"1"}, []string{"1"})
	j.Args = slices.Insert(j.Args, slices.Index(j.Args, ":")+3, "unshare", "--net")
	require.NoError(t, j.Run(), j.Log.String())
	assert.Contains(t, j.Log.String(), "rank 1: none of the addresses of rank 0 answers: ")
	checkLosses(t, one.Records(), many.Records())
}

// Without a launcher of MPI the ranks find out which of them hangs.
func TestHangingRankIsNamed(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	t.Parallel()
	needMPICH(t)
	l := commandtest.NewLab(t)
	j := start(t, l, nil, append([]string{"--nproc", "2", "distributed_timeout_minutes=0.1"}, endless...)...)
	j.WaitFor("step 1/")
	require.NoError(t, syscall.Kill(j.process(t, "RANK", 1), syscall.SIGSTOP))
	j.fails(t)
	assert.Regexp(t, "rank 1 (hangs|does not answer)", j.lastLine(), j.Log.String())
}

// torchrun starts native ranks as it starts any program, and again after a failure.
func TestTorchrun(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	needMPICH(t)
	commandtest.Tools(t, "torchrun")
	l := commandtest.NewLab(t)
	// torchrun of PyTorch 1.13 cannot read the defaults of these two under Python 3.11.
	args := append([]string{"--nproc_per_node", "2", "--max_restarts", "1", "--monitor_interval", "0.5", "--redirects", "2:0", "--tee", "2:0", "--master_port", strconv.Itoa(primustest.FreePort(t)), "--no_python", os.Args[0]}, l.Args(longRun...)...)
	child := commandtest.Child(t.Context(), nil)
	j := &job{l.Program(exec.CommandContext(t.Context(), "torchrun", args...))}
	j.Env = child.Env
	require.NoError(t, j.Start())
	j.WaitFor("saved checkpoint step=3")
	require.NoError(t, syscall.Kill(j.process(t, "RANK", 1), syscall.SIGKILL))
	require.NoError(t, j.Wait(), j.Log.String())
	assert.Contains(t, j.Log.String(), "\nrestarts    1 of 1\n")
	assert.Len(t, l.Records(), 150)
}
