package posttrain_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/internal/tokenizer"

	"github.com/primus-fl/primus/internal/primustest"
)

func file(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "examples.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func read(t *testing.T, c posttrain.Tuning, pairs bool, lines ...string) (*posttrain.Source, error) {
	t.Helper()
	r, err := posttrain.NewReader(c, tokenizer.Byte{}, pairs, "")
	require.NoError(t, err)
	return r.Read(t.Context(), []string{file(t, lines...)})
}

// shown returns the text of an example with what is learned in brackets.
func shown(e posttrain.Example) string {
	var b strings.Builder
	for i, token := range e.Tokens {
		if e.Learn[i] && (i == 0 || !e.Learn[i-1]) {
			b.WriteByte('[')
		}
		b.WriteByte(byte(token))
		if e.Learn[i] && (i == len(e.Learn)-1 || !e.Learn[i+1]) {
			b.WriteByte(']')
		}
	}
	return b.String()
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config posttrain.Tuning
		line   string
		want   string
	}{
		{"messages", posttrain.Tuning{}, `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}`,
			"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[b<|im_end|>]\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[d<|im_end|>]\n"},
		{"a template", posttrain.Tuning{ChatTemplate: "zephyr"}, `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`, "<|user|>\na\n<|assistant|>\n[b]\n"},
		{"prompt and response", posttrain.Tuning{}, `{"prompt": "2+2=", "response": "4"}`, "2+2=[4\n]"},
		{"prompt and completion", posttrain.Tuning{}, `{"prompt": "2+2=", "completion": "4", "more": 1}`, "2+2=[4\n]"},
		{"other keys", posttrain.Tuning{PromptKey: "q", ResponseKey: "a"}, `{"q": "x", "a": "y", "messages": 1}`, "x[y\n]"},
		{"prompt and response as messages", posttrain.Tuning{ChatTemplate: "chatml"}, `{"prompt": "x", "response": "y"}`, "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n[y<|im_end|>]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := read(t, tt.config, false, "", tt.line, "")
			require.NoError(t, err)
			require.Len(t, s.Examples, 1)
			assert.Equal(t, tt.want, shown(s.Examples[0]))
		})
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	s, err := read(t, posttrain.Tuning{}, true, `{"prompt": "p", "chosen": "good", "rejected": "bad"}`,
		`{"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "y"}], "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "z"}]}`)
	require.NoError(t, err)
	require.Len(t, s.Pairs, 2)
	assert.Equal(t, "p[good\n]", shown(s.Pairs[0].Chosen))
	assert.Equal(t, "p[bad\n]", shown(s.Pairs[0].Rejected))
	last := shown(s.Pairs[1].Chosen)
	assert.Equal(t, 1, strings.Count(last, "["), "only the last answer is compared: %s", last)
	assert.Contains(t, last, "[y<|im_end|>]")

	set, err := posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 200, Seed: 1})
	require.NoError(t, err)
	b := model.NewBatch(4, 200)
	require.NoError(t, posttrain.NewSampler(set).Batch(&b))
	require.NoError(t, b.Check(4, 200))
	for row := range 4 {
		assert.InDelta(t, 1, b.Slice(row, row+1).Weight(), 1e-6, "all pairs count alike")
	}
	odd := model.NewBatch(3, 200)
	assert.ErrorContains(t, posttrain.NewSampler(set).Batch(&odd), "want a multiple of 2 rows")
}

