package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// primusTree writes a checkout of Primus with a few patches, and returns its folder.
func primusTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"primus/core/patches/__init__.py": `
from .engine import get_args, register_patch
`,
		"primus/core/patches/engine.py": `
def register_patch(patch_id, *, description="", backend=None, phase=None, condition=None, priority=50,
                   backend_versions=None, primus_versions=None, tags=None):
    return lambda handler: handler

def get_args(ctx):
    return ctx.extra.get("module_config").params
`,
		"primus/backends/megatron/patches/__init__.py": `
import importlib, pkgutil
for found in pkgutil.walk_packages(__path__, prefix=__name__ + "."):
    if found.name.endswith("_patches"):
        importlib.import_module(found.name)
`,
		"primus/backends/megatron/patches/loss_patches.py": `"""Loss that is scaled."""
from primus.core.patches import get_args, register_patch

@register_patch("megatron.loss", backend="megatron", phase="before_train", description="Scale the loss",
                condition=lambda ctx: getattr(get_args(ctx), "loss_factor", 1) != 1, tags=["loss"])
def patch_loss(ctx):
    import megatron.training.training as training
    original = training.train_step
    def train_step(*args):
        return original(*args)
    training.train_step = train_step

# @register_patch("megatron.old", backend="megatron")

@register_patch("megatron.gpu", backend="megatron", phase="setup", backend_versions=["<0.17"],
                condition=lambda ctx: __import__("torch").cuda.is_available())
def patch_gpu(ctx):
    import megatron.core.parallel_state as state
    state.device = "gpu"
`,
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return root
}

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

// megatronExperiment writes an experiment of megatron with one parameter, and returns its file.
func megatronExperiment(t *testing.T, param string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exp.yaml")
	text := "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\nmodules:\n  pre_trainer:\n    framework: megatron\n    " + param + "\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func TestPatchesCheck(t *testing.T) {
	root := primusTree(t)
	check := func(training string) (code int, out string) {
		got := primus(t, "patches", "check", "--repo", root, "--backend-repo", megatronTree(t, training))
		return got.code, got.out + got.stderr
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
	assert.Regexp(t, `parameters +megatron.loss +megatron.training.training.train_step +it takes b, what takes its place does not`, out)

	got := primus(t, "patches", "check", "--repo", root)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "--backend-repo is missing")
}

func TestPatchesScan(t *testing.T) {
	root := primusTree(t)
	got := primus(t, "patches", "scan", "--repo", root)
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "wraps megatron.training.training.train_step")
	assert.Contains(t, got.out, "2 patches in 2 registrations\n")
	assert.Contains(t, got.out, "commented out: megatron.old at primus/backends/megatron/patches/loss_patches.py:13\n")

	got = primus(t, "patches", "scan", "--repo", root, "--tag", "loss", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	var records []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.out), &records))
	require.Len(t, records, 1)
	assert.Equal(t, []any{"megatron.training.training.train_step"}, records[0]["symbols"])

	got = primus(t, "patches", "scan", "--repo", root, "-o", "md")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "## megatron\n\n| Patch |")
	assert.Contains(t, got.out, "| `megatron.loss` | Scale the loss | wraps megatron.training.training.train_step |")

	for want, args := range map[string][]string{
		"--repo is missing":               {"scan"},
		"no folder primus/backends":       {"scan", "--repo", t.TempDir()},
		"give the folder that git clone":  {"scan", "--repo", filepath.Join(root, "none")},
		`did you mean "before_train"?`:    {"scan", "--repo", root, "--phase", "before_tran"},
		`no patch of backend "jax", want`: {"scan", "--repo", root, "--backend", "jax"},
	} {
		got := primus(t, append([]string{"patches"}, args...)...)
		assert.NotZero(t, got.code, args)
		assert.Contains(t, got.stderr, want)
	}
}

func TestPatchesPlanOfCheckout(t *testing.T) {
	root := primusTree(t)
	plain, scaled := megatronExperiment(t, "seed: 1"), megatronExperiment(t, "loss_factor: 2")
	plan := func(args ...string) map[string]string {
		got := primus(t, append([]string{"patches", "plan", "--repo", root, "-o", "json"}, args...)...)
		require.Zero(t, got.code, got.stderr)
		var view struct {
			Patches []struct{ Patch, Verdict, Reason string }
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &view))
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

	diff := primus(t, "patches", "plan", "--repo", root, "--config", plain, "--diff", scaled)
	require.Zero(t, diff.code, diff.stderr)
	assert.Regexp(t, `before_train +megatron.loss +no +yes +loss_factor is not 1 \(loss_factor is 2\)`, diff.out)

	got := primus(t, "patches", "plan", "--config", plain, "--diff", scaled)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "--diff is about a checkout of Primus: want --repo DIR with it")
}

// What a plan takes for granted is said.
func TestPatchesPlanSaysWhatItAssumes(t *testing.T) {
	t.Parallel()
	root, exp := primusTree(t), megatronExperiment(t, "seed: 1")
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
		got := primus(t, append([]string{"patches", "plan", "--repo", root, "--config", exp}, tt.args...)...)
		require.Zero(t, got.code, got.stderr)
		assert.Equal(t, tt.defaults, strings.Contains(got.stderr, defaults), "%v: %s", tt.args, got.stderr)
		assert.Equal(t, tt.standIn, strings.Contains(got.stderr, standIn), "%v: %s", tt.args, got.stderr)
	}
}

func TestPatchesExplain(t *testing.T) {
	root := primusTree(t)
	got := primus(t, "patches", "explain", "--repo", root, "megatron.loss")
	require.Zero(t, got.code, got.stderr)
	for _, want := range []string{
		"megatron, phase before_train, priority 50, at primus/backends/megatron/patches/loss_patches.py:6\n",
		"function-wrap   megatron.training.training.train_step", "reads the parameters loss_factor", "why\n  Loss that is scaled.\n",
		"check that\n  megatron.training.training.train_step is there",
	} {
		assert.Contains(t, got.out, want)
	}
	got = primus(t, "patches", "explain", "--repo", root, "megatron.los")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, `no patch of id "megatron.los"; did you mean "megatron.loss"?`)

	got = primus(t, "patches", "find", "--repo", root, "TRAIN_STEP")
	require.Zero(t, got.code, got.stderr)
	assert.Regexp(t, `megatron.loss +target +megatron.training.training.train_step`, got.out)
	got = primus(t, "patches", "find", "--repo", root, "trainin")
	require.Zero(t, got.code, got.stderr)
	got = primus(t, "patches", "find", "--repo", root, "trainning")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, `no patch has the words "trainning"; did you mean "training"?`)
}
