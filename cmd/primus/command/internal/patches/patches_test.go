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

func TestPatchesList(t *testing.T) {
	all := commandtest.Run(t, "patches", "list")
	require.Zero(t, all.Code, all.Stderr)
	assert.Contains(t, all.Out, "what it does")
	assert.Contains(t, all.Out, "native.z_loss")

	native := commandtest.Run(t, "patches", "list", "--backend", "native", "--phase", "setup", "-o", "json")
	require.Zero(t, native.Code, native.Stderr)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(native.Out), &rows))
	require.NotEmpty(t, rows)
	for _, r := range rows {
		assert.Equal(t, "native", r["backend"])
		assert.Equal(t, "setup", r["phase"])
		assert.Regexp(t, `^internal/native/patches/\w+\.go$`, r["file"])
		assert.NotZero(t, r["line"])
		for _, field := range []string{"description", "condition", "effects", "styles"} {
			assert.NotEmpty(t, r[field], field)
		}
	}

	md := commandtest.Run(t, "patches", "list", "-o", "md")
	require.Zero(t, md.Code, md.Stderr)
	assert.Contains(t, md.Out, "## native\n\n| Patch | What it does | Patch logic | Code location | How to enable |\n| --- | --- | --- | --- | --- |\n")
	assert.Regexp(t, "(?m)^\\| `native.z_loss` \\| .* \\| wraps native.loss \\| `internal/native/patches/z_loss.go:\\d+` \\| z_loss_coeff > 0; phase setup \\|$", md.Out)
	assert.True(t, strings.HasSuffix(md.Out, "on top of each patch's own condition.\n"))

	for args, want := range map[string]string{
		"--backend natvie": `unknown framework "natvie"`,
		"--phase befor":    `unknown phase "befor"`,
		"-o yaml":          `--output: given "yaml", want table, md or json`,
		"stray":            `unexpected argument "stray"`,
		"--backend nativ":  `did you mean "native"?`,
		"--phase setpu":    `did you mean "setup"?`,
		"--backnd native":  "did you mean --backend?",
	} {
		got := commandtest.Run(t, append([]string{"patches", "list"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
}

func TestPatchesPlan(t *testing.T) {
	l := commandtest.NewLab(t)
	plan := func(args ...string) (view struct {
		Framework string
		Patches   []struct {
			Patch, Phase, Reason string
			Order                int
		}
		Contended []any
	}) {
		t.Helper()
		got := commandtest.Run(t, append([]string{"patches", "plan", "--config", l.Exp, "-o", "json"}, args...)...)
		require.Zero(t, got.Code, got.Stderr)
		require.NoError(t, json.Unmarshal([]byte(got.Out), &view))
		return view
	}
	state := func(args ...string) map[string]string {
		reasons := map[string]string{}
		for _, p := range plan(args...).Patches {
			reasons[p.Patch] = p.Reason
			assert.Equal(t, p.Order > 0, p.Reason == "", p.Patch)
		}
		return reasons
	}
	reasons := state("z_loss_coeff=1e-4", "batch_size=2")
	assert.Empty(t, reasons["native.z_loss"])
	assert.Empty(t, reasons["native.args.old_names"])
	assert.Equal(t, "condition not met: lr_layer_decay < 1", reasons["native.layerwise_lr_decay"])
	assert.Equal(t, "it is for backend dummy, not for native", reasons["dummy.log_steps"])
	reasons = state("z_loss_coeff=1e-4", "batch_size=2", "--patches", "native.args.old_names")
	assert.Equal(t, "not listed in PRIMUS_PATCHES", reasons["native.z_loss"])
	t.Setenv("PRIMUS_PATCHES", "none")
	assert.Equal(t, "not listed in PRIMUS_PATCHES", state("batch_size=2")["native.args.old_names"])
	t.Setenv("PRIMUS_PATCHES", " , ")
	assert.Equal(t, "not listed in PRIMUS_PATCHES", state("batch_size=2")["native.args.old_names"])
	t.Setenv("PRIMUS_PATCHES", " ALL ")
	assert.Empty(t, state("batch_size=2")["native.args.old_names"])
	assert.NoDirExists(t, l.Workspace)
}

func TestPatchesInTrain(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=1", "z_loss_coeff=1e-3", "--patches", "native.zloss,native.z_loss")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, `WARN  PRIMUS_PATCHES: no patch "native.zloss"; did you mean "native.z_loss"?`)
	assert.Contains(t, got.Stderr, "[Patch] ✓ Applied: native.z_loss (priority=50)")
	log, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "[Patch] Pre-filtered 0 patches (out of 1 total) for native/before_train", "the file has it also when nothing runs")
	assert.NotContains(t, got.Stderr, "native/before_train")
	assert.Regexp(t, `patches     1 applied, 0 failed, \d+ skipped`, got.Out)

	got = commandtest.Run(t, "patches", "plan", "--run", filepath.Dir(l.Path("train.log")))
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `setup\s+native\.z_loss\s+primus\s+applied`, got.Out)
	assert.Regexp(t, `native\.layerwise_lr_decay\s+primus\s+skipped\s+not listed in PRIMUS_PATCHES`, got.Out)
	got = commandtest.Run(t, "patches", "plan", "--run", t.TempDir())
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "there is no dispatch.json: want the directory of a run that has ended")
	got = commandtest.Run(t, "patches", "plan", "--run", ".", "lr=1")
	assert.Equal(t, 2, got.Code)

	got = l.Train("train_iters=1", "z_loss_coeff=much")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), `Training execution failed: patch "native.z_loss": condition: override 2 "z_loss_coeff=much": z_loss_coeff: given string "much", want a number`)
}