func TestBadExamples(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"prompt": "a"}`:                   "examples.jsonl: line 1 (byte 0): want messages, or prompt and response or completion or answer",
		`{"a": "b"}`:                        "want messages, or prompt and a response",
		`{"prompt": 1, "response": "x"}`:    "prompt: want a string",
		`{"prompt": "x", "response": null}`: "response: want a string",
		`[1]`:                               "want a JSON object",
		`{"prompt"`:                         "unexpected EOF",
		`{"messages": []}`:                  "want a list of one message or more",
		`{"messages": [{"role": "user", "content": "x"}]}`: "given no answer",
		`{"messages": [{"content": "x"}]}`:                 "message 1: role: given none, want a string",
		``:                                                 "given no examples",
	} {
		_, err := read(t, posttrain.Tuning{}, false, line)
		assert.ErrorContains(t, err, want, line)
	}
	_, err := read(t, posttrain.Tuning{}, true, `{"prompt": "x", "chosen": "y"}`)
	assert.ErrorContains(t, err, "given no rejected, want chosen and rejected")
	_, err = posttrain.NewReader(posttrain.Tuning{ChatTemplate: "chatlm"}, tokenizer.Byte{}, false, "")
	assert.ErrorContains(t, err, `did you mean "chatml"?`)
	broken := filepath.Join(t.TempDir(), "broken.jinja")
	require.NoError(t, os.WriteFile(broken, []byte("{% if %}"), 0o600))
	_, err = posttrain.NewReader(posttrain.Tuning{ChatTemplate: broken}, tokenizer.Byte{}, false, "")
	assert.ErrorContains(t, err, "line 1, column 7")
	assert.ErrorContains(t, posttrain.Tuning{DPOBeta: -1, PromptKey: "x"}.Validate(), "dpo_beta: given -1")
	assert.ErrorContains(t, posttrain.Tuning{PromptKey: "x"}.Validate(), "want both or none")
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl.gz")
	require.NoError(t, os.WriteFile(plain, []byte(`{"prompt": "a", "response": "b"}`), 0o600))
	f, err := os.Create(packed)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(`{"prompt": "c", "response": "d"}`))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	for _, path := range []string{dir, filepath.Join(dir, "*.jsonl*")} {
		files, err := posttrain.Find(path)
		require.NoError(t, err)
		assert.Equal(t, []string{plain, packed}, files)
		r, err := posttrain.NewReader(posttrain.Tuning{}, tokenizer.Byte{}, false, "")
		require.NoError(t, err)
		s, err := r.Read(t.Context(), files)
		require.NoError(t, err)
		assert.Len(t, s.Examples, 2)
	}
	for path, want := range map[string]string{
		"": "train_data_path: given null", filepath.Join(dir, "none"): "want a file of examples", t.TempDir(): "has no files *.jsonl",
	} {
		_, err := posttrain.Find(path)
		assert.ErrorContains(t, err, want)
	}
}

// rows returns the texts of a batch, with what is learned in capitals and one | between documents.
func rows(b model.Batch) []string {
	var all []string
	for r := range b.Rows() {
		var text strings.Builder
		for i := range b.Seq + 1 {
			c := string(rune(b.Tokens[r*(b.Seq+1)+i]))
			if i > 0 && b.Weights[r*b.Seq+i-1] > 0 {
				c = strings.ToUpper(c)
			}
			if i > 0 && i < b.Seq && b.Positions[r*b.Seq+i] == 0 {
				c = "|" + c
			}
			text.WriteString(strings.ReplaceAll(c, "\n", "."))
		}
		all = append(all, text.String())
	}
	return all
}

func TestRows(t *testing.T) {
	t.Parallel()
	s, err := read(t, posttrain.Tuning{}, false, `{"prompt": "abc", "response": "def"}`, `{"prompt": "gh", "response": "i"}`, `{"prompt": "k", "response": "l"}`, `{"prompt": "long", "response": "long long long"}`)
	require.NoError(t, err)
	c := posttrain.SetConfig{SeqLength: 11, Seed: 3, Pad: '_'}
	all := func(c posttrain.SetConfig) []string {
		set, err := posttrain.NewSet(s, c)
		require.NoError(t, err)
		assert.Equal(t, []string{"1 of 4 examples are longer than seq_length 11 and left out"}, set.Warnings())
		b := model.NewBatch(set.TrainRows(), c.SeqLength)
		require.NoError(t, posttrain.NewSampler(set).Batch(&b))
		require.NoError(t, b.Check(set.TrainRows(), c.SeqLength))
		return rows(b)
	}
	assert.ElementsMatch(t, []string{"abcDEF.|_____", "ghI.|________", "kL.|_________"}, all(c))
	c.Packing = true
	assert.ElementsMatch(t, []string{"abcDEF.|ghI._", "kL.|_________"}, all(c))
	c.SeqLength = 13
	set, err := posttrain.NewSet(s, c)
	require.NoError(t, err)
	assert.Equal(t, 1, set.TrainRows(), "a row is filled to its last token: %s", set)

	_, err = posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 1})
	require.ErrorContains(t, err, "all of 4 examples are longer")
	_, err = posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 13, Packing: true, ValidFraction: 0.5})
	require.ErrorContains(t, err, "leaves none to train on")
	empty, err := read(t, posttrain.Tuning{PromptKey: "a", ResponseKey: "b"}, false, `{"a": "", "b": ""}`)
	require.NoError(t, err)
	_, err = posttrain.NewSet(empty, c)
	require.ErrorContains(t, err, "an answer of example 1 has no tokens")
}

func FuzzRead(f *testing.F) {
	f.Add(`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`)
	f.Add(`{"prompt": "a", "response": "b"}`)
	f.Add(`{"prompt": "a", "chosen": "b", "rejected": [{"role": "assistant", "content": ""}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		defer primustest.Measured(t, len(line))()
		for _, pairs := range []bool{false, true} {
			s, err := read(t, posttrain.Tuning{}, pairs, line)
			if err != nil {
				continue
			}
			set, err := posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 64, Packing: !pairs})
			if err != nil {
				continue
			}
			b := model.NewBatch(2, 64)
			require.NoError(t, posttrain.NewSampler(set).Batch(&b))
			require.NoError(t, b.Check(2, 64))
			set.Prompt()
			set.End()
		}
	})
}

