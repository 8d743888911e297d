package launch_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func resolve(t *testing.T, o launch.Options, vars map[string]string) (launch.Options, error) {
	t.Helper()
	return o.Resolve(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
}

func TestResolve(t *testing.T) {
	unset := launch.Options{}
	for _, tt := range []struct {
		name    string
		give    launch.Options
		vars    map[string]string
		want    launch.Options
		wantErr string
	}{
		{"defaults", unset, nil, launch.Options{Launcher: "direct", Nodes: 1, PerNode: 8, MasterAddr: "localhost", MasterPort: 1234, Python: "python3", Ranks: "0,last"}, ""},
		{"environment", unset, map[string]string{"NNODES": "4", "NODE_RANK": "3", "GPUS_PER_NODE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "29500"},
			launch.Options{Launcher: "direct", Nodes: 4, NodeRank: 3, PerNode: 2, MasterAddr: "h", MasterPort: 29500, Python: "python3", Ranks: "0,last"}, ""},
		{"slurm", unset, map[string]string{"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_NODEID": "1"},
			launch.Options{Launcher: "direct", Nodes: 2, NodeRank: 1, PerNode: 8, MasterAddr: "localhost", MasterPort: 1234, Python: "python3", Ranks: "0,last"}, ""},
		{"first host of slurm", unset, map[string]string{"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "n[07,12]", "MASTER_ADDR": "localhost"},
			launch.Options{Launcher: "direct", Nodes: 2, PerNode: 8, MasterAddr: "n07", MasterPort: 1234, Python: "python3", Ranks: "0,last"}, ""},
		{"chain", launch.Options{Launcher: "slurm,container,torchrun"}, map[string]string{"JOB_COMPLETION_INDEX": "0"},
			launch.Options{Launcher: "torchrun", Nodes: 1, PerNode: 8, MasterAddr: "localhost", MasterPort: 1234, Python: "python3", Ranks: "0,last"}, ""},
		{"hosts", unset, map[string]string{"NNODES": "2", "SLURM_JOB_NODELIST": "n[7"}, launch.Options{}, `variable SLURM_JOB_NODELIST: list of hosts "n[7": "n[7": given [ without ]`},
		{"flags first", launch.Options{Launcher: "torchrun", Nodes: 2, NodeRank: 1, PerNode: 1, MasterAddr: "a", MasterPort: 1, Python: "py", Ranks: "all"},
			map[string]string{"NNODES": "x", "NODE_RANK": "x", "GPUS_PER_NODE": "x", "MASTER_ADDR": "x", "MASTER_PORT": "x"},
			launch.Options{Launcher: "torchrun", Nodes: 2, NodeRank: 1, PerNode: 1, MasterAddr: "a", MasterPort: 1, Python: "py", Ranks: "all"}, ""},
		{"unknown launcher", launch.Options{Launcher: "torchrunn"}, nil, launch.Options{}, `--launcher: given "torchrunn", want kubernetes, slurm, container, direct, torchrun; did you mean "torchrun"?`},
		{"no number", unset, map[string]string{"GPUS_PER_NODE": "all"}, launch.Options{}, `variable GPUS_PER_NODE: given "all", want a whole number`},
		{"no node", unset, map[string]string{"NNODES": "0"}, launch.Options{}, "variable NNODES: given 0, want 1 to 1048576"},
		{"rank of no node", launch.Options{NodeRank: 2}, nil, launch.Options{}, "node rank 2 of 1 nodes"},
		{"no ranks", launch.Options{Ranks: "first"}, nil, launch.Options{}, `--ranks: given "first", want all, none, or ranks and last`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := resolve(t, tt.give, tt.vars)
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestChain(t *testing.T) {
	for give, want := range map[string]string{
		"": "[] direct", "direct": "[] direct", "torchrun": "[] torchrun", "slurm": "[slurm] direct", "container,torchrun": "[container] torchrun",
		"slurm,container": "[slurm container] direct", "kubernetes,torchrun": "[kubernetes] torchrun",
	} {
		elsewhere, local, err := launch.Chain(give)
		require.NoError(t, err)
		assert.Equal(t, want, fmt.Sprint(elsewhere, " ", local), give)
	}
	for _, give := range []string{"direct,slurm", "container,slurm", "kubernetes,container", "slurm,kubernetes", "direct,torchrun", "slurm,slurm", "slurm,", ","} {
		_, _, err := launch.Chain(give)
		assert.ErrorContains(t, err, "--launcher: given ", give)
	}
}

func TestWrongHosts(t *testing.T) {
	for _, list := range []string{"n[1", "n]1", "n[1-]", "n[3-1]", "n[a]", "n[]", "n[1-99999999]", "n[1-1024][1-1025]", "n[1-1000000,1-1000000]"} {
		_, err := launch.Hosts(list)
		assert.ErrorContains(t, err, "list of hosts ", list)
	}
}

func TestPlanOfANode(t *testing.T) {
	t.Setenv("PYTHONPATH", "/mine")
	o, err := resolve(t, launch.Options{Nodes: 2, NodeRank: 1, PerNode: 2, MasterAddr: "head"}, nil)
	require.NoError(t, err)
	job := launch.Job{
		Program: []string{"-m", "torchtitan.train", "--job.config_file", "/runs/a b.toml"}, PerDevice: true, PythonPath: []string{"/titan/src", "/titan"},
		Env: []launch.Variable{{Name: "HF_TOKEN", Value: "hf_x", Source: "env"}}, LogDir: "/runs/ranks",
	}
	p, err := launch.NewPlan(job, o)
	require.NoError(t, err)
	require.Len(t, p.Processes, 2)
	assert.Equal(t, 4, p.WorldSize)
	command := p.Shell(p.Processes[1])
	for _, part := range []string{
		"HF_TOKEN='***' PYTHONPATH=/titan/src:/titan:/mine ", " RANK=3 LOCAL_RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 ",
		" MASTER_ADDR=head MASTER_PORT=1234 ", " python3 -m torchtitan.train --job.config_file '/runs/a b.toml'",
	} {
		assert.Contains(t, command, part)
	}
	assert.NotContains(t, command, "hf_x")

	o.Launcher = launch.Torchrun
	p, err = launch.NewPlan(job, o)
	require.NoError(t, err)
	require.Len(t, p.Processes, 1)
	assert.Equal(t, []string{"torchrun", "--nproc_per_node", "2", "--nnodes", "2", "--node_rank", "1", "--master_addr", "head", "--master_port", "1234", "--no_python", "sh", "-c"},
		p.Processes[0].Argv[:14])
	assert.Equal(t, []string{"/runs/ranks/pipe", "python3", "-m", "torchtitan.train", "--job.config_file", "/runs/a b.toml"}, p.Processes[0].Argv[15:])
	assert.Equal(t, 2, p.Processes[0].Rank)

	o.Launcher, job.PerDevice = launch.Direct, false
	p, err = launch.NewPlan(job, o)
	require.NoError(t, err)
	require.Len(t, p.Processes, 1, "one for the node")
	assert.Equal(t, 2, p.WorldSize)
	assert.NotContains(t, p.Shell(p.Processes[0]), "RANK=")
}

func TestTraceback(t *testing.T) {
	f := launch.Failure{Code: 1, File: "f", Tail: []string{
		"Traceback (most recent call last):", "  File \"a\"", "KeyError: 'x'", "", "During handling of the above exception, another exception occurred:", "",
		"[r0] Traceback (most recent call last):", "[r0]   File \"b\"", "[r0] RuntimeError: out of memory", "[r0] more",
	}}
	assert.Equal(t, "[r0] RuntimeError: out of memory", f.Cause())
	f.Tail = f.Tail[:3]
	assert.Equal(t, "KeyError: 'x'", f.Cause())
	f.Tail = []string{"nothing"}
	assert.Empty(t, f.Cause())
	assert.EqualError(t, &f, "rank 0 exited with 1\nits last lines (all are in f):\n  | nothing")
}

// What a runtime writes before the stacks of a crash is shown, however long these are.
func TestCrash(t *testing.T) {
	stacks := slices.Repeat([]string{"goroutine 1 [running]:", "main.f()", "\tf.go:1"}, 40)
	for cause, first := range map[string][]string{
		"fatal error: no stack":                                 {"fatal error: no stack", ""},
		"terminate called after throwing 'gloo': Socket closed": {"terminate called after throwing 'gloo'", "  what():  Socket closed"},
	} {
		f := launch.Failure{Rank: 1, Signal: syscall.SIGABRT, File: "f", Tail: slices.Concat([]string{"step 1"}, first, stacks)}
		assert.Equal(t, strings.Join(strings.Fields(cause), " "), strings.Join(strings.Fields(f.Cause()), " "))
		assert.Contains(t, f.Error(), "aborted): "+first[0])
		assert.Contains(t, f.Error(), "  | "+first[0]+"\n")
		assert.Contains(t, f.Error(), "the first lines of the crash (all are in f):")
		assert.NotContains(t, f.Error(), "step 1")
		f.Signal = 0
		assert.Empty(t, f.Cause(), "a program that goes on may write the same")
	}
}
