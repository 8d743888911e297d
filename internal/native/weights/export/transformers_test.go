package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights/export"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/tensor"
)

// scored is the number of tokens whose loss is compared.
const scored = 40

// families are what transformers computes, beside the architectures that llama.cpp computes, too.
func families() map[string]model.Config {
	all := architectures()
	attention, mlp, qwen3, dynamic, long, yarn := llama(), llama(), all["qwen3"], llama(), llama(), llama()
	attention.AttentionBias, mlp.MLPBias, qwen3.AttentionBias = true, true, true
	dynamic.PositionEmbedding, dynamic.ScalingFactor = model.DynamicRope, 4
	yarn.PositionEmbedding, yarn.Yarn = model.YaRN, model.Yarn{Factor: 3, Context: length / 3, BetaFast: 4} // older versions take the ratio for the factor
	long.PositionEmbedding, long.OldContext = model.LongRope, 32
	long.LongRopeFactors = model.LongRopeFactors{ShortFactors: []float64{1, 1, 1, 1, 1, 1, 1, 1}, LongFactors: []float64{1, 1.5, 2, 2.5, 3, 4, 6, 8}}
	short := long
	short.OldContext = length
	short.LongRopeFactors = model.LongRopeFactors{ShortFactors: long.LongFactors, LongFactors: long.ShortFactors}
	olmo2 := llama()
	olmo2.NormPlacement, olmo2.QKNorm, olmo2.QKNormWhole, olmo2.NormEpsilon = model.PostNorm, true, true, 1e-6
	gemma3 := all["qwen3"]
	gemma3.Activation, gemma3.NormPlacement, gemma3.ZeroCentered, gemma3.QueryScalar, gemma3.LocalBase = model.GeGLU, model.BothNorm, true, 9, 100
	gemma3.EmbeddingMultiplier, gemma3.Window, gemma3.WindowLayers = 8, [2]int{20, 0}, []int{1, 0}
	exact, tanh, exactGPT2, exactGemma := llama(), all["qwen3"], all["gpt2"], gemma3
	exact.Activation, tanh.Activation, exactGPT2.Activation, exactGemma.Activation = model.GeGLUErf, model.GeGLU, model.GELUErf, model.GeGLUErf
	gemma2 := gemma3
	gemma2.QKNorm, gemma2.LocalBase, gemma2.AttnSoftcap, gemma2.FinalSoftcap = false, 0, 2, 3
	capped := gemma3
	capped.FinalSoftcap = 3
	maps.Copy(all, map[string]model.Config{
		"gemma2": gemma2, "gemma3 with a limit of logits": capped, "exact gelu": exact, "qwen3 with gelu": tanh, "gpt2 with exact gelu": exactGPT2, "gemma3 with exact gelu": exactGemma,
		"gemma3": gemma3, "olmo2": olmo2, "attention bias": attention, "mlp bias": mlp, "qwen3 with biases": qwen3, "dynamic": dynamic, "yarn": yarn, "longrope": long, "longrope, short": short,
	})
	return all
}

// loss is the mean loss of the tokens 1, 2, …
func loss(t *testing.T, m *model.Model) float64 {
	t.Helper()
	mean := 0.0
	withDecoder(t, m, func(d *model.Decoder) {
		var tokens []int32
		for i := range scored {
			tokens = append(tokens, int32(i+1))
		}
		got, err := d.Step([]model.Chunk{{Tokens: tokens}})
		require.NoError(t, err)
		vocab := m.Config().VocabSize
		for i, target := range tokens[1:] {
			row, sum := tensor.Data[float32](got)[i*vocab:][:vocab], 0.0
			for _, v := range row {
				sum += math.Exp(float64(v))
			}
			mean += (math.Log(sum) - float64(row[target])) / (scored - 1)
		}
	})
	return mean
}

func TestTransformersComputesTheSameLoss(t *testing.T) {
	t.Parallel()
	python := primustest.Python(t, "torch", "transformers")
	dir := t.TempDir()
	want := map[string]float64{}
	for name, cfg := range families() {
		m := newModel(t, cfg)
		path := filepath.Join(dir, name)
		require.NoError(t, export.HF(path, exported(t, m), export.HFSettings{}))
		if name != "longrope" { // older versions take the short factors for all lengths of this class
			want[path] = loss(t, m)
		}
		if cfg.PositionEmbedding == model.LongRope {
			path = filepath.Join(dir, "phi 3 with "+name)
			require.NoError(t, export.HF(path, exported(t, m), export.HFSettings{}))
			join(t, m, path)
			setKeys(t, path, map[string]any{"rope_scaling": map[string]any{"type": "longrope", "short_factor": cfg.ShortFactors, "long_factor": cfg.LongFactors}})
			want[path] = loss(t, load(t, path))
		}
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/transformers_loss.py", fmt.Sprintf("--tokens=%d", scored)}, slices.Sorted(maps.Keys(want))...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var got map[string]*float64
	require.NoError(t, json.Unmarshal(out, &got))
	for path, loss := range want {
		if got[path] == nil {
			t.Logf("%s: this version of transformers has no such class", filepath.Base(path))
			continue
		}
		assert.InDelta(t, *got[path], loss, 1e-6, filepath.Base(path))
	}
}
