package train_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start starts a command line in the background, with variables.
func start(t *testing.T, l *commandtest.Lab, env []string, args ...string) *job {
	t.Helper()
	return &job{l.Start(env, args...)}
}

// longRun is a run whose steps are saved one by one.
var longRun = []string{"train_iters=150", "save_interval=1", "log_interval=1000", "exp_name=exp"}

// checkRestarted checks that a run came to the end that an undisturbed one comes to.
func checkRestarted(t *testing.T, l *commandtest.Lab, output, why string) {
	t.Helper()
	assert.Regexp(t, `\nrestarts    1 of 2, the last because `+why, output)
	log, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	assert.Regexp(t, `the ranks were started again: 1 of 2, the last because `+why, string(log))
	straight := commandtest.NewLab(t)
	got := straight.Train(longRun...)
	require.Zero(t, got.Code, got.Stderr)
	checkLosses(t, straight.Records(), l.Records())
}

// The ranks of a machine start again when one of them is killed.
func TestRestart(t *testing.T) {
	needMPICH(t)
	for rank := range 2 {
		t.Run(strconv.Itoa(rank), func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			j := start(t, l, nil, append([]string{"--nproc", "2", "--threads", "1", "--max-restarts", "2"}, longRun...)...)
			j.WaitFor("saved checkpoint step=3")
			require.NoError(t, syscall.Kill(j.process(t, "RANK", rank), syscall.SIGKILL))
			require.NoError(t, j.Wait(), j.Log.String())
			assert.Contains(t, j.Log.String(), "the ranks start again from the last checkpoint (restart 1 of 2)")
			checkRestarted(t, l, j.Log.String(), fmt.Sprintf(`.*rank %d`, rank))
		})
	}
}

// A process that trains alone is started again, too.
func TestRestartAlone(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	t.Parallel()
	l := commandtest.NewLab(t)
	j := start(t, l, nil, append([]string{"--max-restarts", "2"}, longRun...)...)
	j.WaitFor("saved checkpoint step=3")
	require.NoError(t, syscall.Kill(j.process(t, "RANK", 0), syscall.SIGKILL))
	require.NoError(t, j.Wait(), j.Log.String())
	checkRestarted(t, l, j.Log.String(), "rank 0 of 1 has failed: signal: killed")
}

// Two nodes start two ranks each. When one of them is gone, the other goes on alone.
func TestRestartWithoutANode(t *testing.T) {
	needMPICH(t)
	for name, starts := range map[string]func(node int, port string) (env, args []string){
		"nodes": func(node int, port string) (env, args []string) {
			return nil, []string{"--nodes", "2", "--node-rank", strconv.Itoa(node), "--nproc", "2", "--master-addr", "127.0.0.1", "--master-port", port}
		},
		"variables of torchrun": func(node int, port string) (env, args []string) {
			return []string{"RANK=" + strconv.Itoa(node), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, port := commandtest.NewLab(t), strconv.Itoa(primustest.FreePort(t))
			var nodes []*job
			for node := range 2 {
				env, args := starts(node, port)
				nodes = append(nodes, start(t, l, append(env, "PRIMUS_JOB_SECRET=s"), append(append(args, "--threads", "1", "--max-restarts", "2", "global_batch_size=8", "micro_batch_size=1"), longRun...)...))
			}
			nodes[0].WaitFor("saved checkpoint step=3")
			require.NoError(t, nodes[1].Process.Kill())
			require.Error(t, nodes[1].Wait())
			require.NoError(t, nodes[0].Wait(), nodes[0].Log.String())
			assert.Regexp(t, `\nrestarts    1 of 2, the last because (node|rank) `, nodes[0].Log.String())
			records := l.Records()
			require.Len(t, records, 150)
			for i, r := range records {
				require.Equal(t, i+1, r.Step, "each step is there once")
			}
		})
	}
}

// An error that comes again ends the run when its restarts are used up.
func TestRestartsUsedUp(t *testing.T) {
	l := commandtest.NewLab(t)
	j := start(t, l, nil, "--nproc", "1", "--max-restarts", "1", "train_data_path=/nowhere")
	assert.Equal(t, 1, commandtest.ExitCode(t, j.Wait()))
	assert.Contains(t, j.Log.String(), "there was one restart before")
	assert.Equal(t, 1, strings.Count(j.Log.String(), "start again"))

	j = start(t, l, nil, "--nproc", "2", "--max-restarts", "1", "lr=x")
	assert.Equal(t, 1, commandtest.ExitCode(t, j.Wait()))

	launcher, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Skipf("no mpirun of Open MPI: %v", err)
	}
	m := newJob(t, l, "openmpi", []string{"2", "--max-restarts", "1"})
	require.Error(t, m.Run(), launcher)
	assert.Contains(t, m.Log.String(), "--max-restarts: mpirun, mpiexec and srun --mpi end all ranks, and themselves, when one fails")
	assert.NoFileExists(t, filepath.Join(l.Workspace, "group"))
}

