package weights_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/tensor"

	"github.com/primus-fl/primus/internal/primustest"
)

func llama() model.Config {
	return model.Config{
		NumLayers: 2, HiddenSize: 16, FFNHiddenSize: 24, NumAttentionHeads: 4, NumQueryGroups: 2, SeqLength: 8,
		MaxPositionEmbeddings: 8, VocabSize: 256, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.2, Untie: true,
	}
}

func gpt2() model.Config {
	c := llama()
	c.NumQueryGroups, c.Untie, c.RotaryBase = 4, false, 0
	c.Normalization, c.PositionEmbedding, c.Activation, c.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, model.GELU, true
	return c
}

func mixtral() model.Config {
	c := llama()
	c.Experts = model.Experts{NumExperts: 4, RouterTopk: 2, AuxLossCoeff: 0.1}
	return c
}

// mixed is an architecture of parts that no class has together.
func mixed() model.Config {
	c := llama()
	c.Normalization, c.PositionEmbedding, c.Activation, c.AddBiasLinear = model.LayerNorm, model.Rope, model.SwiGLU, true
	return c
}

func architectures() map[string]model.Config {
	qwen2, qwen3, mistral, window, llama3, linear, norms := llama(), llama(), llama(), llama(), llama(), llama(), gpt2()
	qwen2.AddQKVBias = true
	qwen3.QKNorm, qwen3.KVChannels, qwen3.Untie = true, 6, false
	mistral.Window = [2]int{3, 0}
	window.QKNorm, window.Window = true, [2]int{3, 0}
	llama3.RopeScaling = model.RopeScaling{UseScaling: true, ScalingFactor: 32, LowFreq: 1, HighFreq: 4, OldContext: 8192}
	linear.Interpolation = 2
	norms.QKNorm, norms.RotaryBase = true, 0
	yarn, some, own, early := llama(), llama(), llama(), mixtral()
	yarn.PositionEmbedding = model.YaRN
	yarn.Yarn = model.Yarn{Factor: 4, Context: 4, BetaFast: 32, BetaSlow: 1, MScale: 1}
	some.AddQKVBias, some.Window, some.WindowLayers = true, [2]int{3, 0}, []int{0, 1}
	own.Window, own.WindowLayers = [2]int{3, 0}, []int{1, 0}
	early.PreSoftmax, early.RouterTopk = true, 1
	qwen3MoE := mixtral()
	qwen3MoE.QKNorm, qwen3MoE.KVChannels, qwen3MoE.MoEFFNHiddenSize = true, 6, 5
	free := qwen3MoE
	free.PreSoftmax = true
	tied := llama()
	tied.Untie = false
	attentionBias, mlpBias, qwen3Bias, qwen3MoEBias, dynamic, long := llama(), llama(), qwen3, qwen3MoE, llama(), llama()
	attentionBias.AttentionBias, mlpBias.MLPBias, qwen3Bias.AttentionBias, qwen3MoEBias.AttentionBias = true, true, true, true
	dynamic.PositionEmbedding, dynamic.ScalingFactor = model.DynamicRope, 4
	long.PositionEmbedding, long.OldContext = model.LongRope, 4
	long.LongRopeFactors = model.LongRopeFactors{ShortFactors: []float64{1, 1.5}, LongFactors: []float64{2, 3.25}, AttentionFactor: 1.25}
	olmo2, whole := qwen3Bias, mixtral()
	olmo2.NormPlacement, olmo2.QKNormWhole = model.PostNorm, true
	whole.NormPlacement = model.PostNorm
	gemma3 := qwen3Bias
	gemma3.Activation, gemma3.NormPlacement, gemma3.ZeroCentered, gemma3.QueryScalar, gemma3.LocalBase = model.GeGLU, model.BothNorm, true, 9, 100
	gemma3.EmbeddingMultiplier, gemma3.Window, gemma3.WindowLayers = 4, [2]int{3, 0}, []int{1, 0}
	exact, gelu, exactGemma, exactGPT2, ownGelu := llama(), qwen2, gemma3, gpt2(), llama()
	exact.Activation, gelu.Activation, exactGemma.Activation, exactGPT2.Activation = model.GeGLUErf, model.GeGLU, model.GeGLUErf, model.GELUErf
	ownGelu.Activation = model.GELUErf
	gemma2 := gemma3
	gemma2.QKNorm, gemma2.LocalBase, gemma2.AttnSoftcap, gemma2.FinalSoftcap = false, 0, 20, 10
	free2, capped3, ownCaps := gemma2, gemma3, llama()
	free2.AttnSoftcap, free2.FinalSoftcap, capped3.FinalSoftcap, ownCaps.AttnSoftcap, ownCaps.FinalSoftcap = 0, 0, 10, 5, 2.5
	times3 := gemma3
	times3.EmbeddingMultiplier, times3.Interpolation = 3, 2
	return map[string]model.Config{
		"gemma2": gemma2, "gemma2 without limits": free2, "gemma3 with a limit of logits": capped3, "limits, own": ownCaps,
		"exact gelu": exact, "qwen2 with gelu": gelu, "gemma3 with exact gelu": exactGemma, "gpt2 with exact gelu": exactGPT2, "exact gelu, own": ownGelu,
		"gemma3": gemma3, "gemma3 with another multiplier": times3, "olmo2": olmo2, "norms of outputs": whole,
		"attention bias": attentionBias, "mlp bias": mlpBias, "qwen3 with biases": qwen3Bias, "qwen3 moe with biases": qwen3MoEBias,
		"dynamic": dynamic, "longrope": long,
		"yarn": yarn, "windows of some layers": some, "windows of some layers, own": own, "pre softmax": early,
		"qwen3 moe": qwen3MoE, "qwen3 moe with free weights": free,
		"llama": llama(), "tied": tied, "gpt2": gpt2(), "mixtral": mixtral(), "mixed": mixed(),
		"qwen2": qwen2, "qwen3": qwen3, "mistral": mistral, "qwen3 with a window": window, "llama3": llama3, "linear": linear, "norms": norms,
	}
}

