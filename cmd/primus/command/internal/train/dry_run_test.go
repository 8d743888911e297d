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

func TestDryRun(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Edit("modules:", "env:\n  MY_VARIABLE: ${UNSET:value}\n  HF_TOKEN: geheim\nmodules:")
	t.Chdir(l.Dir)
	before, environ := commandtest.Files(t, l.Dir), os.Environ()
	got := l.Train("--dry-run", "--verbose", "lr=1e-2", "z_loss_coeff=1e-3", "batch_size=4", "deterministic_mode=true")
	require.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, before, commandtest.Files(t, l.Dir), "no file is made")
	assert.Equal(t, environ, os.Environ(), "no variable is set")
	for _, want := range []string{
		"framework   native, version 0.2.0", "trainer     NativePretrainTrainer, stage pretrain", "rank 0 of 1",
		"exp_name: exp", `override 1 "lr=1e-2"`, "env block of the experiment", "native.z_loss", "condition not met: lr_layer_decay < 1",
		"argument micro_batch_size: patch native.args.old_names keeps 4", "Setup -> Init",
	} {
		assert.Contains(t, got.Out, want)
	}
	assert.Regexp(t, `(?m)^MY_VARIABLE +value +- +env block of the experiment$`, got.Out)
	assert.Regexp(t, `(?m)^micro_batch_size +4 +override 3 "batch_size=4"$`, got.Out)
	assert.NotContains(t, got.Out, "geheim")
	assert.NotContains(t, got.Out, "without an implementation")

	got = l.Train("--dry-run", "--verbose", "--per-op", "swiglu=vendor:acme")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "\nops that the policy leaves without an implementation; training that calls one fails\n\n"+
		"  swiglu: default.flagos: not in the per-op order vendor:acme (flag --per-op at 1)\n")
	assert.Contains(t, got.Out, "num_nodes_env_key: NNODES\n", "the name of a variable is no secret")

	// Without details it fits on a screen, and problems come before anything else.
	short := l.Train("--dry-run", "--per-op", "swiglu=vendor:acme", "lr=1e-2")
	require.Zero(t, short.Code, short.Stderr)
	assert.Less(t, strings.Count(short.Out, "\n"), 40, short.Out)
	assert.Less(t, strings.Index(short.Out, "ops that the policy leaves"), strings.Index(short.Out, "experiment  "))
	for _, want := range []string{"  model        ", " parameters, vocabulary of 256 (tokens are the 256 bytes); ", "  memory ", "  ops          default.flagos ", "\n  lr: ", "--verbose adds the resolved configuration, "} {
		assert.Contains(t, short.Out, want)
	}

	// A run that nothing is in the way of has a time, and what is unusual about it.
	got = l.Train("--dry-run", "eval_interval=0", "save_interval=0")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^  time +about \d+s for all steps at \d+ tokens/s, measured now, without reading text and saving$`, got.Out)
	assert.Regexp(t, `(?m)^  unusual +.*nothing is evaluated \(eval_interval 0\); nothing is saved before the end \(save_interval 0\)`, got.Out)
	assert.NotContains(t, got.Out, "derived ")
	minimal := filepath.Join(l.Dir, "mini.yaml")
	l.Write(minimal, "modules:\n  pre_trainer:\n    framework: native\n    config: pre_trainer.yaml\n    model: llama_2M.yaml\n    overrides: {train_data_path: "+l.Text+"}\n")
	got = commandtest.Run(t, "train", "--dry-run", "--config", minimal)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "\nderived     work_group local, user_name local, exp_name mini, workspace ./output\n")

	got = l.Train("--dry-run", "num_layers=0")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "num_layers: given 0")
	assert.NoDirExists(t, l.Workspace)
}

func TestBackendWithoutItsSourceTree(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Write(l.Exp, "work_group: g\nuser_name: u\nexp_name: e\nworkspace: "+l.Workspace+"\nmodules:\n  pre_trainer:\n    framework: megatron\n    lr: 1.0e-4\n")
	t.Setenv("PRIMUS_THIRDPARTY_DIR", l.Dir)
	got := l.Train()
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "framework megatron: no source tree in third_party/Megatron-LM")
	assert.NoDirExists(t, l.Workspace)
	got = l.Train("--dry-run")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "problem: framework megatron: no source tree in third_party/Megatron-LM")
	assert.Contains(t, got.Out, "trainer     MegatronPretrainTrainer, stage pretrain")
	const unknown = "Primus has more patches for megatron, which its Python process makes: primus patches plan --repo DIR --config FILE"
	assert.Contains(t, got.Out, unknown)
	got = commandtest.Run(t, "patches", "plan", "--config", l.Exp)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, unknown)
	assert.NotContains(t, commandtest.Run(t, "patches", "plan", "--config", commandtest.NewLab(t).Exp).Out, "more patches")
}
