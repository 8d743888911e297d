package patches_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// megatronTree writes the source of a framework, and returns its folder.
func megatronTree(t *testing.T, training string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"megatron/core/__init__.py": "", "megatron/core/parallel_state.py": "device = None\n", "megatron/training/training.py": training,
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return root
}

func TestPatchesCheck(t *testing.T) {
	root := commandtest.PrimusTree(t)
	check := func(training string) (code int, out string) {
		got := commandtest.Run(t, "patches", "check", "--repo", root, "--backend-repo", megatronTree(t, training))
		return got.Code, got.Out + got.Stderr
	}
	code, out := check("def train_step(a, b):\n    pass\n")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "2 targets: 2 there\n")
	code, out = check("def train_steps(a, b):\n    pass\n")
	assert.Equal(t, 1, code)
	assert.Regexp(t, `missing +megatron.loss +megatron.training.training.train_step +no train_step in megatron/training/training.py; `+
		`renamed to megatron.training.training.train_steps\?`, out)
	code, out = check("def train_step(a, *, b):\n    pass\n")
	assert.Equal(t, 1, code)
	assert.Regexp(t, `parameters +megatron.loss +megatron.training.training.train_step +it takes b, which the replacement does not take`, out)

	got := commandtest.Run(t, "patches", "check", "--repo", root)
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "--backend-repo is missing")
}

func TestPatchesScan(t *testing.T) {
	root := commandtest.PrimusTree(t)
	got := commandtest.Run(t, "patches", "scan", "--repo", root)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "wraps megatron.training.training.train_step")
	assert.Contains(t, got.Out, "2 patches in 2 registrations\n")
	assert.Contains(t, got.Out, "commented out: megatron.old at primus/backends/megatron/patches/loss_patches.py:13\n")

	got = commandtest.Run(t, "patches", "scan", "--repo", root, "--tag", "loss", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var records []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Out), &records))
	require.Len(t, records, 1)
	assert.Equal(t, []any{"megatron.training.training.train_step"}, records[0]["symbols"])

	got = commandtest.Run(t, "patches", "scan", "--repo", root, "-o", "md")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "## megatron\n\n| Patch |")
	assert.Contains(t, got.Out, "| `megatron.loss` | Scale the loss | wraps megatron.training.training.train_step |")

	for want, args := range map[string][]string{
		"--repo is missing":               {"scan"},
		"no folder primus/backends":       {"scan", "--repo", t.TempDir()},
		"give the folder that git clone":  {"scan", "--repo", filepath.Join(root, "none")},
		`did you mean "before_train"?`:    {"scan", "--repo", root, "--phase", "before_tran"},
		`no patch of backend "jax", want`: {"scan", "--repo", root, "--backend", "jax"},
	} {
		got := commandtest.Run(t, append([]string{"patches"}, args...)...)
		assert.NotZero(t, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
}

func TestPatchesPlanOfCheckout(t *testing.T) {
	root := commandtest.PrimusTree(t)
	plain, scaled := commandtest.MegatronExperiment(t, "seed: 1"), commandtest.MegatronExperiment(t, "loss_factor: 2")
	plan := func(args ...string) map[string]string {
		got := commandtest.Run(t, append([]string{"patches", "plan", "--repo", root, "-o", "json"}, args...)...)
		require.Zero(t, got.Code, got.Stderr)
		var view struct {
			Patches []struct{ Patch, Verdict, Reason string }
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &view))
		verdicts := map[string]string{}
		for _, p := range view.Patches {
			verdicts[p.Patch] = p.Verdict
			assert.NotEmpty(t, p.Reason)
		}
		return verdicts
	}
	assert.Equal(t, map[string]string{"megatron.loss": "no", "megatron.gpu": "depends"}, plan("--config", plain))
	assert.Equal(t, map[string]string{"megatron.loss": "yes", "megatron.gpu": "no"}, plan("--config", scaled, "--backend-version", "0.17.0"))
	assert.Equal(t, map[string]string{"megatron.loss": "no", "megatron.gpu": "no"}, plan("--config", scaled, "--patches", "none"))
	t.Setenv("PRIMUS_PATCHES", "megatron.gpu")
	assert.Equal(t, "no", plan("--config", scaled)["megatron.loss"])
	assert.Equal(t, "yes", plan("--config", scaled, "--patches", "all")["megatron.loss"], "the flag comes before the variable")
	t.Setenv("PRIMUS_PATCHES", "")

	diff := commandtest.Run(t, "patches", "plan", "--repo", root, "--config", plain, "--diff", scaled)
	require.Zero(t, diff.Code, diff.Stderr)
	assert.Regexp(t, `before_train +megatron.loss +no +yes +loss_factor is not 1 \(loss_factor is 2\)`, diff.Out)

	got := commandtest.Run(t, "patches", "plan", "--config", plain, "--diff", scaled)
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "--diff is about a checkout of Primus: want --repo DIR with it")
}

// What a plan takes for granted is said.
func TestPatchesPlanSaysWhatItAssumes(t *testing.T) {
	t.Parallel()
	root, exp := commandtest.PrimusTree(t), commandtest.MegatronExperiment(t, "seed: 1")
	const defaults, standIn = "defaults of another version", "has no module post_trainer, so this is about pre_trainer"
	for _, tt := range []struct {
		args              []string
		defaults, standIn bool
	}{
		{args: []string{"--backend-version", "0.16.0rc0"}},
		{args: []string{"--backend-version", "0.17.0"}, defaults: true},
		{args: []string{"--backend-version", "0.16.0", "--diff-version", "0.17"}, defaults: true},
		{args: []string{"--posttrain"}, standIn: true},
	} {
		got := commandtest.Run(t, append([]string{"patches", "plan", "--repo", root, "--config", exp}, tt.args...)...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Equal(t, tt.defaults, strings.Contains(got.Stderr, defaults), "%v: %s", tt.args, got.Stderr)
		assert.Equal(t, tt.standIn, strings.Contains(got.Stderr, standIn), "%v: %s", tt.args, got.Stderr)
	}
}

func TestPatchesExplain(t *testing.T) {
	root := commandtest.PrimusTree(t)
	got := commandtest.Run(t, "patches", "explain", "--repo", root, "megatron.loss")
	require.Zero(t, got.Code, got.Stderr)
	for _, want := range []string{
		"megatron, phase before_train, priority 50, at primus/backends/megatron/patches/loss_patches.py:6\n",
		"function-wrap   megatron.training.training.train_step", "reads the parameters loss_factor", "why\n  Loss that is scaled.\n",
		"check that\n  megatron.training.training.train_step exists",
	} {
		assert.Contains(t, got.Out, want)
	}
	got = commandtest.Run(t, "patches", "explain", "--repo", root, "megatron.los")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `no patch of id "megatron.los"; did you mean "megatron.loss"?`)

	got = commandtest.Run(t, "patches", "find", "--repo", root, "TRAIN_STEP")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `megatron.loss +target +megatron.training.training.train_step`, got.Out)
	got = commandtest.Run(t, "patches", "find", "--repo", root, "trainin")
	require.Zero(t, got.Code, got.Stderr)
	got = commandtest.Run(t, "patches", "find", "--repo", root, "trainning")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, `no patch has the words "trainning"; did you mean "training"?`)
}
