package train_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/report"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDryRunOfSeveral(t *testing.T) {
	l := commandtest.NewLab(t)
	module := "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\nmodules:\n  MODULE:\n    framework: FRAMEWORK\n    stage: sft\n    hf_token: hf_abc\n"
	for name, text := range map[string]string{
		"configs/a/megatron.yaml": strings.NewReplacer("MODULE", "post_trainer", "FRAMEWORK", "megatron").Replace(module),
		"configs/b.yaml":          strings.NewReplacer("MODULE", "pre_trainer", "FRAMEWORK", "megatro").Replace(module),
		"configs/c.yaml":          "a: 1\n",
		"configs/c.txt":           "no experiment",
	} {
		l.Write(filepath.Join(l.Dir, filepath.FromSlash(name)), text)
	}
	l.Write(filepath.Join(l.Dir, "configs", "native.yaml"), readFile(t, l.Exp))
	t.Chdir(l.Dir)
	t.Setenv("HOME", l.Dir)
	before := commandtest.Files(t, l.Dir)
	got := commandtest.Run(t, "train", "pretrain", "--dry-run", "--config", "configs/**/*.yaml", "--nproc-per-node", "2", "-o", "json")
	assert.Equal(t, 1, got.Code, "two of them have no plan")
	var all []report.Launch
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all), got.Stderr)
	require.Len(t, all, 4)
	assert.Equal(t, "configs/a/megatron.yaml", all[0].File)
	assert.Equal(t, "post_trainer", all[0].Module, "the stage that it has: %s", all[0].Error)
	require.Len(t, all[0].Processes, 2)
	assert.Contains(t, all[0].Processes[1].Command, " LOCAL_RANK=1 ")
	assert.Contains(t, all[0].Problems[0], "no source tree")
	assert.Contains(t, all[1].Error, `unknown framework "megatro"`)
	assert.Contains(t, all[2].Error, "modules: required key is missing")
	assert.Equal(t, "native", all[3].Framework)
	assert.Empty(t, all[3].Launcher)
	assert.NotContains(t, got.Out, "hf_abc")
	assert.Equal(t, before, commandtest.Files(t, l.Dir), "no file is made")

	got = commandtest.Run(t, "train", "--dry-run", "--config", "configs/*.yaml")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, "configs/native.yaml: native, pre_trainer, trains in primus\n")
	assert.True(t, strings.HasSuffix(got.Out, "\n3 experiments: 1 with a plan, 2 without\n"), got.Out)

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--config", "configs/*.yaml"}, "several experiments and -o json are for --dry-run"},
		{[]string{"--config", "configs/**/none.yaml", "--dry-run"}, `pattern "configs/**/none.yaml" matches no file`},
		{[]string{"--config", "configs/[.yaml", "--dry-run"}, "syntax error in pattern"},
		{[]string{"--config", "configs/*.yaml", "--dry-run", "--launcher", "slurm"}, "given a pattern of experiments, want one"},
	} {
		got := commandtest.Run(t, append([]string{"train"}, tt.args...)...)
		assert.Equal(t, 2, got.Code)
		assert.Contains(t, got.Stderr, tt.want)
	}
}

// TestEveryShippedExperiment plans the experiments of a checkout of Primus, which PRIMUS_CHECKOUT
// names. Those without a plan are of frameworks that primus does not have, or no experiments.
func TestEveryShippedExperiment(t *testing.T) {
	checkout := os.Getenv("PRIMUS_CHECKOUT")
	if checkout == "" {
		t.Skip("PRIMUS_CHECKOUT does not name a checkout of Primus")
	}
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	got := commandtest.Run(t, "train", "pretrain", "--dry-run", "--config", filepath.Join(checkout, "examples", "**", "*.yaml"), "-o", "json")
	var all []report.Launch
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all), got.Stderr)
	assert.Greater(t, len(all), 400)
	for _, l := range all {
		switch {
		case l.Error == "":
			if l.Framework != "native" && l.Framework != "dummy" {
				assert.NotEmpty(t, l.Processes, l.File)
			}
		case strings.Contains(l.Error, "unknown framework "), strings.Contains(l.Error, "required key is missing"), strings.Contains(l.Error, `"<YOUR_MODEL_YAML>" not found`):
		default:
			t.Errorf("%s: %s", l.File, l.Error)
		}
	}
}

// readFile returns the text of a file.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
