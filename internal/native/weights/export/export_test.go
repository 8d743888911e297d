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
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/weights/export"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

const (
	length  = 48 // of sequences, at most
	counted = 8  // tokens of which logits are compared
)

func llama() model.Config {
	return model.Config{
		NumLayers: 2, HiddenSize: 64, FFNHiddenSize: 96, NumAttentionHeads: 4, NumQueryGroups: 2, SeqLength: length,
		MaxPositionEmbeddings: length, VocabSize: 256, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.1, Untie: true,
	}
}

// architectures are the classes that are exported.
func architectures() map[string]model.Config {
	qwen2, qwen3, mistral, mixtral, llama3, linear, gpt2 := llama(), llama(), llama(), llama(), llama(), llama(), llama()
	qwen2.AddQKVBias = true
	qwen3.QKNorm, qwen3.KVChannels, qwen3.Untie = true, 32, false
	mistral.Window = [2]int{length - 1, 0}
	mixtral.Experts = model.Experts{NumExperts: 4, RouterTopk: 2, MoEFFNHiddenSize: 32}
	llama3.RopeScaling = model.RopeScaling{UseScaling: true, ScalingFactor: 8, LowFreq: 1, HighFreq: 4, OldContext: 64}
	linear.Interpolation = 4
	gpt2.NumQueryGroups, gpt2.Untie, gpt2.RotaryBase, gpt2.AddBiasLinear = 4, false, 0, true
	gpt2.Normalization, gpt2.PositionEmbedding, gpt2.Activation = model.LayerNorm, model.LearnedAbsolute, model.GELU
	qwen3MoE := mixtral
	qwen3MoE.QKNorm, qwen3MoE.KVChannels = true, 32
	return map[string]model.Config{
		"qwen3 moe": qwen3MoE,
		"llama":     llama(), "qwen2": qwen2, "qwen3": qwen3, "mistral": mistral, "mixtral": mixtral, "llama3": llama3, "linear": linear, "gpt2": gpt2,
	}
}

func newModel(t *testing.T, cfg model.Config) *model.Model {
	t.Helper()
	backend := cpu.New()
	m, err := model.New(cfg, backend)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close())
	})
	require.NoError(t, m.Init(1))
	for _, p := range m.Params() { // norms and biases are constants otherwise
		if len(p.Value.Shape()) == 1 {
			for i, v := range tensor.Data[float32](p.Value) {
				tensor.Data[float32](p.Value)[i] = v + 0.3*float32(math.Sin(float64(i)))
			}
		}
	}
	return m
}

// exported is a model that is exported.
func exported(t *testing.T, m *model.Model) *export.Model {
	t.Helper()
	text, err := json.Marshal(m.Config().HFConfig())
	require.NoError(t, err)
	e := &export.Model{Config: m.Config(), Tensors: weights.FromModel(m), Tokenizer: tokenizer.Byte{}}
	e.JSON = object(t, text)
	return e
}

// object returns a JSON object with numbers as they are written.
func object(t *testing.T, text []byte) (all map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&all))
	return all
}

// withDecoder calls f with a decoder of one sequence.
func withDecoder(t *testing.T, m *model.Model, f func(d *model.Decoder)) {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(flagos.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer mgr.Close()
	d, err := m.NewDecoder(mgr, model.DecoderSettings{Slots: 1, Capacity: length})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	f(d)
}

// logits are those of the tokens 1, 2, …
func logits(t *testing.T, m *model.Model) []float32 {
	t.Helper()
	var all []float32
	withDecoder(t, m, func(d *model.Decoder) {
		var tokens []int32
		for i := range counted {
			tokens = append(tokens, int32(i+1))
		}
		got, err := d.Step([]model.Chunk{{Tokens: tokens}})
		require.NoError(t, err)
		all = slices.Clone(tensor.Data[float32](got))
	})
	return all
}

// greedy continues tokens up to the whole length.
func greedy(t *testing.T, m *model.Model, tokens []int32) []int32 {
	t.Helper()
	n := len(tokens)
	withDecoder(t, m, func(d *model.Decoder) {
		for next := tokens; len(tokens) < length; next = tokens[len(tokens)-1:] {
			got, err := d.Step([]model.Chunk{{Tokens: next, From: len(next) - 1}})
			require.NoError(t, err)
			scores := tensor.Data[float32](got)
			best := 0
			for i, v := range scores {
				if v > scores[best] {
					best = i
				}
			}
			tokens = append(tokens, int32(best))
		}
	})
	return tokens[n:]
}

// load opens a folder and returns a model with its weights.
func load(t *testing.T, dir string) *model.Model {
	t.Helper()
	f, err := weights.Open(t.Context(), dir, weights.Settings{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	m := newModel(t, f.Config())
	require.NoError(t, f.Load(m))
	tok, err := f.Tokenizer()
	require.NoError(t, err)
	assert.Equal(t, []int32{'h', 'e', 0xc3, 0xa9, '\n', ' ', 0}, tok.Encode(nil, []byte("heé\n \x00")))
	assert.Equal(t, "heé\n \x00", string(tok.Decode(nil, []int32{'h', 'e', 0xc3, 0xa9, '\n', ' ', 0})))
	return m
}

func TestFolderRoundTrips(t *testing.T) {
	t.Parallel()
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, cfg)
			dir := filepath.Join(t.TempDir(), "a", "model")
			require.NoError(t, export.HF(dir, exported(t, m), export.HFSettings{MaxShard: 60_000}))
			shards, err := filepath.Glob(filepath.Join(dir, "model-*.safetensors"))
			require.NoError(t, err)
			assert.Greater(t, len(shards), 3)
			got := load(t, dir)
			assert.Equal(t, cfg.HFConfig(), got.Config().HFConfig())
			for i, p := range m.Params() {
				assert.Equal(t, tensor.Data[float32](p.Value), tensor.Data[float32](got.Params()[i].Value), p.Name)
			}

			narrow := filepath.Join(filepath.Dir(dir), "narrow")
			require.NoError(t, export.HF(narrow, exported(t, m), export.HFSettings{DType: tensor.BF16}))
			f, err := weights.Open(t.Context(), narrow, weights.Settings{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, f.Close()) }()
			e, err := export.FromFolder(f)
			require.NoError(t, err)
			again := filepath.Join(filepath.Dir(dir), "again")
			require.NoError(t, export.HF(again, e, export.HFSettings{}))
			assertSameFiles(t, narrow, again)
		})
	}
}

