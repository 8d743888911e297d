package train_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shaped is an experiment of Megatron-LM, for which a package of the same shape stands.
const shaped = `work_group: g
user_name: u
exp_name: e
workspace: WORKSPACE
modules:
  pre_trainer:
    framework: megatron
    train_iters: 4
    micro_batch_size: 4
    global_batch_size: 8
    seq_length: 16
    vocab_size: 32
    hidden_size: 16
    lr: 0.05
`

// shapedRun returns the flags of a run of two ranks, and its run directory.
func shapedRun(t *testing.T) (flags []string, dir string) {
	t.Helper()
	python := primustest.Python(t, "torch", "yaml", "tomllib")
	t.Setenv(commandtest.RoleEnv, "primus") // of what the launcher starts
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	dir = t.TempDir()
	exp := filepath.Join(dir, "exp.yaml")
	require.NoError(t, os.WriteFile(exp, []byte(strings.Replace(shaped, "WORKSPACE", dir, 1)), 0o644))
	_, port, err := net.SplitHostPort(primustest.FreeAddress(t))
	require.NoError(t, err)
	tree := filepath.Join(primustest.ModuleRoot(t), "internal", "backends", "megatron", "testdata", "Megatron-LM")
	return []string{
		"train", "pretrain", "--config", exp, "--backend-path", tree, "--python", python, "--nproc-per-node", "2", "--master-port", port,
	}, filepath.Join(dir, "g", "u", "e")
}

// trainedShaped checks what a run of two ranks has left.
func trainedShaped(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(text), "\n"))
	assert.FileExists(t, filepath.Join(dir, "ranks", "rank-1.log"), "the last rank writes the lines of the steps")
}

// TestTwoNodes runs a program for each of two nodes, which share a directory and a machine.
func TestTwoNodes(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	for _, launcher := range []string{"direct", "torchrun"} {
		nodes := func(t *testing.T, env ...string) (codes [2]int, outputs [2]string, dir string) {
			t.Helper()
			flags, dir := shapedRun(t)
			var running [2]*exec.Cmd
			var written [2]primustest.Buffer
			for node := range running {
				args := append(slices.Clone(flags), "--launcher", launcher, "--nodes", "2", "--node-rank", strconv.Itoa(node), "--master-addr", "127.0.0.1", "--nproc-per-node", "1", "--ranks", "all")
				running[node] = commandtest.Child(t.Context(), env, args...)
				running[node].Stdout, running[node].Stderr = &written[node], &written[node]
				require.NoError(t, running[node].Start())
			}
			for node, cmd := range running {
				codes[node] = commandtest.ExitCode(t, cmd.Wait())
				outputs[node] = written[node].String()
			}
			return codes, outputs, dir
		}
		t.Run(launcher, func(t *testing.T) {
			codes, outputs, dir := nodes(t)
			require.Equal(t, [2]int{}, codes, "%s\n%s", outputs[0], outputs[1])
			assert.Contains(t, outputs[0], "[Primus:megatron] 1 of 2 processes start on this node")
			trainedShaped(t, dir)
		})
		t.Run(launcher+", and one fails", func(t *testing.T) {
			codes, outputs, _ := nodes(t, "SHAPED_FAULT=raise:1:3")
			assert.Equal(t, 1, codes[1], outputs[1])
			assert.Contains(t, outputs[1], "rank 1 exited with 1: ValueError: a sample is broken")
			assert.NotZero(t, codes[0], "the other node does not wait for ever: %s", outputs[0])
		})
	}
}

