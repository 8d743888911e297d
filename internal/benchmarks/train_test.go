package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stage writes programs that replace primus and Python, and returns the flags that name them.
func stage(t *testing.T, primus, python string) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	write := func(name, body string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755))
		return file
	}
	return []string{"-primus", write("primus", primus), "-python", write("python", python), "-models", "llama_6M", "-rounds", "3"}
}

// answerPrimus answers like primus ops tune, and like primus benchmark train: 1000 tokens/s on
// flagos, 3000 on oneDNN and 3500 with a tuning. There is no OpenBLAS.
const answerPrimus = `
[ "$1" = ops ] && { echo '{"entries": []}'; exit; }
impl=default.flagos speed=1000 ms=20 add=1
case "$*" in
*onednn*) impl=vendor.onednn speed=3000 ms=5 add=2 ;;
*tune.json*) speed=3500 ;;
esac
cat <<END
{"parameters": 7, "threads": 2, "tokens_per_step": 100, "tokens_per_second": $speed, "mfu": 0.5, "peak_bytes": 1048576,
 "shape": {"layers": 1, "micro_batches": 1, "tied": false}, "step_ms": {"min": 25},
 "ops": [{"op": "generic_gemm", "impl": "$impl", "ms": $ms}, {"op": "residual_add", "impl": "default.flagos", "ms": $add}]}
END`

const answerPython = `
[ "$1" = -c ] && exit 0
case "$*" in
*--tied*) exit 1 ;;
*"--layers 1 --micro-batches 1"*) ;;
*) exit 1 ;;
esac
echo '{"parameters": 7, "tokens_per_second": 2000, "step_ms_all": [60, 50], "peak_bytes": 2097152}'`

func compareJSON(t *testing.T, args []string) map[string]trainRow {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, train(t.Context(), append(args, "-o", "json"), &out, io.Discard))
	var r trainReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.Models, 1)
	rows := map[string]trainRow{}
	for _, row := range r.Models[0].Rows {
		rows[row.Name] = row
	}
	return rows
}

func TestCompare(t *testing.T) {
	rows := compareJSON(t, stage(t, answerPrimus, answerPython))
	assert.Equal(t, 3.5, rows["tuned"].Gain)
	for name, want := range map[string]float64{"flagos": 0.5, "vendor": 0.5, "onednn": 1.5, "tuned": 1.75, "pytorch": 1} {
		assert.Equal(t, want, rows[name].Ratio, name)
		assert.Len(t, rows[name].Turns, 3, name)
	}
	assert.Equal(t, 4000., rows["flagos"].Best, "100 tokens in 25 ms")
	assert.Equal(t, 2., rows["flagos"].BestRatio, "against 100 tokens in 50 ms")
	assert.Equal(t, 0.5, rows["flagos"].Memory)
	assert.Contains(t, rows["openblas"].Absent, "vendor.openblas served no op")
	assert.Empty(t, rows["openblas"].Turns)
}

func TestTrainTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, train(t.Context(), stage(t, answerPrimus, answerPython), &out, io.Discard))
	assert.Regexp(t, `llama_6M +onednn +3000 +3\.00 +1\.50 +1\.50 to 1\.50 \(75 %\) +4000 +2\.00 +0\.50 +1 +0\.50\n`, out.String())
	assert.Contains(t, out.String(), "llama_6M, openblas: vendor.openblas served no op")
}

func TestWithoutPyTorch(t *testing.T) {
	rows := compareJSON(t, stage(t, answerPrimus, "exit 1"))
	assert.Contains(t, rows["pytorch"].Absent, "install python3-torch")
	assert.Zero(t, rows["onednn"].Ratio)
	assert.Equal(t, 3000., rows["onednn"].Tokens)
}

func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct{ primus, python, want string }{
		"primus fails":   {"echo 'primus: error: no' >&2; exit 2", answerPython, "primus: error: no"},
		"not JSON":       {"echo hello", answerPython, "invalid character"},
		"the peer fails": {answerPrimus, `[ "$1" = -c ] && exit 0; echo 'out of memory' >&2; exit 1`, "out of memory"},
		"another model": {answerPrimus, strings.Replace(answerPython, `"parameters": 7`, `"parameters": 8`, 1),
			"trains a model of 8 parameters, primus one of 7"},
	} {
		t.Run(name, func(t *testing.T) {
			err := train(t.Context(), stage(t, tt.primus, tt.python), io.Discard, io.Discard)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTrainFlags(t *testing.T) {
	for give, want := range map[string]string{
		"-models llama_7B": `-models: given "llama_7B", want llama_6M, llama_30M, gpt2_10M, moe_8x3M`,
		"-rounds 0":        "given 0 rounds",
		"-o yaml":          `-o: given "yaml"`,
		"now":              `unexpected argument "now"`,
	} {
		assert.ErrorContains(t, train(t.Context(), strings.Fields(give), io.Discard, io.Discard), want, give)
	}
}

// The script has the models of bench-tune: their parameters are as many as the layers have.
func TestScriptHasTheModels(t *testing.T) {
	t.Parallel()
	python, err := pythonOf(t.Context(), "")
	if err != nil {
		t.Skip(err)
	}
	shape := map[string]any{"layers": 1, "hidden": 8, "ffn": 16, "heads": 2, "vocab": 16, "seq": 4, "batch": 2, "micro_batches": 1}
	for _, tt := range []struct {
		name  string
		shape map[string]any
		want  float64
	}{
		{"gpt2", map[string]any{"groups": 2, "gpt2": true, "tied": true}, 128 + 32 + 216 + 72 + 144 + 136 + 3*16},
		{"experts", map[string]any{"groups": 1, "experts": 4, "top_k": 2, "expert_ffn": 16}, 2*128 + 128 + 64 + 3*8 + 32 + 4*384},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			maps.Copy(tt.shape, shape)
			args := append([]string{"peers/pytorch_lm.py", "--steps", "1", "--warmup", "1", "--threads", "1"}, shapeFlags(tt.shape)...)
			var got struct{ Parameters, Loss float64 }
			require.NoError(t, answer(exec.CommandContext(t.Context(), python, args...), &got))
			assert.Equal(t, tt.want, got.Parameters)
			assert.InDelta(t, math.Log(16), got.Loss, 0.5)
		})
	}
}
