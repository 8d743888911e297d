package train_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLauncherDryRun(t *testing.T) {
	l := commandtest.NewLab(t)
	l.InModule("    wandb_api_key: w_abc\n")
	t.Setenv("PRIMUS_LAUNCHER", "slurm")
	t.Setenv("HOME", l.Dir)
	l.Write(filepath.Join(l.Dir, ".primus.yaml"), "slurm: {partition: gpu, nodes: 1}\n")
	for launcher, want := range map[string][]string{
		"":                  {"sbatch " + l.Path("launch", "slurm.sh"), "--launcher=direct --nodes=1", "#SBATCH --partition=gpu", ".primus.yaml:1:20"},
		"slurm,container":   {"--launcher=container,direct --nodes=1"},
		"container":         {" run --rm ", "--volume=" + l.Workspace + ":" + l.Workspace, "--launcher=direct"},
		"kubernetes,direct": {"completionMode: Indexed", "wandb_api_key: ${WANDB_API_KEY}"},
	} {
		args := []string{"--dry-run", "--launcher-option", "kubernetes.secret=tokens", "train_iters=3"}
		if launcher != "" {
			args = append(args, "--launcher", launcher)
		}
		got := l.Train(args...)
		require.Zero(t, got.Code, got.Stderr)
		for _, part := range append(want, "dry run: none of this is done", "none of this is done\n") {
			assert.Contains(t, got.Out, part, launcher)
		}
		assert.NotContains(t, got.Out, "w_abc")
	}
	assert.NoDirExists(t, l.Workspace)
	got := l.Train("--dry-run", "--launcher", "kubernetes", "--launcher-option", "kubernetes.secret=tokens", "hf_token=h_abc")
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, got.Out+got.Stderr, "h_abc")
	assert.Contains(t, got.Out, "hf_token: ${HF_TOKEN}")

	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--launcher", "slrum"}, 2, `--launcher: given "slrum", want kubernetes, slurm, container, direct, torchrun; did you mean "slurm"?`},
		{[]string{"--launcher", "torchrun"}, 1, "--launcher: given torchrun, but framework native trains in this process"},
		{[]string{"train_data_path=/nonexistent/text"}, 1, "want an existing file"},
		{[]string{"train_data_path=/nonexistent/text", "--launcher", "kubernetes", "--launcher-option", "kubernetes.secret=x"}, 0, "is in no volume"},
		{[]string{"hidden_size=33"}, 1, "multiple of num_attention_heads"},
		{[]string{"--launcher-option", "slurm.command=qsub"}, 2, `slurm.command: given "qsub", want sbatch or srun`},
		{[]string{"--launcher-file", "/nonexistent.yaml"}, 2, "launcher file: open /nonexistent.yaml"},
		{[]string{"hf_token=h_abc"}, 1, "override hf_token: its value would be on a command line"},
		{[]string{"--launcher", "container", "--launcher-option", "container.runtime=no-such-engine"}, 1, "no no-such-engine in PATH"},
	} {
		got := l.Train(tt.args...)
		assert.Equal(t, tt.code, got.Code, tt.args)
		assert.Contains(t, got.Stderr, tt.want)
		assert.NotContains(t, got.Stderr, "h_abc")
	}
	require.NoError(t, os.Unsetenv("PRIMUS_LAUNCHER"))
	l.Write(filepath.Join(l.Dir, ".primus.yaml"), "direct: {gpus_per_node: 3, master_port: 77, nnodes: 2, script: x.py}\n")
	got = l.Train("--launcher", "direct", "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "direct.script: has no effect")
	got = commandtest.Run(t, "train", "--dry-run", "--config", commandtest.MegatronExperiment(t, "trainable: true"), "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, `"world_size": 6`)
	assert.Contains(t, got.Out, "MASTER_PORT=77 ")
}
