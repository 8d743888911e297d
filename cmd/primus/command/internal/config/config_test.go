package config_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show returns what `primus config show -o json` prints.
func show(t *testing.T, args ...string) map[string]any {
	t.Helper()
	got := commandtest.Run(t, append([]string{"config", "show", "-o", "json"}, args...)...)
	require.Zero(t, got.Code, got.Stderr)
	var document map[string]any
	decoder := json.NewDecoder(strings.NewReader(got.Out))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&document))
	return document
}

// TestConfigShowAgreesWithPrimus runs experiments and presets of Primus as they are.
func TestConfigShowAgreesWithPrimus(t *testing.T) {
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "..", "..", "shared")
	}
	fixtures, err := filepath.Abs(filepath.Join(shared, "fixtures", "primus-config"))
	require.NoError(t, err)
	recordings, err := filepath.Glob(filepath.Join(fixtures, "golden", "*.json"))
	require.NoError(t, err)
	if len(recordings) == 0 {
		t.Skip("recorded fixtures are not here (set PRIMUS_SHARED)")
	}
	t.Chdir(primustest.Unpack(t, filepath.Join(fixtures, "inputs.tar.gz")))
	t.Setenv("HOME", "/nonexistent")
	t.Setenv("PRIMUS_CONFIGS_DIR", "missing"+string(os.PathListSeparator)+filepath.Join("primus", "configs"))
	require.NoError(t, os.Mkdir("missing", 0o755))
	const everyFifteenth = 15
	for i := 0; i < len(recordings); i += everyFifteenth {
		experiment := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(recordings[i]), ".json"), "__", "/")
		text, err := os.ReadFile(recordings[i])
		require.NoError(t, err)
		var want map[string]any
		require.NoError(t, json.Unmarshal(text, &want))
		got := show(t, "--config", experiment)
		for _, key := range []string{"exp_meta_info", "exp_root_path", "modules", "platform"} {
			ours, err := json.Marshal(got[key])
			require.NoError(t, err)
			theirs, err := json.Marshal(want[key])
			require.NoError(t, err)
			assert.JSONEq(t, string(theirs), string(ours), "%s: %s", experiment, key)
		}
	}
}

func TestConfigShow(t *testing.T) {
	l := commandtest.NewLab(t)
	document := show(t, "--config", l.Exp, "lr=1e-4", "--seed", "7", "--flag")
	params, ok := document["modules"].(map[string]any)["pre_trainer"].(map[string]any)["params"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, json.Number("0.0001"), params["lr"])
	assert.Equal(t, json.Number("7"), params["seed"])
	assert.Equal(t, true, params["flag"])
	assert.Equal(t, l.Path(), document["exp_root_path"])

	for _, give := range [][]string{{"-o", "toml"}, {"-otoml"}, {"-o=toml"}, {"--output=TOML"}} {
		got := commandtest.Run(t, append([]string{"config", "show", "--exp", l.Exp}, give...)...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Contains(t, got.Out, "[modules.pre_trainer.params]\n", give)
	}
	got := commandtest.Run(t, "config", "show", "--config", l.Exp, "--module", "post_trainer", "--origin", "num_layers=3")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "num_layers: 3 # override 1 \"num_layers=3\"; over 1 ("+l.Exp+":12:19); over 4 (embedded presets/models/native/llama_2M.yaml:3:13)\n")
	assert.NoDirExists(t, l.Workspace)
	entries, err := os.ReadDir(l.Dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing was written")
}

func TestConfigShowReportsValuesWithoutEffect(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Edit("work_group: group", "work_group: group\nnum_layers: 9")
	got := commandtest.Run(t, "config", "show", "--config", l.Exp, "num_layer=2")
	assert.Zero(t, got.Code)
	assert.Equal(t, 2, strings.Count(got.Stderr, "WARN"), got.Stderr)
	assert.Contains(t, got.Stderr, "int 9 of the top level has no effect, int 1 of the parameters is kept ("+l.Exp+":13:19)")
	assert.Contains(t, got.Stderr, "did you mean \"num_layers\"?")

	for _, give := range [][]string{
		{"config", "show", "--config", l.Exp, "--strict-config"},
		{"config", "show", "--config", l.Exp, "--strict_config=true"},
		{"config", "validate", "--strict-config", l.Exp},
		l.Args("--strict-config"),
	} {
		got := commandtest.Run(t, give...)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, commandtest.OnlyError(t, got), l.Exp+":2:13: modules.pre_trainer.num_layers: int 9 of the top level has no effect")
		assert.NoDirExists(t, l.Workspace)
	}
}

