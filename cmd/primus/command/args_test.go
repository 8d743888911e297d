package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
			l := newLab(t)
			for i := range args {
				args[i] = strings.NewReplacer("EXP", l.exp, "DIR", l.dir).Replace(args[i])
			}
			got := primus(t, args...)
			require.Zero(t, got.code, got.stderr)
			require.Len(t, l.records(), 1)
			assert.InDelta(t, 0.01/2, l.records()[0].LR, 1e-9, "first of two steps of warm-up")
			assert.NotContains(t, got.stderr, "WARN  override")
		})
	}
}

// A switch in front of a flag of our own does not swallow what follows that.
func TestSwitchBeforeAFlag(t *testing.T) {
	l := newLab(t)
	got := primus(t, "train", "--save_initial", "--config", l.exp, "train_iters=1")
	require.Zero(t, got.code, got.stderr)
	assert.Len(t, l.checkpoints(), 2, "steps 0 and 1")
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	l := newLab(t)
	t.Setenv("PRIMUS_CONFIG", l.exp)
	t.Setenv("PRIMUS_METRICS_ADDR", "127.0.0.1:0")
	t.Setenv("PRIMUS_CONFIGS_DIR", l.dir+string(os.PathListSeparator)+l.dir)
	t.Setenv("PRIMUS_THREADS", "2")
	got := primus(t, "train", "train_iters=1")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "metrics on http://127.0.0.1:")
	got = primus(t, "train", "train_iters=1", "--config", "/nonexistent.yaml")
	assert.Contains(t, got.stderr, "/nonexistent.yaml", "a flag wins over the environment")
}

func TestWarningsAppearOnce(t *testing.T) {
	l := newLab(t)
	l.edit("      num_layers: 1\n", "      num_layers: 1\n      hiden_size: 3\n      strange: 4\n")
	got := l.train("train_iters=1", "bogus=1", "sed=3", "model=llama_30M")
	require.Zero(t, got.code, got.stderr)
	for _, key := range []string{"hiden_size", "strange", "bogus", "sed", "model"} {
		n := 0
		for line := range strings.Lines(got.stderr) {
			if strings.Contains(line, "WARN") && strings.Contains(line, " "+key+": ") || strings.Contains(line, "WARN") && strings.Contains(line, "."+key+": ") {
				n++
			}
		}
		assert.Equal(t, 1, n, "%s in\n%s", key, got.stderr)
	}
	assert.Contains(t, got.stderr, "did you mean \"seed\"?")
}

// The keys that say where results go belong to the experiment, and the command line reaches them.
func TestPlaceOnTheCommandLine(t *testing.T) {
	l := newLab(t)
	elsewhere := t.TempDir()
	got := l.train("train_iters=1", "exp_name=other", "--work_group", "wg", "--user_name=me", "workspace="+elsewhere)
	require.Zero(t, got.code, got.stderr)
	assert.NotContains(t, got.stderr, "WARN")
	assert.FileExists(t, filepath.Join(elsewhere, "wg", "me", "other", "metrics.jsonl"))
	assert.Contains(t, got.out, "run         other finished")
	assert.NoDirExists(t, l.workspace)
	shown := primus(t, "config", "show", "--config", l.exp, "--origin", "exp_name=other")
	require.Zero(t, shown.code, shown.stderr)
	assert.Regexp(t, `exp_name: other # override 1`, shown.out)
}