func TestSlurm(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	commandtest.StartSlurm(t)
	t.Run("hosts", func(t *testing.T) {
		for _, list := range []string{"n1", "n[1-3]", "n[01-03,5],m7", "a[1-2]b[3-4]", "a[098-101],b-c[1,3]"} {
			out, err := exec.Command("scontrol", "show", "hostnames", list).Output()
			require.NoError(t, err, list)
			got, err := launch.Hosts(list)
			require.NoError(t, err)
			assert.Equal(t, strings.Fields(string(out)), got, list)
		}
	})
	t.Run("sbatch", func(t *testing.T) {
		flags, dir := shapedRun(t)
		t.Setenv("NODE_RANK", "7") // of some other job
		got := commandtest.Run(t, append(flags, "--launcher", "slurm", "--launcher-option", "slurm.wait=true",
			"--launcher-option", "slurm.job-name=two words", "--launcher-option", "slurm.setup=echo the job is $SLURM_JOB_NAME")...)
		outputs, err := filepath.Glob(filepath.Join(dir, "launch", "slurm-*.out"))
		require.NoError(t, err)
		require.Len(t, outputs, 1, got.Stderr)
		text, err := os.ReadFile(outputs[0])
		require.NoError(t, err)
		require.Zero(t, got.Code, "%s\n%s", got.Stderr, text)
		assert.Contains(t, got.Out, "Submitted batch job ")
		assert.Contains(t, string(text), "the job is two words\n")
		assert.Contains(t, string(text), "[Primus:megatron] 2 of 2 processes start on this node")
		trainedShaped(t, dir)
	})
	t.Run("srun in an allocation", func(t *testing.T) {
		flags, dir := shapedRun(t)
		cmd := exec.Command("salloc", append([]string{"--nodes=1", "--exclusive", os.Args[0]}, append(flags, "--launcher", "slurm")...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		trainedShaped(t, dir)
	})
	t.Run("native, and scancel", func(t *testing.T) {
		t.Setenv(commandtest.RoleEnv, "primus")
		l := commandtest.NewLab(t)
		got := l.Train("--launcher", "slurm", "train_iters=1000000")
		require.Zero(t, got.Code, got.Stderr)
		_, job, ok := strings.Cut(strings.TrimSpace(got.Out), "Submitted batch job ")
		require.True(t, ok, got.Out)
		waitForSteps(t, l)
		require.NoError(t, exec.Command("scancel", job).Run())
		require.Eventually(t, func() bool {
			left, err := exec.Command("squeue", "--noheader").Output()
			return err == nil && len(left) == 0
		}, 2*time.Minute, 100*time.Millisecond, "the job ends")
		assert.NotEmpty(t, l.Checkpoints(), "the run saves before it ends")
	})
	t.Run("native ranks", func(t *testing.T) {
		commandtest.Tools(t, "mpiexec")
		t.Setenv(commandtest.RoleEnv, "primus")
		l := commandtest.NewLab(t)
		got := l.Train("--launcher", "slurm", "--launcher-option", "slurm.wait=true", "--nproc", "2", "train_iters=2")
		outputs, err := filepath.Glob(l.Path("launch", "slurm-*.out"))
		require.NoError(t, err)
		require.Len(t, outputs, 1, got.Stderr)
		text, err := os.ReadFile(outputs[0])
		require.NoError(t, err)
		require.Zero(t, got.Code, "%s\n%s", got.Stderr, text)
		assert.Len(t, l.Records(), 2)
		assert.Contains(t, string(text), "all_reduce ", "the ranks are of one run")
	})
	for name, tt := range map[string]struct{ plugin, vendor string }{
		"srun without MPI": {"none", "vendor.mpich"},
		"srun --mpi=pmi2":  {"pmi2", "vendor.mpich"},
		"srun --mpi=pmix":  {"pmix", "vendor.openmpi"},
	} {
		t.Run(name, func(t *testing.T) {
			commandtest.Tools(t, "mpiexec.hydra", "mpirun.openmpi")
			list, err := exec.Command("srun", "--mpi=list").CombinedOutput()
			require.NoError(t, err, string(list))
			if !strings.Contains(string(list), tt.plugin) {
				t.Skipf("this Slurm has no plugin %s: %s", tt.plugin, list)
			}
			t.Setenv(commandtest.RoleEnv, "primus")
			l := commandtest.NewLab(t)
			args := append([]string{"--ntasks=2", "--overcommit", "--mpi=" + tt.plugin, os.Args[0]}, l.Args("train_iters=3")...)
			out, err := exec.Command("srun", args...).CombinedOutput()
			if strings.Contains(string(out), "can not load PMIx library") {
				t.Skip("the plugin of this Slurm looks for libpmix.so, which the package libpmix-dev has")
			}
			require.NoError(t, err, string(out))
			assert.Equal(t, 1, strings.Count(string(out), " finished\n"), string(out))
			assert.Regexp(t, "all_reduce .*"+tt.vendor, string(out))
			assert.Len(t, l.Records(), 3)
		})
	}
	t.Run("example", slurmExample)
	t.Run("in a container", func(t *testing.T) {
		options := commandtest.StartPodman(t)
		flags, dir := shapedRun(t)
		for _, o := range append(options, "slurm.wait=true") {
			flags = append(flags, "--launcher-option", o)
		}
		got := commandtest.Run(t, append(flags, "--launcher", "slurm,container")...)
		require.Zero(t, got.Code, got.Stderr)
		trainedShaped(t, dir)
	})
	t.Run("a rank that fails", func(t *testing.T) {
		flags, _ := shapedRun(t)
		t.Setenv("SHAPED_FAULT", "raise:1:3")
		got := commandtest.Run(t, append(flags, "--launcher", "slurm", "--launcher-option", "slurm.command=srun")...)
		assert.Equal(t, 1, got.Code, got.Stderr)
		assert.Contains(t, got.Stderr, "rank 1 exited with 1: ValueError: a sample is broken")
		assert.Contains(t, got.Stderr, "primus: error: srun exited with 1, for the reason that it gives above")
	})
}

// waitForSteps waits until a run has trained some steps.
func waitForSteps(t *testing.T, l *commandtest.Lab) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(l.Path("metrics.jsonl"))
		return err == nil && strings.Count(string(text), "\n") > 2
	}, 2*time.Minute, 50*time.Millisecond)
}