// join makes a folder one of Phi 3, which has queries, keys and values in one matrix, and gate and
// value.
func join(t *testing.T, m *model.Model, dir string) {
	t.Helper()
	var rest []safetensors.Entry
	add := func(name string, all *tensor.Tensor) {
		e, err := safetensors.FromTensor(name, all)
		require.NoError(t, err)
		rest = append(rest, e)
	}
	joined := map[string]string{"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
	together := map[string][]float32{}
	for _, n := range m.Tensors() {
		parts := strings.Split(n.Name, ".")
		all, ok := joined[parts[len(parts)-2]]
		if !ok {
			add(n.Name, n.Tensor)
			continue
		}
		parts[len(parts)-2] = all
		name := strings.Join(parts, ".")
		together[name] = append(together[name], tensor.Data[float32](n.Tensor)...)
	}
	h := m.Config().HiddenSize
	for name, values := range together {
		all, err := tensor.FromSlice(values, len(values)/h, h)
		require.NoError(t, err)
		add(name, all)
	}
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), rest, map[string]string{"format": "pt"}))
	setKeys(t, dir, map[string]any{"model_type": "phi3"})
}

// setKeys changes keys of the config.json of a folder.
func setKeys(t *testing.T, dir string, keys map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	config := object(t, text)
	maps.Copy(config, keys)
	text, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o644))
}

func TestFolderWithJoinedMatrices(t *testing.T) {
	t.Parallel()
	cfg := llama()
	cfg.KVChannels = 24
	m := newModel(t, cfg)
	plain, dir, again := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "phi"), filepath.Join(t.TempDir(), "again")
	require.NoError(t, export.HF(plain, exported(t, m), export.HFSettings{}))
	require.NoError(t, export.HF(dir, exported(t, m), export.HFSettings{}))
	join(t, m, dir)
	got := load(t, dir)
	for i, p := range m.Params() {
		assert.Equal(t, tensor.Data[float32](p.Value), tensor.Data[float32](got.Params()[i].Value), p.Name)
	}

	open := func() *weights.Folder {
		f, err := weights.Open(t.Context(), dir, weights.Settings{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, f.Close()) })
		return f
	}
	e, err := export.FromFolder(open())
	require.NoError(t, err)
	require.NoError(t, export.HF(again, e, export.HFSettings{}))
	assertSameFiles(t, plain, again)

	setKeys(t, dir, map[string]any{"num_key_value_heads": 1})
	_, err = open().Tensors()
	assert.ErrorContains(t, err, `tensor "model.layers.0.self_attn.qkv_proj.weight" has the shape [192 64], want 144 rows as config.json says`)

	setKeys(t, dir, map[string]any{"num_key_value_heads": 2, "model_type": "llama"})
	_, err = open().Tensors()
	assert.ErrorContains(t, err, `no tensor "model.layers.0.self_attn.q_proj.weight"`, "Llama has them by themselves")
}

func assertSameFiles(t *testing.T, a, b string) {
	t.Helper()
	entries, err := os.ReadDir(a)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		want, err := os.ReadFile(filepath.Join(a, e.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(b, e.Name()))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), e.Name())
	}
}