func TestPromptAndEnd(t *testing.T) {
	t.Parallel()
	s, err := read(t, posttrain.Tuning{ChatTemplate: "chatml"}, false, `{"prompt": "a", "response": "one."}`, `{"prompt": "b", "response": "two"}`)
	require.NoError(t, err)
	set, err := posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 100})
	require.NoError(t, err)
	decode := func(ids []int32) string { return string(tokenizer.Byte{}.Decode(nil, ids)) }
	assert.Equal(t, "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n", decode(set.Prompt()))
	assert.Equal(t, "<|im_end|>", decode(set.End()))
}

// Every epoch has all rows once, in an order of its own, and a position determines what follows.
func TestSampler(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf(`{"prompt": "%c", "response": "x"}`, 'a'+i))
	}
	s, err := read(t, posttrain.Tuning{}, false, lines...)
	require.NoError(t, err)
	set, err := posttrain.NewSet(s, posttrain.SetConfig{SeqLength: 4, Seed: 9, ValidFraction: 0.2, Pad: 0})
	require.NoError(t, err)
	assert.Equal(t, "20 examples in 20 sequences of 4, 4 of them held out; 40 tokens are learned", set.String())
	next := func(s *posttrain.Sampler, n int) []string {
		b := model.NewBatch(n, 4)
		require.NoError(t, s.Batch(&b))
		return rows(b)
	}
	one := posttrain.NewSampler(set)
	first, second := next(one, 16), next(one, 16)
	assert.ElementsMatch(t, first, second)
	assert.NotEqual(t, first, second)
	other := posttrain.NewSampler(set)
	other.Seek(20)
	assert.Equal(t, second[4:8], next(other, 4))
	assert.Equal(t, uint64(24), other.Position())

	e, err := posttrain.NewEvaluation(set, 4)
	require.NoError(t, err)
	held := model.NewBatch(4, 4)
	require.NoError(t, e.Batch(&held))
	again := model.NewBatch(4, 4)
	e.Reset()
	require.NoError(t, e.Batch(&again))
	assert.Equal(t, rows(held), rows(again))
	for _, row := range rows(held) {
		assert.NotContains(t, first, row, "held out")
	}
	_, err = posttrain.NewEvaluation(set, 0)
	require.Error(t, err)
}
