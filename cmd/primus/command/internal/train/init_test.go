package train_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prose returns text of about so many bytes, of words that repeat.
func prose(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "The %dth line says that kernel %d adds %d rows.\n", i, i%17, i*i%101)
		if i%20 == 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// A text becomes an experiment, a run and a conversation by one command and the one that it names.
func TestTrainText(t *testing.T) {
	primustest.Long(t, "it trains for a second")
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("my notes.txt", []byte(prose(150_000)), 0o600))
	got := commandtest.Run(t, "train", "my notes.txt", "--time", "1s", "--dry-run")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "model       llama_2M")
	assert.Equal(t, []string{".", "my notes.txt"}, commandtest.Files(t, "."))
	got = commandtest.Run(t, "train", "my notes.txt", "--time", "1s", "final_eval_windows=16")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "model       llama_2M")
	assert.Contains(t, got.Stderr, "measured here")
	assert.Contains(t, got.Stderr, "talk to it: primus chat ./output/local/local/my-notes")
	assert.Contains(t, got.Out, "my-notes finished")
	said := command.Main([]string{"chat", "./output/local/local/my-notes", "--max-tokens", "5"},
		command.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, In: strings.NewReader("The\n")})
	assert.Zero(t, said)

	written, err := os.ReadFile("my-notes.yaml")
	require.NoError(t, err)
	got = commandtest.Run(t, "train", "my notes.txt", "--time", "1s", "final_eval_windows=16")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "going on with my-notes.yaml, which was made for this text; for another --time delete it, or give exp_name=NAME")
	assert.Contains(t, got.Stderr, "this run is finished")
	for _, args := range [][]string{{"my notes.txt", "--time", "1s"}, {}} {
		got = commandtest.Run(t, append([]string{"train", "--launcher", "slurm", "--dry-run"}, args...)...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Regexp(t, ` train --config=(my-notes.yaml|llama_2M-pretrain) --launcher=direct `, got.Out, "other processes get the experiment, and not the text")
	}
	again, err := os.ReadFile("my-notes.yaml")
	require.NoError(t, err)
	assert.Equal(t, string(written), string(again))
}

// What init writes is a whole experiment, whatever form the text has.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder", 0o755))
	require.NoError(t, os.WriteFile("folder/a.md", []byte(prose(60_000)), 0o600))
	require.NoError(t, os.WriteFile("folder/b.jsonl", []byte(strings.Repeat(`{"text": "One line of JSON that is a document of its own."}`+"\n", 2000)), 0o600))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(prose(300_000)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile("packed.txt.gz", packed.Bytes(), 0o600))
	require.NoError(t, os.WriteFile("short.txt", []byte(prose(20_000)), 0o600))
	for _, tt := range []struct {
		args []string
		name string
		want map[string]string
	}{
		{[]string{"folder"}, "folder", map[string]string{"train_data_path": "folder", "tokenizer_model": "folder-tokenizer.json"}},
		{[]string{"packed.txt.gz"}, "packed", map[string]string{"train_data_path": "packed.txt.gz"}},
		{[]string{"short.txt"}, "short", map[string]string{"vocab_size": "256"}},
		{[]string{"short.txt", "folder/a.md", "--name", "both"}, "both", map[string]string{}},
		{[]string{"./folder/", "--name", "model", "--model", "llama_6M"}, "model", map[string]string{"global_batch_size": "8"}},
	} {
		got := commandtest.Run(t, append([]string{"init", "--time", "1s"}, tt.args...)...)
		require.Zero(t, got.Code, got.Stderr)
		assert.Contains(t, got.Out, "primus train --config "+tt.name+".yaml")
		require.Zero(t, commandtest.Run(t, "train", "--config", tt.name+".yaml", "--dry-run").Code)
		e, err := config.LoadExperiment(t.Context(), tt.name+".yaml", config.Options{
			Formats: formats.All(), Presets: []config.Root{{Name: "embedded", FS: configs.FS()}}, Places: map[string]config.Place{"native": {WorkGroup: "w", UserName: "u", Workspace: "o"}},
		})
		require.NoError(t, err)
		assert.Empty(t, e.Report.Warnings)
		assert.Equal(t, tt.name, e.ExpName)
		for name, want := range tt.want {
			value, ok := e.Modules[0].Params.Lookup(name)
			require.True(t, ok, name)
			assert.Equal(t, want, value.Text(), name)
		}
	}
	written, err := os.ReadFile("both.yaml")
	require.NoError(t, err)
	assert.Regexp(t, `train_data_path: "\d+ short.txt \d+ folder/a.md"`, string(written))
	got := commandtest.Run(t, "init", "folder")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "folder.yaml is there already")
}