// A tokenizer made from text, which has no tokenizer_config.json, gets one.
func TestFolderNamesItsTokenizer(t *testing.T) {
	t.Parallel()
	c := trainer.Default()
	c.VocabSize = 260
	tr, err := trainer.New(c)
	require.NoError(t, err)
	tr.AddText([]byte(corpus))
	r, err := tr.Train(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.json")
	require.NoError(t, os.WriteFile(path, r.JSON, 0o644))
	cfg := llama()
	cfg.VocabSize = 264
	m := exported(t, newModel(t, cfg))
	m.Tokenizer, err = tokenizer.Load(path)
	require.NoError(t, err)
	target := filepath.Join(dir, "model")
	require.NoError(t, export.HF(target, m, export.HFSettings{}))
	tok, err := tokenizer.Load(target)
	require.NoError(t, err)
	assert.Equal(t, int32(0), tok.EOS())
	for name, want := range map[string]string{
		"tokenizer_config.json": `"eos_token": "<|endoftext|>"`, "config.json": `"eos_token_id": 0`, "generation_config.json": `"eos_token_id": 0`,
	} {
		text, err := os.ReadFile(filepath.Join(target, name))
		require.NoError(t, err)
		// Escapes as JSON has them in HTML.
		assert.Contains(t, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)), want)
	}
}

// Models in PyTorch, with readers of their own, compute the logits of the exported models.
func TestPyTorchReadsExports(t *testing.T) {
	t.Parallel()
	python := primustest.Python(t, "torch", "numpy")
	dir := t.TempDir()
	want, within := map[string][]float32{}, map[string]float64{}
	for name, cfg := range architectures() {
		m := newModel(t, cfg)
		all := logits(t, m)
		add := func(path string, most float64) { want[path], within[path] = all, most }
		for dtype, most := range map[tensor.DType]float64{tensor.F32: 1e-5, tensor.BF16: 0.02, tensor.F16: 2e-3} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%v", name, dtype))
			require.NoError(t, export.HF(path, exported(t, m), export.HFSettings{DType: dtype}))
			add(path, most)
		}
		for kind, most := range map[export.Type]float64{export.F32: 1e-5, export.F16: 2e-3, export.BF16: 0.02, export.Q8_0: 0.03} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%v.gguf", name, kind))
			report, err := export.GGUF(path, exported(t, m), export.GGUFSettings{Type: kind, Name: name})
			require.NoError(t, err)
			assert.Empty(t, report.Wider)
			add(path, most)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/logits.py", fmt.Sprintf("--tokens=%d", counted)}, slices.Sorted(maps.Keys(want))...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var got map[string][]float64
	require.NoError(t, json.Unmarshal(out, &got))
	for path, all := range want {
		require.Len(t, got[path], len(all), path)
		sum, norm := 0.0, 0.0
		for i, v := range all {
			sum += (got[path][i] - float64(v)) * (got[path][i] - float64(v))
			norm += float64(v) * float64(v)
		}
		assert.Less(t, math.Sqrt(sum/norm), within[path], filepath.Base(path))
	}
}

func TestWhatIsNotExported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	require.NoError(t, os.Mkdir(full, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(full, "notes.txt"), nil, 0o644))
	m := newModel(t, llama())
	assert.ErrorContains(t, export.HF(full, exported(t, m), export.HFSettings{}), "exists and is not empty")
	_, err := export.GGUF(filepath.Join(full, "notes.txt"), exported(t, m), export.GGUFSettings{})
	assert.ErrorContains(t, err, "exists: choose another name")

	target := filepath.Join(dir, "target")
	mixed := llama()
	mixed.Normalization = model.LayerNorm
	own := exported(t, newModel(t, mixed))
	assert.ErrorContains(t, export.HF(target, own, export.HFSettings{}), "no class of transformers")
	_, err = export.GGUF(target+".gguf", own, export.GGUFSettings{})
	assert.ErrorContains(t, err, `no model of the type "primus"`)
	windowed := llama()
	windowed.Window = [2]int{2, 0}
	_, err = export.GGUF(target+".gguf", exported(t, newModel(t, windowed)), export.GGUFSettings{})
	assert.ErrorContains(t, err, "without a window: given 3 tokens of 48 positions")
	for name, want := range map[string]string{"exact gelu": `activation_func: llama.cpp computes models of the type "llama" with swiglu: given geglu_erf`, "gpt2 with exact gelu": `"gpt2" with gelu: given gelu_erf`, "qwen3 with biases": "attention_bias", "dynamic": "positions of type dynamic", "longrope": "positions of type longrope"} {
		_, err = export.GGUF(target+".gguf", exported(t, newModel(t, families()[name])), export.GGUFSettings{})
		assert.ErrorContains(t, err, want)
	}

	tensor.Data[float32](m.Params()[0].Value)[5] = 1e6
	assert.ErrorContains(t, export.HF(target, exported(t, m), export.HFSettings{DType: tensor.F16}), `tensor "model.embed_tokens.weight": given 1e+06, which f16 cannot hold`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left over")
}
