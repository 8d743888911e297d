package commandtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// PrimusTree writes a checkout of Primus with a few patches, and returns its folder.
func PrimusTree(t *testing.T) string {
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

// MegatronExperiment writes an experiment of megatron with one parameter, and returns its file.
func MegatronExperiment(t *testing.T, param string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exp.yaml")
	text := "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\nmodules:\n  pre_trainer:\n    framework: megatron\n    " + param + "\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}