func TestExportConfigLoadsBack(t *testing.T) {
	l := commandtest.NewLab(t)
	for _, name := range []string{"resolved.yaml", "below/resolved.json", "resolved.toml"} {
		file := filepath.Join(l.Dir, name)
		got := l.Train("train_iters=1", "lr=1e-3", "extra={'a': [1, 'x']}", "--strict-config=false", "--export_config", file)
		require.Zero(t, got.Code, got.Stderr)
		want := show(t, "--config", l.Exp, "train_iters=1", "lr=1e-3", "extra={'a': [1, 'x']}")
		assert.Equal(t, want, show(t, "--config", file, "--strict-config"))

		got = commandtest.Run(t, "config", "diff", file, l.Exp)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Out, "modules.pre_trainer.params.train_iters\n  - 1  ("+file+":")
		got = commandtest.Run(t, "config", "show", "--config", file, "--export-config", file)
		require.Zero(t, got.Code, got.Stderr)
		assert.Equal(t, want, show(t, "--config", file), "the export of an export is the same")
	}
	assert.Empty(t, commandtest.Leftovers(t, l.Dir))

	l.Write(filepath.Join(l.Dir, "file"), "in the way")
	got := commandtest.Run(t, "config", "show", "--config", l.Exp, "--export-config", filepath.Join(l.Dir, "file", "x.yaml"))
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "a part of the path is a file")
	got = commandtest.Run(t, "config", "show", "--config", l.Exp, "--export-config", filepath.Join(l.Dir, "x.toml"), "a=[None]")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "TOML has no null in lists")
	assert.NoFileExists(t, filepath.Join(l.Dir, "x.toml"))
}

func TestConfigDiff(t *testing.T) {
	l := commandtest.NewLab(t)
	other := filepath.Join(l.Dir, "other.yaml")
	text, err := os.ReadFile(l.Exp)
	require.NoError(t, err)
	l.Write(other, string(text))
	got := commandtest.Run(t, "config", "diff", l.Exp, other)
	assert.Zero(t, got.Code, got.Stderr)
	assert.Empty(t, got.Out+got.Stderr)

	l.Write(other, strings.Replace(string(text), "num_layers: 1", "num_layers: 1.0\n      added: [1, {a: b}]", 1))
	got = commandtest.Run(t, "config", "diff", l.Exp, other)
	assert.Equal(t, 1, got.Code)
	assert.Empty(t, got.Stderr)
	assert.Equal(t, "modules.pre_trainer.params.num_layers\n  - 1  ("+l.Exp+":12:19)\n  + 1.0  ("+other+":12:19)\n"+
		"modules.pre_trainer.params.added\n  + [1,{\"a\":\"b\"}]  ("+other+":13:14)\n", got.Out)

	got = commandtest.Run(t, "config", "diff", l.Exp, filepath.Join(l.Dir, "none.yaml"))
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "does not exist")
}