func newModel(t *testing.T, cfg model.Config, seed uint64) *model.Model {
	t.Helper()
	backend := cpu.New()
	m, err := model.New(cfg, backend)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close())
	})
	require.NoError(t, m.Init(seed))
	return m
}

// entries returns the weights of a model as a file holds them.
func entries(t *testing.T, m *model.Model) []safetensors.Entry {
	t.Helper()
	var all []safetensors.Entry
	for _, n := range m.Tensors() {
		e, err := safetensors.FromTensor(n.Name, n.Tensor)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o644))
}

// folder writes a model as a folder with one file of tensors.
func folder(t *testing.T, m *model.Model) string {
	t.Helper()
	dir := t.TempDir()
	writeJSON(t, filepath.Join(dir, "config.json"), m.Config().HFConfig())
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), entries(t, m), nil))
	return dir
}

// load opens a folder and returns a model with its weights.
func load(t *testing.T, dir string) *model.Model {
	t.Helper()
	f, err := weights.Open(t.Context(), dir, weights.Settings{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	m := newModel(t, f.Config(), 2)
	require.NoError(t, f.Load(m))
	return m
}

func assertSame(t *testing.T, want, got *model.Model) {
	t.Helper()
	for i, p := range want.Params() {
		assert.Equal(t, tensor.Data[float32](p.Value), tensor.Data[float32](got.Params()[i].Value), p.Name)
	}
}

func TestFolderOfEachClass(t *testing.T) {
	t.Parallel()
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, cfg, 1)
			got := load(t, folder(t, m))
			assert.Equal(t, cfg, got.Config())
			assert.Equal(t, cfg.HFConfig(), got.Config().HFConfig())
			assertSame(t, m, got)
		})
	}
}

func TestOpenFindsCheckpoints(t *testing.T) {
	t.Parallel()
	run := t.TempDir()
	store, err := checkpoint.NewStore(filepath.Join(run, "checkpoints"), checkpoint.Settings{})
	require.NoError(t, err)
	var newest *model.Model
	for step := range int64(2) {
		newest = newModel(t, llama(), uint64(step))
		_, err = store.Save(step, func(w *checkpoint.Writer) error {
			if err := w.JSON("config.json", llama().HFConfig()); err != nil {
				return err
			}
			return w.Safetensors("model.safetensors", entries(t, newest), nil)
		})
		require.NoError(t, err)
	}
	for _, dir := range []string{run, store.Dir(), filepath.Join(store.Dir(), "step-00000001")} {
		assertSame(t, newest, load(t, dir))
	}
	f, err := weights.Open(t.Context(), run, weights.Settings{})
	require.NoError(t, err)
	tok, err := f.Tokenizer()
	require.NoError(t, err)
	assert.Equal(t, tokenizer.Byte{}, tok)
	require.NoError(t, f.Close())

	path := filepath.Join(store.Dir(), "step-00000001", "model.safetensors")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)-1] ^= 1
	require.NoError(t, os.WriteFile(path, text, 0o644))
	_, err = weights.Open(t.Context(), run, weights.Settings{})
	var corrupt *checkpoint.CorruptError
	require.ErrorAs(t, err, &corrupt)
}

