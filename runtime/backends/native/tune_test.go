package native_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// write writes a file beside the experiment and returns its path.
func (l *lab) write(name string, lines ...string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	require.NoError(l.t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// answers are examples whose answer is a letter of the prompt.
func answers() []string {
	var lines []string
	for i := range 24 {
		c := string(rune('a' + i))
		lines = append(lines, fmt.Sprintf(`{"prompt": "say %s: ", "response": "%s%s"}`, c, c, c))
	}
	return lines
}

// Fine-tuning learns the answers of examples, goes on as if it had not stopped, and begins with the
// weights of another run.
func TestFineTuning(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "base"))
	examples := l.write("answers.jsonl", answers()...)
	tune := []string{"stage=sft", "load_hf=" + l.path("base"), "train_data_path=" + examples, "packing=true", "lr=2e-2", "valid_fraction=0.2", "train_iters=24", "lr_decay_iters=24"}
	require.NoError(t, l.train(t.Context(), "tuned", tune...))
	assert.Contains(t, l.log.String(), "24 examples in 8 sequences of 32, 1 of them held out; 72 tokens are learned")
	records := l.metrics("tuned")
	require.Len(t, records, 24)
	assert.Less(t, records[23].Loss, 0.7*records[0].Loss)
	require.NotNil(t, records[23].ValidLoss)

	require.NoError(t, l.train(t.Context(), "parts", append(tune, "train_iters=12")...))
	require.NoError(t, l.train(t.Context(), "parts", tune...))
	weights := func(run string) []byte {
		text, err := os.ReadFile(l.path(run, "checkpoints", "step-00000024", "model.safetensors"))
		require.NoError(t, err)
		return text
	}
	assert.Equal(t, weights("tuned"), weights("parts"))

	held := l.write("held.jsonl", `{"prompt": "say q: ", "response": "qq"}`)
	require.NoError(t, l.train(t.Context(), "adapted", append(tune, "lora_rank=4", "valid_data_path="+held, "final_eval_windows=8")...))
	assert.Contains(t, l.log.String(), "the last evaluation takes 1 of the 1 windows that are held out, 3 tokens")
	assert.FileExists(t, l.path("adapted", "checkpoints", "step-00000024", "adapter_model.safetensors"))

	require.NoError(t, l.train(t.Context(), "talks", append(tune, "chat_template=llama2", "train_iters=1")...))
	template, err := os.ReadFile(l.path("talks", "checkpoints", "step-00000001", "chat_template.jinja"))
	require.NoError(t, err)
	assert.Contains(t, string(template), "[INST]", "whoever talks with the model needs the template")
	assert.NoFileExists(t, l.path("tuned", "chat_template.jinja"))

	for _, tt := range []struct {
		want string
		args []string
	}{
		{"load_hf: given null in stage sft, want the weights to begin with", []string{"stage=sft", "train_data_path=" + examples}},
		{"answers.jsonl: line 1 (byte 0): given no chosen, want chosen and rejected", append(tune, "stage=dpo", "packing=false", "dpo_beta=0.1")},
		{"dpo_beta: given 0, want a number > 0", append(tune, "stage=dpo", "packing=false")},
		{"packing: it has no effect in stage dpo", append(tune, "stage=dpo")},
		{"want an even number: a pair takes two sequences", append(tune, "stage=dpo", "micro_batch_size=1")},
		{"packing: it has no effect in stage pretrain", []string{"packing=true"}},
		{"chat_template: it has no effect in stage pretrain", []string{"chat_template=chatml"}},
		{"eod_mask_loss: it has no effect in stage sft", append(tune, "eod_mask_loss=true")},
		{"test_data_path: it has no effect in stage sft", append(tune, "test_data_path="+held)},
		{"dump_batches: it has no effect in stage sft", append(tune, "dump_batches=1")},
		{"train_data_path: given null, want a file of examples", append(tune, "train_data_path=null")},
		{`chat_template: chat: there is no template "chatlm"; did you mean "chatml"?`, append(tune, "chat_template=chatlm")},
		{"all of 24 examples are longer", append(tune, "seq_length=4")},
		{`given stage "rl", want pretrain or sft or dpo`, []string{"stage=rl"}},
	} {
		err := l.train(t.Context(), "wrong", tt.args...)
		assert.ErrorContains(t, err, tt.want)
	}
}

// Preferences are learned from the loss log 2 on, and a run that was stopped compares with the same
// weights.
func TestPreferences(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "base"))
	var lines []string
	for i := range 16 {
		c := string(rune('a' + i))
		lines = append(lines, fmt.Sprintf(`{"prompt": "say %s: ", "chosen": "%s%s", "rejected": "no %s"}`, c, c, c, c))
	}
	args := []string{
		"stage=dpo", "dpo_beta=0.5", "load_hf=" + l.path("base"), "train_data_path=" + l.write("pairs.jsonl", lines...), "lr=1e-2", "valid_fraction=0.2",
		"train_iters=16", "lr_decay_iters=16", "lora_rank=4",
	}
	require.NoError(t, l.train(t.Context(), "whole", args...))
	assert.Contains(t, l.log.String(), "16 pairs in 16 sequences of 32, 3 of them held out")
	records := l.metrics("whole")
	assert.InDelta(t, math.Ln2, records[0].Loss, 1e-6)
	assert.Less(t, records[15].Loss, 0.3)
	assert.Less(t, *records[15].ValidLoss, 0.5)
	require.NoError(t, l.train(t.Context(), "parts", append(args, "train_iters=8")...))
	require.NoError(t, l.train(t.Context(), "parts", args...))
	for i, r := range l.metrics("parts") {
		assert.InDelta(t, records[i].Loss, r.Loss, 0, "step %d", i+1)
	}
}
