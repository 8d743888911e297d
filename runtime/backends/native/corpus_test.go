package native_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"

	"github.com/primus-fl/primus/internal/primustest"
)

// newTokenizer trains a small tokenizer on the text of a lab and returns its file.
func (l *lab) newTokenizer() (path string, tok *tokenizer.File) {
	l.t.Helper()
	config := trainer.Default()
	config.VocabSize = 300
	tr, err := trainer.New(config)
	require.NoError(l.t, err)
	text, err := os.ReadFile(filepath.Join(l.dir, "text.go"))
	require.NoError(l.t, err)
	tr.AddText(text)
	result, err := tr.Train(l.t.Context())
	require.NoError(l.t, err)
	path = filepath.Join(l.dir, "tokenizer.json")
	require.NoError(l.t, os.WriteFile(path, result.JSON, 0o644))
	folder := filepath.Join(l.dir, "tok")
	require.NoError(l.t, os.Mkdir(folder, 0o755))
	require.NoError(l.t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), result.JSON, 0o644))
	require.NoError(l.t, os.WriteFile(filepath.Join(folder, "tokenizer_config.json"), []byte(`{"eos_token": "<|endoftext|>"}`), 0o644))
	tok, err = tokenizer.Load(folder)
	require.NoError(l.t, err)
	require.GreaterOrEqual(l.t, tok.EOS(), int32(0))
	return folder, tok
}

// records returns the records of a run.
func (l *lab) records(name string) []rundir.Record {
	l.t.Helper()
	text, err := os.ReadFile(l.path(name, "metrics.jsonl"))
	require.NoError(l.t, err)
	var all []rundir.Record
	for line := range strings.Lines(string(text)) {
		var r rundir.Record
		require.NoError(l.t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}

// A run on a blend of compressed lines and of a dataset of tokens, with masks, goes on in the
// middle bit for bit, keeps its tokenizer, and reports its test.
func TestTokenizerAndBlend(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	folder, tok := l.newTokenizer()
	lines, err := os.Create(filepath.Join(l.dir, "lines.jsonl.gz"))
	require.NoError(t, err)
	packed := gzip.NewWriter(lines)
	for i := range 400 {
		_, err := fmt.Fprintf(packed, "{\"body\": \"func g%d(x int) int { return x * %d }\"}\n", i, i)
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	require.NoError(t, lines.Close())
	prefix := filepath.Join(l.dir, "tokens")
	require.NoError(t, indexed.Write(prefix, indexed.Uint16, false, func(w *indexed.Writer) error {
		for i := range 300 {
			ids := tok.Encode(nil, fmt.Appendf(nil, "func h%d() string { return %q }", i, "word"))
			if err := w.Add(append(ids, tok.EOS())); err != nil {
				return err
			}
			w.EndDocument()
		}
		return nil
	}))
	args := []string{
		"tokenizer_type=HuggingFaceTokenizer", "tokenizer_model=" + folder, "vocab_size=0", "make_vocab_size_divisible_by=64",
		"train_data_path=0.7 " + lines.Name() + " 0.3 " + prefix, "text_key=body",
		"valid_data_path=" + prefix + ".bin", "test_data_path=" + filepath.Join(l.dir, "text.go"),
		"reset_attention_mask=true", "reset_position_ids=true", "eod_mask_loss=true",
	}
	require.NoError(t, l.train(t.Context(), "whole", append(args, "save_interval=6")...))
	require.NoError(t, l.train(t.Context(), "parts", append(args, "save_interval=6", "train_iters=6", "lr_decay_iters=12")...))
	require.NoError(t, l.train(t.Context(), "parts", append(args, "save_interval=6")...))
	whole, parts := l.records("whole"), l.records("parts")
	require.Len(t, whole, 12)
	for i := range whole {
		assert.Equal(t, whole[i].Loss, parts[i].Loss, "step %d", i+1)
	}
	require.NoError(t, l.train(t.Context(), "micro", append(args, "micro_batch_size=1", "train_iters=3", "lr_decay_iters=12")...))
	for i, r := range l.records("micro") {
		assert.InEpsilon(t, whole[i].Loss, r.Loss, 1e-5, "what counts is weighted over micro batches")
	}
	last := whole[11]
	assert.Less(t, last.Loss, whole[0].Loss)
	require.NotNil(t, last.ValidLoss)
	require.NotNil(t, last.TestLoss)
	assert.Positive(t, last.TestTokens)
	assert.Greater(t, last.ValidBytes, last.ValidTokens, "a token has more than a byte")
	assert.NotZero(t, last.ValidTokens%32, "ends of documents do not count")

	c, err := checkpoint.Open(t.Context(), l.path("whole", "checkpoints"))
	require.NoError(t, err)
	for _, dir := range []string{c.Path(), l.path("whole")} {
		again, err := tokenizer.Load(dir)
		require.NoError(t, err)
		assert.Equal(t, tok.Name(), again.Name())
	}
	file, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "small.json"), file, 0o644))
	require.NoError(t, l.train(t.Context(), "renamed", append(args, "tokenizer_model="+filepath.Join(l.dir, "small.json"), "train_iters=1")...))
	again, err := tokenizer.Load(l.path("renamed"))
	require.NoError(t, err, "a folder has the name that is found")
	assert.Equal(t, tok.Name(), again.Name())
	config := map[string]any{}
	require.NoError(t, c.JSON("config.json", &config))
	assert.Equal(t, 320.0, config["vocab_size"])
	assert.Equal(t, float64(tok.EOS()), config["eos_token_id"])

	require.NoError(t, l.train(t.Context(), "derived", args[0], args[1], "train_iters=1"), "the vocabulary of the preset is that of bytes")
	c, err = checkpoint.Open(t.Context(), l.path("derived", "checkpoints"))
	require.NoError(t, err)
	require.NoError(t, c.JSON("config.json", &config))
	assert.Equal(t, 320.0, config["vocab_size"], "300 tokens, in an even shape")

	err = l.train(t.Context(), "whole", append(args, "train_iters=14", "text_key=text")...)
	require.ErrorContains(t, err, `lines.jsonl.gz: line 1 (byte 0): the object has no key "text", it has body`)
}