// The matrices of a model that is not trained have the type in which it computes, whatever that of
// the file is.
func TestMatricesOf16Bits(t *testing.T) {
	t.Parallel()
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, cfg, 1)
			f, err := weights.Open(t.Context(), folder(t, m), weights.Settings{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, f.Close()) }()
			assert.Equal(t, tensor.F32, f.DType())
			for _, dtype := range []tensor.DType{tensor.BF16, tensor.F16} {
				narrow := f.Config()
				narrow.BF16, narrow.FP16 = dtype == tensor.BF16, dtype == tensor.F16
				got, err := model.NewFrozen(narrow, cpu.New())
				require.NoError(t, err)
				defer func() { assert.NoError(t, got.Close()) }()
				require.NoError(t, f.Load(got))
				for i, p := range got.Params() {
					want := tensor.Data[float32](m.Params()[i].Value)
					if len(p.Shape) == 1 || p.Wide {
						assert.Equal(t, want, tensor.Data[float32](p.Value), p.Name)
						continue
					}
					require.Equal(t, dtype, p.Value.DType(), p.Name)
					for j, v := range p.Value.Float64s() {
						rounded := float64(tensor.ToBFloat16(want[j]).Float32())
						if dtype == tensor.F16 {
							rounded = float64(tensor.ToFloat16(want[j]).Float32())
						}
						if v != rounded {
							t.Fatalf("%s: element %d: got %v, want %v", p.Name, j, v, rounded)
						}
					}
				}
			}
		})
	}
}

func TestAveragesInPlaceOfWeights(t *testing.T) {
	t.Parallel()
	m, averages := newModel(t, llama(), 1), newModel(t, llama(), 2)
	dir := folder(t, m)
	average := weights.Settings{Average: true}
	_, err := weights.Open(t.Context(), dir, average)
	assert.ErrorContains(t, err, "no model_ema.safetensors, which a run with ema_decay saves")
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model_ema.safetensors"), entries(t, averages), nil))
	assertSame(t, m, load(t, dir))
	f, err := weights.Open(t.Context(), dir, average)
	require.NoError(t, err)
	got := newModel(t, llama(), 3)
	require.NoError(t, f.Load(got))
	require.NoError(t, f.Close())
	assertSame(t, averages, got)
	writeJSON(t, filepath.Join(dir, "adapter_config.json"), map[string]any{})
	_, err = weights.Open(t.Context(), dir, average)
	assert.ErrorContains(t, err, "averages of adapters alone")
}

// A folder of other programs: several files, narrow elements, the names of the class for the
// decoder alone, and tensors that hold no weights.
func TestShardsOfNarrowElements(t *testing.T) {
	t.Parallel()
	for dtype, round := range map[tensor.DType]func(float32) (uint16, float32){
		tensor.BF16: func(v float32) (uint16, float32) {
			n := tensor.ToBFloat16(v)
			return uint16(n), n.Float32()
		},
		tensor.F16: func(v float32) (uint16, float32) {
			n := tensor.ToFloat16(v)
			return uint16(n), n.Float32()
		},
	} {
		t.Run(dtype.String(), func(t *testing.T) {
			t.Parallel()
			m, dir := newModel(t, gpt2(), 1), t.TempDir()
			writeJSON(t, filepath.Join(dir, "config.json"), gpt2().HFConfig())
			shards, index := make([][]safetensors.Entry, 2), map[string]string{}
			add := func(i int, name string, bits []uint16, shape []int) {
				var e safetensors.Entry
				var err error
				if dtype == tensor.BF16 {
					e, err = narrow[tensor.BFloat16](name, bits, shape)
				} else {
					e, err = narrow[tensor.Float16](name, bits, shape)
				}
				require.NoError(t, err)
				shards[i] = append(shards[i], e)
				index[name] = fmt.Sprintf("model-%d.safetensors", i)
			}
			var embedding []uint16
			for i, n := range m.Tensors() {
				data := tensor.Data[float32](n.Tensor)
				bits := make([]uint16, len(data))
				for j := range data {
					bits[j], data[j] = round(data[j])
				}
				if i == 0 {
					embedding = bits
				}
				add(i%2, n.Name[len("transformer."):], bits, n.Tensor.Shape())
			}
			add(0, "h.1.attn.bias", []uint16{1, 0}, []int{1, 1, 2, 1})
			add(1, "lm_head.weight", embedding, []int{256, 16})
			for i, all := range shards {
				require.NoError(t, safetensors.WriteFile(filepath.Join(dir, fmt.Sprintf("model-%d.safetensors", i)), all, nil))
			}
			writeJSON(t, filepath.Join(dir, "model.safetensors.index.json"), map[string]any{"weight_map": index})
			assertSame(t, m, load(t, dir))
		})
	}
}