// An error that all ranks have is printed once, as it would be without ranks.
func TestErrorsOfRanks(t *testing.T) {
	for name, tt := range map[string]struct {
		env  []string
		code int
		want string
	}{
		"policy": {[]string{"TE_FL_PREFER=vendro"}, 2, `both ranks have failed: policy: environment TE_FL_PREFER="vendro": at 1: unknown kind "vendro"`},
		"run":    {[]string{"PRIMUS_MPI=/nowhere/libmpi.so"}, 1, "both ranks have failed: Training execution failed: the 2 ranks cannot reach each other: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			j := start(t, l, tt.env, "--nproc", "2", "train_iters=2")
			assert.Equal(t, tt.code, commandtest.ExitCode(t, j.Wait()))
			assert.Equal(t, 1, strings.Count(j.Log.String(), "primus: error: "), j.Log.String())
			assert.Contains(t, j.Log.String(), tt.want)
		})
	}
}

// A dry run says which ranks would start.
func TestDryRunOfRanks(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("--dry-run", "--nproc", "2", "--nodes", "2", "--node-rank", "1", "--master-addr", "n0", "--max-restarts", "3")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "\nranks       2 processes of this machine, which is node 1 of 2; started again after a failure, 3 times at most\n")
	memory := func(args ...string) float64 {
		got := l.Train(append([]string{"--dry-run", "--nproc", "2", "hidden_size=1024", "num_layers=4"}, args...)...)
		require.Zero(t, got.Code, got.Stderr)
		var n float64
		_, found, _ := strings.Cut(got.Out, "weights with gradients and moments ")
		_, err := fmt.Sscanf(found, "%f MiB", &n)
		require.NoError(t, err, got.Out)
		return n
	}
	assert.InEpsilon(t, 2, memory()/memory("tensor_model_parallel_size=2"), 0.01, "each rank has half of the weights")
	got = l.Train("--dry-run", "--nproc", "3")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "want a multiple of 6, which is micro_batch_size 2 on 3 ranks")
}

// What cannot be divided is refused, and not trained by fewer ranks.
func TestRanksThatDoNotFit(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("--nproc", "3", "train_iters=2")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "global_batch_size: given 4, want a multiple of 6, which is micro_batch_size 2 on 3 ranks")
	got = l.Train("--nproc-per-node", "-1")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "--nproc-per-node: given -1, want a whole number, 0 for the default")
}

// A signal to the process that has started the ranks ends them at one step, which is saved, and
// starts none again.
func TestInterruptedRanksOfPrimus(t *testing.T) {
	needMPICH(t)
	l := commandtest.NewLab(t)
	j := start(t, l, nil, append([]string{"--nproc", "2", "--max-restarts", "2", "load=none"}, endless...)...)
	j.WaitFor("step 1/")
	require.NoError(t, j.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 130, commandtest.ExitCode(t, j.Wait()), j.Log.String())
	records, saved := l.Records(), l.Checkpoints()
	require.Len(t, saved, 1, j.Log.String())
	assert.Equal(t, fmt.Sprintf("step-%08d", records[len(records)-1].Step), filepath.Base(saved[0]))
	assert.NotContains(t, j.Log.String(), "start again")
	assert.Contains(t, j.Log.String(), "the same command with load=null added goes on from there")
}

// Before the first step each rank finds out by itself that it is to end, at any place between and
// inside collectives. None waits for another one.
func TestRanksOfPrimusInterruptedEarly(t *testing.T) {
	needMPICH(t)
	l := commandtest.NewLab(t)
	for moment := range 12 {
		j := start(t, l, nil, append([]string{"--nproc", "2", "load=none"}, endless...)...)
		time.Sleep(time.Duration(moment) * 75 * time.Millisecond)
		require.NoError(t, j.Process.Signal(syscall.SIGTERM))
		if code := commandtest.ExitCode(t, j.Wait()); code != -1 { // it did not expect signals yet
			assert.Equal(t, 130, code, j.Log.String())
		}
		assert.NotContains(t, j.Log.String(), "has failed")
	}
}

// After a failure as many ranks train as the batch and the parallel groups allow.
func TestFitting(t *testing.T) {
	l := commandtest.NewLab(t)
	for _, tt := range []struct {
		args        string
		ranks, want int
	}{
		{"global_batch_size=8", 4, 4}, {"global_batch_size=8", 3, 2}, {"global_batch_size=6", 5, 3}, {"global_batch_size=7 micro_batch_size=1", 5, 1},
		{"global_batch_size=12", 4, 3}, {"global_batch_size=2", 3, 2},
		{"global_batch_size=8 tensor_model_parallel_size=2", 7, 4}, {"global_batch_size=8 tensor_model_parallel_size=4", 3, 0},
		{"global_batch_size=16 expert_model_parallel_size=2", 5, 4}, {"global_batch_size=16 expert_model_parallel_size=2", 3, 2},
	} {
		got, err := train.Fitting(append([]string{"--config", l.Exp}, strings.Fields(tt.args)...), tt.ranks)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got, tt)
	}
}
