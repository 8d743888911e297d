package command_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show returns what `primus config show -o json` prints.
func show(t *testing.T, args ...string) map[string]any {
	t.Helper()
	got := primus(t, append([]string{"config", "show", "-o", "json"}, args...)...)
	require.Zero(t, got.code, got.stderr)
	var document map[string]any
	decoder := json.NewDecoder(strings.NewReader(got.out))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&document))
	return document
}

// TestConfigShowAgreesWithPrimus runs experiments and presets of Primus as they are.
func TestConfigShowAgreesWithPrimus(t *testing.T) {
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	fixtures, err := filepath.Abs(filepath.Join(shared, "fixtures", "primus-config"))
	require.NoError(t, err)
	recordings, err := filepath.Glob(filepath.Join(fixtures, "golden", "*.json"))
	require.NoError(t, err)
	if len(recordings) == 0 {
		t.Skip("recorded fixtures are not here (set PRIMUS_SHARED)")
	}
	t.Chdir(unpack(t, filepath.Join(fixtures, "inputs.tar.gz")))
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

// unpack extracts an archive and returns its directory.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	require.NoError(t, err)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for members := tar.NewReader(compressed); ; {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(members)
			require.NoError(t, err)
			require.NoError(t, root.MkdirAll(filepath.Dir(header.Name), 0o755))
			require.NoError(t, root.WriteFile(header.Name, text, 0o644))
		}
	}
}

func TestConfigShow(t *testing.T) {
	l := newLab(t)
	document := show(t, "--config", l.exp, "lr=1e-4", "--seed", "7", "--flag")
	params, ok := document["modules"].(map[string]any)["pre_trainer"].(map[string]any)["params"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, json.Number("0.0001"), params["lr"])
	assert.Equal(t, json.Number("7"), params["seed"])
	assert.Equal(t, true, params["flag"])
	assert.Equal(t, l.path(), document["exp_root_path"])

	for _, give := range [][]string{{"-o", "toml"}, {"-otoml"}, {"-o=toml"}, {"--output=TOML"}} {
		got := primus(t, append([]string{"config", "show", "--exp", l.exp}, give...)...)
		require.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.out, "[modules.pre_trainer.params]\n", give)
	}
	got := primus(t, "config", "show", "--config", l.exp, "--module", "post_trainer", "--origin", "num_layers=3")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "num_layers: 3 # override 1 \"num_layers=3\"; over 1 ("+l.exp+":12:19); over 4 (embedded presets/models/native/llama_2M.yaml:3:13)\n")
	assert.NoDirExists(t, l.workspace)
	entries, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing was written")
}

func TestConfigShowReportsValuesWithoutEffect(t *testing.T) {
	l := newLab(t)
	l.edit("work_group: group", "work_group: group\nnum_layers: 9")
	got := primus(t, "config", "show", "--config", l.exp, "num_layer=2")
	assert.Zero(t, got.code)
	assert.Equal(t, 2, strings.Count(got.stderr, "WARN"), got.stderr)
	assert.Contains(t, got.stderr, "int 9 of the top level has no effect, int 1 of the parameters is kept ("+l.exp+":13:19)")
	assert.Contains(t, got.stderr, "did you mean \"num_layers\"?")

	for _, give := range [][]string{
		{"config", "show", "--config", l.exp, "--strict-config"},
		{"config", "show", "--config", l.exp, "--strict_config=true"},
		{"config", "validate", "--strict-config", l.exp},
		l.args("--strict-config"),
	} {
		got := primus(t, give...)
		assert.Equal(t, 1, got.code)
		assert.Contains(t, onlyError(t, got), l.exp+":2:13: modules.pre_trainer.num_layers: int 9 of the top level has no effect")
		assert.NoDirExists(t, l.workspace)
	}
}