func TestConfigValidate(t *testing.T) {
	l := commandtest.NewLab(t)
	losing, broken, cycle := filepath.Join(l.Dir, "losing.yaml"), filepath.Join(l.Dir, "broken.yaml"), filepath.Join(l.Dir, "cycle.yaml")
	text, err := os.ReadFile(l.Exp)
	require.NoError(t, err)
	l.Write(losing, "unread: 1\n"+string(text))
	l.Write(broken, "user_name: [x]\nmodules: {evaluator: {}}\n")
	l.Write(cycle, "extends: cycle.yaml\n")
	got := commandtest.Run(t, "config", "validate", l.Exp, losing, broken, cycle)
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, l.Exp+": valid\n"+losing+": valid, 1 value without effect\n"+broken+": invalid\n"+cycle+": invalid\n"+
		"4 experiments: 2 valid, 1 of them with values without effect, 2 invalid\n", got.Out)
	assert.Equal(t, 1, strings.Count(got.Stderr, "WARN"), got.Stderr)
	for _, part := range []string{broken + ":1:12: user_name: given a list of 1", "work_group: required key is missing", `unsupported module "evaluator"`, "extend each other"} {
		assert.Contains(t, got.Stderr, part)
	}
	got = commandtest.Run(t, "config", "validate", l.Exp)
	assert.Zero(t, got.Code)
	assert.Equal(t, l.Exp+": valid\n1 experiment: 1 valid, 0 of them with values without effect, 0 invalid\n", got.Out)
}

// The plugins that an experiment names are loaded, so the vendors that they bring are known.
func TestConfigValidateLoadsPlugins(t *testing.T) {
	lib := commandtest.BuildPlugin(t)
	validate := func(policy string) commandtest.Outcome {
		l := commandtest.NewLab(t)
		l.InModule(policy)
		return commandtest.RunChild(t, nil, "config", "validate", l.Exp)
	}
	const perOp = "    te_fl_per_op: residual_add=vendor:acme\n"
	got := validate("    te_fl_plugin_modules: " + lib + "\n" + perOp)
	assert.Zero(t, got.Code)
	assert.Empty(t, got.Stderr)
	got = validate(perOp)
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, `names vendor "acme"`)
	got = validate("    te_fl_plugin_modules: /absent/libacme.so\n")
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, "WARN  not used: plugin /absent/libacme.so: ")
	got = validate("    te_fl_prefer: fastest\n")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "te_fl_prefer")
	assert.Contains(t, got.Out, ": invalid\n")
}

// An experiment finds the presets of the checkout of Primus that it lies in, wherever the program
// is started; those of --configs-dir come first.
func TestPresetsOfTheCheckout(t *testing.T) {
	l := commandtest.NewLab(t)
	presets := func(checkout, layers string) string {
		root := filepath.Join(l.Dir, checkout, "primus", "configs")
		l.Write(filepath.Join(root, "modules", "demo", "pre_trainer.yaml"), "lr: 1\n")
		l.Write(filepath.Join(root, "models", "demo", "tiny.yaml"), "num_layers: "+layers+"\n")
		exp := filepath.Join(l.Dir, checkout, "examples", "demo", "exp.yaml")
		l.Write(exp, "work_group: w\nuser_name: u\nexp_name: e\nworkspace: o\nmodules:\n  pre_trainer: {framework: demo, config: pre_trainer.yaml, model: tiny.yaml}\n")
		return exp
	}
	a, b := presets("a", "2"), presets("b", "3")
	got := commandtest.Run(t, "config", "diff", a, b)
	assert.Equal(t, 1, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "num_layers\n  - 2  ("+filepath.Join(l.Dir, "a"))
	assert.Contains(t, got.Out, "  + 3  ("+filepath.Join(l.Dir, "b"))

	got = commandtest.Run(t, "config", "show", "--config", a, "--configs-dir", filepath.Join(l.Dir, "b", "primus", "configs"))
	assert.Contains(t, got.Out, "num_layers: 3")

	t.Chdir(filepath.Join(l.Dir, "a"))
	got = commandtest.Run(t, "config", "show", "--origin", "--config", filepath.Join("examples", "demo", "exp.yaml"))
	assert.Contains(t, got.Out, "# primus/configs/models/demo/tiny.yaml:1:13")
}

func TestConfigErrorsOfOutput(t *testing.T) {
	l := commandtest.NewLab(t)
	for _, args := range [][]string{{"config", "show", "--config", l.Exp}, {"config", "validate", l.Exp}} {
		require.ErrorIs(t, commandtest.Fails(args...), io.ErrShortWrite)
	}
}