// What cannot be trained on is said, and nothing is written.
func TestInitRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("empty", 0o755))
	require.NoError(t, os.WriteFile("binary", []byte{0, 1, 2}, 0o600))
	require.NoError(t, os.WriteFile("tiny.txt", []byte("a few words"), 0o600))
	require.NoError(t, os.WriteFile("with space.txt", []byte(prose(20_000)), 0o600))
	require.NoError(t, os.WriteFile("bad.jsonl", []byte("{\n"), 0o600))
	require.NoError(t, os.WriteFile("mine.txt", []byte(prose(20_000)), 0o600))
	require.NoError(t, os.WriteFile("mine.yaml", []byte("a: 1\n"), 0o600))
	before := commandtest.Files(t, ".")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"init"}, 2, "no text given"},
		{[]string{"init", "nothing.txt"}, 1, "nothing.txt"},
		{[]string{"init", "empty"}, 1, "holds no text"},
		{[]string{"init", "binary"}, 1, "1 binary"},
		{[]string{"init", "tiny.txt"}, 1, "want at least"},
		{[]string{"init", "bad.jsonl"}, 1, "bad.jsonl"},
		{[]string{"init", "with space.txt", "mine.txt", "--name", "x"}, 2, "cannot be blended"},
		{[]string{"init", "mine.txt"}, 1, "mine.yaml is there already and is not the experiment for mine.txt"},
		{[]string{"init", "mine.txt", "--name", "../x"}, 2, "letters, digits"},
		{[]string{"init", "mine.txt", "--name", "x", "--time", "0s"}, 2, "--time"},
		{[]string{"init", "mine.txt", "--name", "x", "--model", "llama"}, 2, "llama_2M"},
		{[]string{"train", "nothing.txt"}, 2, "no file or folder \"nothing.txt\" here, want a file or a folder of text"},
		{[]string{"train", "mine.txt", "--config", "mine.yaml"}, 2, "want one of them"},
		{[]string{"train", "--time", "3s"}, 2, "--time is for a text"},
		{[]string{"train", "with space.txt", "--dry-run", "-o", "json"}, 2, "-o json is for a dry run of an experiment"},
	} {
		got := commandtest.Run(t, tt.args...)
		assert.Equal(t, tt.code, got.Code, "%v: %s", tt.args, got.Stderr)
		assert.Contains(t, got.Stderr, tt.want, "%v", tt.args)
	}
	assert.Equal(t, before, commandtest.Files(t, "."))
	assert.NoFileExists(t, filepath.Join("..", "x.yaml"))
}

// The key of the text can be named, and what is bad left out, before there is an experiment, which
// keeps both.
func TestInitOtherKey(t *testing.T) {
	t.Chdir(t.TempDir())
	lines := strings.Repeat(`{"body": "One line of JSON that is a document of its own."}`+"\n", 2000)
	require.NoError(t, os.WriteFile("lines.txt", []byte(lines+"no JSON\n"), 0o600))
	got := commandtest.Run(t, "train", "lines.txt", "--time", "1s", "--dry-run", "train_data_format=jsonl", "text_key=body")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "line 2001")
	got = commandtest.Run(t, "train", "lines.txt", "--time", "1s", "--dry-run", "train_data_format=jsonl", "text_key=body", "on_bad_record=skip")
	require.Zero(t, got.Code, got.Stderr)
	require.NoError(t, os.WriteFile("lines.jsonl", []byte(lines), 0o600))
	got = commandtest.Run(t, "init", "lines.jsonl", "--time", "1s", "--text-key", "body")
	require.Zero(t, got.Code, got.Stderr)
	got = commandtest.Run(t, "train", "--config", "lines.yaml", "--dry-run")
	require.Zero(t, got.Code, got.Stderr)
	e, err := os.ReadFile("lines.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(e), "\n      text_key: \"body\"\n")
}

// Standard input is a text like any other, kept in a file whose extension says what it is.
func TestInitStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(input string, args ...string) commandtest.Outcome {
		var out, stderr bytes.Buffer
		code := command.Main(args, command.Streams{Out: &out, Err: &stderr, In: strings.NewReader(input)})
		return commandtest.Outcome{Code: code, Out: out.String(), Stderr: stderr.String()}
	}
	lines := strings.Repeat(`{"text": "One line of JSON that is a document of its own."}`+"\n", 2000)
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.String()
	}
	got := run(prose(20_000), "train", "-", "--time", "1s", "--dry-run")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "stdin.yaml is not written")
	assert.Equal(t, []string{"."}, commandtest.Files(t, "."))
	for name, input := range map[string]string{"a.txt": prose(20_000), "b.jsonl": lines, "c.txt.gz": packed(prose(20_000)), "d.jsonl.gz": packed(lines)} {
		run := run(input, "init", "-", "--time", "1s", "--name", name[:1])
		require.Zero(t, run.Code, run.Stderr)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, input, string(text))
		assert.FileExists(t, name[:1]+".yaml")
	}
	for input, want := range map[string]string{
		"":                "standard input is empty",
		"\x7fELF\x00\x01": "standard input is binary, want text",
		prose(20_000):     "a.txt is there already: primus train a.txt trains on it",
		"PAR1 but not ":   "a.parquet",
		"\x1f\x8b\x08 x":  "a.txt is there already",
	} {
		got := run(input, "train", "-", "exp_name=a", "--time", "1s")
		assert.Equal(t, 1, got.Code, "%.20q: %s", input, got.Stderr)
		assert.Contains(t, got.Stderr, want)
	}
	assert.Equal(t, 2, run("x", "init", "-", "-").Code)
	assert.Equal(t, 2, run("x", "init", "-", "--name", "../x").Code)
}