func TestExportConfigLoadsBack(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"resolved.yaml", "below/resolved.json", "resolved.toml"} {
		file := filepath.Join(l.dir, name)
		got := l.train("train_iters=1", "lr=1e-3", "extra={'a': [1, 'x']}", "--export_config", file)
		require.Zero(t, got.code, got.stderr)
		want := show(t, "--config", l.exp, "train_iters=1", "lr=1e-3", "extra={'a': [1, 'x']}")
		assert.Equal(t, want, show(t, "--config", file, "--strict-config"))

		got = primus(t, "config", "diff", file, l.exp)
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.out, "modules.pre_trainer.params.train_iters\n  - 1  ("+file+":")
		got = primus(t, "config", "show", "--config", file, "--export-config", file)
		require.Zero(t, got.code, got.stderr)
		assert.Equal(t, want, show(t, "--config", file), "the export of an export is the same")
	}
	assert.Empty(t, leftovers(t, l.dir))

	l.write(filepath.Join(l.dir, "file"), "in the way")
	got := primus(t, "config", "show", "--config", l.exp, "--export-config", filepath.Join(l.dir, "file", "x.yaml"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "a part of the path is a file")
	got = primus(t, "config", "show", "--config", l.exp, "--export-config", filepath.Join(l.dir, "x.toml"), "a=[None]")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "TOML has no null in lists")
	assert.NoFileExists(t, filepath.Join(l.dir, "x.toml"))
}

func TestConfigDiff(t *testing.T) {
	l := newLab(t)
	other := filepath.Join(l.dir, "other.yaml")
	text, err := os.ReadFile(l.exp)
	require.NoError(t, err)
	l.write(other, string(text))
	got := primus(t, "config", "diff", l.exp, other)
	assert.Zero(t, got.code, got.stderr)
	assert.Empty(t, got.out+got.stderr)

	l.write(other, strings.Replace(string(text), "num_layers: 1", "num_layers: 1.0\n      added: [1, {a: b}]", 1))
	got = primus(t, "config", "diff", l.exp, other)
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stderr)
	assert.Equal(t, "modules.pre_trainer.params.num_layers\n  - 1  ("+l.exp+":12:19)\n  + 1.0  ("+other+":12:19)\n"+
		"modules.pre_trainer.params.added\n  + [1,{\"a\":\"b\"}]  ("+other+":13:14)\n", got.out)

	got = primus(t, "config", "diff", l.exp, filepath.Join(l.dir, "none.yaml"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "does not exist")
}

func TestConfigValidate(t *testing.T) {
	l := newLab(t)
	losing, broken, cycle := filepath.Join(l.dir, "losing.yaml"), filepath.Join(l.dir, "broken.yaml"), filepath.Join(l.dir, "cycle.yaml")
	text, err := os.ReadFile(l.exp)
	require.NoError(t, err)
	l.write(losing, "unread: 1\n"+string(text))
	l.write(broken, "user_name: [x]\nmodules: {evaluator: {}}\n")
	l.write(cycle, "extends: cycle.yaml\n")
	got := primus(t, "config", "validate", l.exp, losing, broken, cycle)
	assert.Equal(t, 1, got.code)
	assert.Equal(t, l.exp+": valid\n"+losing+": valid, 1 value without effect\n"+broken+": invalid\n"+cycle+": invalid\n"+
		"4 experiments: 2 valid, 1 of them with values without effect, 2 invalid\n", got.out)
	assert.Equal(t, 1, strings.Count(got.stderr, "WARN"), got.stderr)
	for _, part := range []string{broken + ":1:12: user_name: given a list of 1", "work_group: required key is missing", `unsupported module "evaluator"`, "extend each other"} {
		assert.Contains(t, got.stderr, part)
	}
	got = primus(t, "config", "validate", l.exp)
	assert.Zero(t, got.code)
	assert.Equal(t, l.exp+": valid\n1 experiment: 1 valid, 0 of them with values without effect, 0 invalid\n", got.out)
}

func TestConfigErrorsOfOutput(t *testing.T) {
	l := newLab(t)
	for _, args := range [][]string{{"config", "show", "--config", l.exp}, {"config", "validate", l.exp}} {
		root := command.NewRoot(command.Streams{Out: fullDisk{}, Err: io.Discard})
		root.SetArgs(args)
		err := root.Execute()
		require.ErrorIs(t, err, io.ErrShortWrite)
	}
}