func TestBadTokenizers(t *testing.T) {
	l := newLab(t)
	folder, _ := l.newTokenizer()
	for args, want := range map[string]string{
		"tokenizer_type=TikTokenizer":                        "tokenizer_model: not given, and tokenizer_type is TikTokenizer",
		"tokenizer_model=meta-llama/Llama-3.1-8B":            "nothing is downloaded",
		"tokenizer_type=ByteLevel|tokenizer_model=" + folder: "ByteLevel, which has no file",
		"tokenizer_type=GPT":                                 "tokenizer_type",
		"vocab_size=270|tokenizer_model=" + folder:           "vocab_size: given 270, and the tokenizer has 300 tokens",
		"eod_mask_loss=true":                                 "eod_mask_loss: given true, and the tokenizer byte has no token that ends documents",
		"valid_data_path=none":                               "valid_data_path: ",
		"split=0,1":                                          "split: given",
		"train_data_format=csv":                              "train_data_format: given",
		"train_data_path=1 a 2":                              "want a weight before each path",
	} {
		err := l.train(t.Context(), "run", strings.Split(args, "|")...)
		assert.ErrorContains(t, err, want, args)
	}
}

// Lines without a document are an error with their place, or are left out and counted at the end.
func TestBadRecords(t *testing.T) {
	l := newLab(t)
	end := &ended{}
	l.observer = end
	lines := filepath.Join(l.dir, "lines.jsonl")
	content := strings.Repeat("{\"text\": \"func g(x int) int { return x * x }\"}\n", 200)
	require.NoError(t, os.WriteFile(lines, []byte(content+"oops\n{\"text\": \"\"}\n"+content+"{\"text\": 1}\n{\"text\": null}\n"), 0o644))
	args := []string{"train_data_path=" + lines, "train_iters=2"}
	err := l.train(t.Context(), "run", args...)
	require.ErrorContains(t, err, "train_data_path: "+lines+": line 201 (byte ")
	require.ErrorContains(t, l.train(t.Context(), "run", append(args, "on_bad_record=ignore")...), `on_bad_record: given "ignore", want error or skip`)
	args = append(args, "on_bad_record=skip")
	require.NoError(t, l.train(t.Context(), "run", args...))
	assert.Contains(t, l.log.String(), "bad records left out (on_bad_record=skip): 2: "+lines+": line 201 (byte ")
	assert.Equal(t, 2, end.result.BadRecords)
	const empty = "; documents without text: 2, which are left out"
	assert.Contains(t, l.log.String(), empty)
	require.NoError(t, l.train(t.Context(), "run", "train_data_path="+lines, "train_iters=4", "on_bad_record=skip"))
	assert.Equal(t, 2, end.result.BadRecords, "as the cache says")
	assert.Contains(t, l.log.String(), empty, "likewise")
}

// A run does not go on with files that have changed, and says which.
func TestDataThatHasChanged(t *testing.T) {
	l := newLab(t)
	end := &ended{}
	l.observer = end
	dir := filepath.Join(l.dir, "texts")
	require.NoError(t, os.Mkdir(dir, 0o755))
	text := strings.Repeat("func g(x int) int { return x * x }\n", 600)
	for _, name := range []string{"a.go", "b.go", "c.go"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	args := []string{"train_data_path=" + dir, "train_iters=2"}
	require.NoError(t, l.train(t.Context(), "run", args...))
	path := filepath.Join(dir, "b.go")
	info, err := os.Stat(path)
	require.NoError(t, err)
	change := func(at int) {
		require.NoError(t, os.WriteFile(path, []byte(text[:at]+"X"+text[at+1:]), 0o644))
		require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
	args[1] = "train_iters=4"
	change(10)
	err = l.train(t.Context(), "run", args...)
	require.ErrorContains(t, err, "was trained on other data: tokens=")
	require.ErrorContains(t, err, "; of its files "+path+" has other content of the same size")
	change(len(text) / 4) // where only reading the file shows it
	err = l.train(t.Context(), "run", append(args, "verify_data=true")...)
	require.ErrorContains(t, err, "was trained on other data: tokens=")
	require.ErrorContains(t, err, "; no file has changed by its size, its time and its blocks")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	require.NoError(t, l.train(t.Context(), "run", args...), "the text is what it was")
	assert.Equal(t, 4, end.result.LastStep)
}
