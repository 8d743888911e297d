package config_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each example has a name that --config takes anywhere, and a copy is the same experiment.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	got := commandtest.Run(t, "examples", "list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var all []struct{ Name, File, Text string }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
	require.Greater(t, len(all), 10)
	table := commandtest.Run(t, "examples", "list").Out
	views := map[string]map[string]any{}
	for _, e := range all {
		assert.Contains(t, table, e.Name)
		assert.NotEmpty(t, e.Text, e.Name)
		views[e.Name] = show(t, "--config", e.Name)
	}
	got = commandtest.Run(t, "examples", "copy")
	require.Zero(t, got.Code, got.Stderr)
	for _, e := range all {
		assert.Contains(t, got.Out, e.File)
		assert.Equal(t, views[e.Name], show(t, "--config", e.File), e.Name)
	}
	require.FileExists(t, "examples/native/data/chat.jsonl")
	require.Zero(t, commandtest.Run(t, "examples", "copy", "llama_2M-sft").Code, "files that are the same are no hindrance")

	mine := all[0].File
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	require.NoError(t, os.Remove(all[1].File))
	got = commandtest.Run(t, "examples", "copy")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, mine+"; want --force, or another --to")
	assert.NoFileExists(t, all[1].File, "nothing is written by halves")
	require.Zero(t, commandtest.Run(t, "examples", "copy", "--force").Code)

	got = commandtest.Run(t, "examples", "copy", "lama_2M-sft")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `did you mean "llama_2M-sft"?`)
	got = commandtest.Run(t, "config", "show", "--config", "lama_2M-sft")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, `did you mean "llama_2M-sft"?`)
	require.NoError(t, os.Mkdir("llama_2M-sft", 0o755))
	got = commandtest.Run(t, "config", "show", "--config", "llama_2M-sft")
	assert.Equal(t, 1, got.Code, "what is on the disk comes first")
}

// - is an experiment on standard input, which other processes of a run cannot read.
func TestExperimentOnStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(text string, args ...string) (string, int) {
		var out strings.Builder
		code := command.Main(args, command.Streams{Out: &out, Err: &out, In: strings.NewReader(text)})
		return out.String(), code
	}
	const minimal = "modules:\n  pre_trainer:\n    framework: native\n    config: pre_trainer\n    model: llama_2M\n"
	out, code := run(minimal, "config", "show", "--config", "-", "lr=1")
	require.Zero(t, code, out)
	assert.Contains(t, out, "exp_name: stdin")
	out, code = run(minimal, "config", "validate", "-")
	require.Zero(t, code, out)
	for _, faulty := range []struct{ text, want string }{
		{"", "standard input is empty"}, {"a: [", "stdin.yaml:1"}, {"modules: {pre_trainer: {framework: megatron}}", "stdin.yaml: work_group: required key is missing"},
	} {
		out, code = run(faulty.text, "config", "show", "--config", "-")
		assert.NotZero(t, code)
		assert.Contains(t, out, faulty.want)
	}
	for _, more := range [][]string{{"--nproc", "2"}, {"--max-restarts", "1"}, {"--launcher", "slurm"}, {"--nodes", "2"}} {
		out, code = run(minimal, append([]string{"train", "--config", "-"}, more...)...)
		assert.Equal(t, 2, code)
		assert.Contains(t, out, "write the experiment to a file", more)
	}
	code = command.Main([]string{"config", "show", "--config", "-"}, command.Streams{Out: io.Discard, Err: io.Discard, In: iotest.ErrReader(io.ErrClosedPipe)})
	assert.Equal(t, 1, code)
}

// The presets that are listed are those that experiments find, of all roots, each once.
func TestPresets(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("mine/models/native", 0o755))
	require.NoError(t, os.WriteFile("mine/models/native/llama_2M.yaml", []byte("# Mine. And more.\nnum_layers: 1\n"), 0o600))
	got := commandtest.Run(t, "presets", "list", "-o", "json", "--configs-dir", "mine")
	require.Zero(t, got.Code, got.Stderr)
	var all []struct{ Kind, Framework, Name, Root, Text string }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
	seen := map[string]bool{}
	for _, p := range all {
		name := p.Kind + "s/" + p.Framework + "/" + p.Name
		require.False(t, seen[name], name)
		seen[name] = true
		if name == "models/native/llama_2M" {
			assert.Equal(t, "Mine.", p.Text)
			assert.Equal(t, "mine", p.Root)
		}
		shown := commandtest.Run(t, "presets", "show", strings.ReplaceAll(name, "//", "/"), "--configs-dir", "mine")
		assert.Zero(t, shown.Code, shown.Stderr)
		assert.Contains(t, shown.Out, strings.Fields(p.Text)[0])
	}
	assert.Contains(t, seen, "modules/native/pre_trainer")
	assert.Contains(t, seen, "platforms//platform_local")
	assert.Contains(t, commandtest.Run(t, "presets", "list", "--framework", "native").Out, "gpt2_10M")
	got = commandtest.Run(t, "presets", "show", "llama_2m")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `did you mean "llama_2M"?`)
	assert.Equal(t, 2, commandtest.Run(t, "presets", "list", "--framework", "nativ").Code)
	got = commandtest.Run(t, "presets", "show")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "given 0 names, want that of one preset")
}
