package train_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every way to write flags and overrides leads to the same run.
func TestWaysToWriteAnOverride(t *testing.T) {
	tests := [][]string{
		{"train", "--config", "EXP", "lr=1e-2", "train_iters=1"},
		{"train", "pretrain", "--config=EXP", "--lr", "1e-2", "--train_iters=1"},
		{"train", "lr=1e-2", "--train_iters", "1", "--exp", "EXP"},
		{"train", "lr=5", "train_iters=1", "--threads", "1", "--config", "EXP", "--lr=1e-2"},
		{"train", "--config", "EXP", "pretrain", "lr=1e-2", "train_iters=1"},
		{"train", "pretrain", "--exp=EXP", "--configs_dir", "DIR", "lr=1e-2", "train_iters=1"},
	}
	for _, args := range tests {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			l := commandtest.NewLab(t)
			for i := range args {
				args[i] = strings.NewReplacer("EXP", l.Exp, "DIR", l.Dir).Replace(args[i])
			}
			got := commandtest.Run(t, args...)
			require.Zero(t, got.Code, got.Stderr)
			require.Len(t, l.Records(), 1)
			assert.InDelta(t, 0.01/2, l.Records()[0].LR, 1e-9, "first of two steps of warm-up")
			assert.NotContains(t, got.Stderr, "WARN  override")
		})
	}
}

// A switch in front of a flag of our own does not swallow what follows that.
func TestSwitchBeforeAFlag(t *testing.T) {
	l := commandtest.NewLab(t)
	got := commandtest.Run(t, "train", "--save_initial", "--config", l.Exp, "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Len(t, l.Checkpoints(), 2, "steps 0 and 1")
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	l := commandtest.NewLab(t)
	t.Setenv("PRIMUS_CONFIG", l.Exp)
	t.Setenv("PRIMUS_METRICS_ADDR", "127.0.0.1:0")
	t.Setenv("PRIMUS_CONFIGS_DIR", l.Dir+string(os.PathListSeparator)+l.Dir)
	t.Setenv("PRIMUS_THREADS", "2")
	got := commandtest.Run(t, "train", "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "metrics on http://127.0.0.1:")
	got = commandtest.Run(t, "train", "train_iters=1", "--config", "/nonexistent.yaml")
	assert.Contains(t, got.Stderr, "/nonexistent.yaml", "a flag wins over the environment")
}

func TestWarningsAppearOnce(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Edit("      num_layers: 1\n", "      num_layers: 1\n      hiden_size: 3\n      strange: 4\n")
	got := l.Train("train_iters=1", "bogus=1", "sed=3", "model=llama_30M", "--strict-config=false")
	require.Zero(t, got.Code, got.Stderr)
	for _, key := range []string{"hiden_size", "strange", "bogus", "sed", "model"} {
		n := 0
		for line := range strings.Lines(got.Stderr) {
			if strings.Contains(line, "WARN") && strings.Contains(line, " "+key+": ") || strings.Contains(line, "WARN") && strings.Contains(line, "."+key+": ") {
				n++
			}
		}
		assert.Equal(t, 1, n, "%s in\n%s", key, got.Stderr)
	}
	assert.Contains(t, got.Stderr, "did you mean \"seed\"?")
}

// The keys that say where results go belong to the experiment, and the command line reaches them.
func TestPlaceOnTheCommandLine(t *testing.T) {
	l := commandtest.NewLab(t)
	elsewhere := t.TempDir()
	got := l.Train("train_iters=1", "exp_name=other", "--work_group", "wg", "--user_name=me", "workspace="+elsewhere)
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, got.Stderr, "WARN")
	assert.FileExists(t, filepath.Join(elsewhere, "wg", "me", "other", "metrics.jsonl"))
	assert.Contains(t, got.Out, "run         other finished")
	assert.NoDirExists(t, l.Workspace)
	shown := commandtest.Run(t, "config", "show", "--config", l.Exp, "--origin", "exp_name=other")
	require.Zero(t, shown.Code, shown.Stderr)
	assert.Regexp(t, `exp_name: other # override 1`, shown.Out)
}