// narrow returns an entry of 16-bit elements.
func narrow[T ~uint16](name string, bits []uint16, shape []int) (safetensors.Entry, error) {
	all := make([]T, len(bits))
	for i, b := range bits {
		all[i] = T(b)
	}
	switch all := any(all).(type) {
	case []tensor.BFloat16:
		return safetensors.FromSlice(name, all, shape...)
	default:
		return safetensors.FromSlice(name, all.([]tensor.Float16), shape...)
	}
}

func TestFolderThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(config map[string]any)
		more   bool
		want   string
	}{
		"a missing tensor": {func(c map[string]any) { c["num_hidden_layers"] = 3 }, false, `no tensor "model.layers.2.input_layernorm.weight", want [16]`},
		"another shape":    {func(c map[string]any) { c["intermediate_size"] = 32 }, false, `tensor "model.layers.0.mlp.gate_proj.weight" has the shape [24 16], want [32 16]`},
		"a tensor more":    {func(map[string]any) {}, true, `tensor "extra" is not part of the model`},
		"a head of its own, tied": {
			func(c map[string]any) { c["tie_word_embeddings"] = true }, false, `tensor "lm_head.weight" is not part of the model`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := newModel(t, llama(), 1), t.TempDir()
			config := llama().HFConfig()
			tt.change(config)
			writeJSON(t, filepath.Join(dir, "config.json"), config)
			all := entries(t, m)
			if tt.more {
				e, err := safetensors.FromSlice("extra", []float32{1})
				require.NoError(t, err)
				all = append(all, e)
			}
			require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), all, nil))
			f, err := weights.Open(t.Context(), dir, weights.Settings{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, f.Close()) }()
			other := newModel(t, f.Config(), 2)
			before := append([]float32{}, tensor.Data[float32](other.Params()[0].Value)...)
			assert.ErrorContains(t, f.Load(other), tt.want)
			assert.Equal(t, before, tensor.Data[float32](other.Params()[0].Value), "nothing is written")
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	_, err := weights.Open(t.Context(), at("none"), weights.Settings{})
	assert.ErrorContains(t, err, "no such file or directory; want a directory: a checkpoint")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = weights.Open(t.Context(), dir, weights.Settings{})
	assert.ErrorContains(t, err, "has neither config.json nor checkpoints")
	require.NoError(t, os.MkdirAll(at("run/checkpoints"), 0o755))
	_, err = weights.Open(t.Context(), at("run"), weights.Settings{})
	assert.ErrorContains(t, err, "the run "+at("run")+" has saved no checkpoint yet: wait for its first one")
	writeJSON(t, at("config.json"), llama().HFConfig())
	_, err = weights.Open(t.Context(), at("config.json"), weights.Settings{})
	assert.ErrorContains(t, err, "want a directory")
	_, err = weights.Open(t.Context(), dir, weights.Settings{})
	assert.ErrorContains(t, err, "want weights in the safetensors format")
	for text, want := range map[string]string{
		`[]`: "not an index", `{}`: "given no tensors", `{"weight_map": {"a": "../b.safetensors"}}`: "in the same folder",
		`{"weight_map": {"a": "model.bin"}}`: "*.safetensors", `{"weight_map": {"a": "b.safetensors"}}`: "no such file",
	} {
		require.NoError(t, os.WriteFile(at("model.safetensors.index.json"), []byte(text), 0o644))
		_, err = weights.Open(t.Context(), dir, weights.Settings{})
		assert.ErrorContains(t, err, want)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata": {"total_size": 1}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "x.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../b.safetensors"}}`))
	config, err := json.Marshal(llama().HFConfig())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, index []byte) {
		defer primustest.Measured(t, len(index))()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), index, 0o644))
		_, err := weights.Open(t.Context(), dir, weights.Settings{})
		assert.Error(t, err, "no file of the index exists")
	})
}

// Elements of a type that is not read or written are an error, not taken for those of another type.
func TestOtherTypesOfElements(t *testing.T) {
	t.Parallel()
	const want = "given elements of type f64, want one of [f32 bf16 f16]"
	_, err := weights.Append(nil, tensor.F64, []float32{1})
	require.EqualError(t, err, want)
	err = weights.Tensor{Name: "w", DType: tensor.F64}.ReadFloat32(make([]float32, 1), 0)
	require.EqualError(t, err, `read tensor "w": `+want)
}