func TestContainer(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	var options []string
	for _, o := range commandtest.StartPodman(t) {
		options = append(options, "--launcher-option", o)
	}
	t.Run("native", func(t *testing.T) {
		t.Setenv(commandtest.RoleEnv, "primus")
		t.Setenv("HF_TOKEN", "hf_abc")
		l := commandtest.NewLab(t)
		got := l.Train(append(options, "--launcher", "container", "train_iters=2")...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Len(t, l.Records(), 2)
		assert.Contains(t, got.Out, "run         exp finished")
	})
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run("native, and "+s.String(), func(t *testing.T) {
			l := commandtest.NewLab(t)
			cmd := commandtest.Child(t.Context(), nil, l.Args(append(options, "--launcher", "container", "train_iters=1000000")...)...)
			var out primustest.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			waitForSteps(t, l)
			require.NoError(t, cmd.Process.Signal(s))
			code := commandtest.ExitCode(t, cmd.Wait())
			if s == syscall.SIGINT {
				assert.Equal(t, 130, code, out.String())
			}
			assert.Eventually(t, func() bool { return len(l.Checkpoints()) > 0 }, 2*time.Minute, 50*time.Millisecond, "the run saves before it ends: %s", out.String())
			assert.Eventually(t, func() bool {
				left, err := exec.Command("podman", "ps", "--quiet").Output()
				return err == nil && len(left) == 0
			}, 2*time.Minute, 200*time.Millisecond, "no container outlives primus")
		})
	}
	t.Run("two ranks", func(t *testing.T) {
		flags, dir := shapedRun(t)
		got := commandtest.Run(t, append(flags, append(options, "--launcher", "container,direct")...)...)
		require.Zero(t, got.Code, got.Stderr)
		trainedShaped(t, dir)
	})
	t.Run("a rank that fails", func(t *testing.T) {
		flags, _ := shapedRun(t)
		t.Setenv("SHAPED_FAULT", "kill:1:3")
		got := commandtest.Run(t, append(flags, append(options, "--launcher", "container", "--launcher-option", "container.env=SHAPED_FAULT")...)...)
		assert.Equal(t, 137, got.Code, got.Stderr)
		assert.Contains(t, got.Stderr, "rank 1 was ended by signal 9")
	})
}
