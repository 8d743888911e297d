package models_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEvaluate(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=4").Code)
	task := filepath.Join(l.Dir, "task.jsonl")
	l.Write(task, `{"query": "func f1(x int) int", "choices": ["{ return x", "0123456789"], "gold": 0}
{"query": "func", "choices": ["\u0000\u0001\u0002", "f2(x int)"], "gold": 1}
`)
	evaluate := func(more ...string) commandtest.Outcome {
		return commandtest.Run(t, append([]string{"evaluate", "--checkpoint", l.Path()}, more...)...)
	}
	got := evaluate("--data", l.Text, "--max-bytes", "1000", "--task", task, "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var r struct {
		Checkpoint string
		Data       []struct {
			Path                   string
			Tokens, Bytes          int
			Loss, Perplexity, Bits float64
			BitsPerByte            float64 `json:"bits_per_byte"`
		}
		Tasks []struct {
			Path      string
			Questions int
			Acc       float64
			Stderr    float64 `json:"acc_stderr"`
			AccNorm   float64 `json:"acc_norm"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r))
	assert.Equal(t, l.Path("checkpoints", "step-00000004"), r.Checkpoint)
	require.Len(t, r.Data, 1)
	d := r.Data[0]
	assert.Equal(t, 999, d.Tokens)
	assert.Equal(t, 999, d.Bytes)
	assert.InDelta(t, 5.4, d.Loss, 0.4, "about ln 256")
	assert.InEpsilon(t, math.Exp(d.Loss), d.Perplexity, 1e-9)
	assert.InEpsilon(t, d.Loss/math.Ln2, d.BitsPerByte, 1e-9, "a token is a byte")
	require.Len(t, r.Tasks, 1)
	assert.Equal(t, 2, r.Tasks[0].Questions)
	assert.Contains(t, []float64{0, 0.5, 1}, r.Tasks[0].Acc)

	text := evaluate("--data", l.Text, "--max-bytes", "300", "--stride", "8", "--task", task)
	require.Zero(t, text.Code, text.Stderr)
	for _, want := range []string{"perplexity", "bits per byte", "299", "acc_norm"} {
		assert.Contains(t, text.Out, want)
	}
	for give, want := range map[string]struct {
		code int
		text string
	}{
		"":                        {2, "nothing to evaluate"},
		"--data /nonexistent":     {1, "/nonexistent"},
		"--task /nonexistent":     {1, "--task: open /nonexistent"},
		"--data TEXT --stride 33": {1, "stride: given 33"},
		"--data TEXT --stride 33 --data /nonexistent": {1, "/nonexistent"}, // before TEXT is predicted
		"--task TEXT":                 {1, "text.go: line 1"},
		"--data TEXT --output yaml":   {2, "table or json"},
		"--data TEXT --checkpoint /x": {1, "/x"},
	} {
		got := evaluate(strings.Fields(strings.ReplaceAll(give, "TEXT", l.Text))...)
		assert.Equal(t, want.code, got.Code, give)
		assert.Contains(t, got.Stderr, want.text, give)
	}
}
