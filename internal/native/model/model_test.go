package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tiny(untie bool) model.Config {
	return model.Config{
		NumLayers: 2, HiddenSize: 16, FFNHiddenSize: 24, NumAttentionHeads: 4, NumQueryGroups: 2,
		SeqLength: 6, VocabSize: 256, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.2, Untie: untie,
	}
}

func gpt2() model.Config {
	c := tiny(false)
	c.NumQueryGroups, c.RotaryBase, c.MaxPositionEmbeddings = 0, 0, 8
	c.Normalization, c.PositionEmbedding, c.Activation, c.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, model.GELU, true
	return c
}

func mixtral() model.Config {
	c := tiny(true)
	c.Experts = model.Experts{NumExperts: 4, MoEFFNHiddenSize: 8, AuxLossCoeff: 0.1}
	return c
}

func qwen2() model.Config {
	c := tiny(true)
	c.AddQKVBias = true
	return c
}

// qwen3 has heads of another size than hidden_size / num_attention_heads.
func qwen3() model.Config {
	c := tiny(false)
	c.QKNorm, c.KVChannels = true, 6
	return c
}

func mistral() model.Config {
	c := tiny(true)
	c.Window = [2]int{2, 0}
	return c
}

func llama3() model.Config {
	c := tiny(true)
	c.RopeScaling = model.RopeScaling{UseScaling: true, ScalingFactor: 4, OldContext: 4}
	return c
}

// headNorms has norms of heads before learned positions.
func headNorms() model.Config {
	c := gpt2()
	c.QKNorm, c.Normalization = true, model.RMSNorm
	return c
}

// headLayerNorms has norms of heads with biases.
func headLayerNorms() model.Config {
	c := tiny(true)
	c.QKNorm, c.KVChannels, c.Normalization = true, 8, model.LayerNorm
	return c
}

// mixed is an architecture of parts that no family has together.
func mixed() model.Config {
	c := tiny(true)
	c.Normalization, c.AddBiasLinear = model.LayerNorm, true
	c.HiddenDropout, c.AttentionDropout = 0.3, 0.2
	return c
}

func plain() model.Config {
	c := tiny(false)
	c.Activation = model.GELU
	return c
}

// exact returns an architecture with another activation.
func exact(c model.Config, activation model.Activation) model.Config {
	c.Activation = activation
	return c
}

// olmo2 has norms of outputs, and of all heads in one.
func olmo2() model.Config {
	c := qwen3()
	c.NormPlacement, c.QKNormWhole = model.PostNorm, true
	return c
}

// postNorms has norms of outputs alone, with biases, before dropout.
func postNorms() model.Config {
	c := mixed()
	c.NormPlacement, c.InitMethodStd = model.PostNorm, 0.5 // the norms of small outputs would be far from linear
	return c
}

// gemma2 has what layers of Gemma 2 with windows have, with limits that scores and logits reach.
func gemma2() model.Config {
	c := gemma3()
	c.QKNorm, c.LocalBase, c.AttnSoftcap, c.FinalSoftcap = false, 0, 0.5, 1.5
	return c
}

// gemma3 has what layers of Gemma 3 with windows have.
func gemma3() model.Config {
	c := qwen3()
	c.Activation, c.NormPlacement, c.ZeroCentered = model.GeGLU, model.BothNorm, true
	c.EmbeddingMultiplier, c.QueryScalar, c.LocalBase = 2, 9, 100
	c.Window = [2]int{2, 0}
	return c
}

func architectures() map[string]model.Config {
	return map[string]model.Config{
		"gemma2": gemma2(), "gemma3": gemma3(), "exact gelu": exact(tiny(true), model.GeGLUErf), "gpt2 with exact gelu": exact(gpt2(), model.GELUErf),
		"olmo2": olmo2(), "norms of outputs": postNorms(),
		"llama": tiny(false), "llama untied": tiny(true), "gpt2": gpt2(), "mixtral": mixtral(),
		"layernorm with rope, swiglu, biases and dropout": mixed(), "rmsnorm with rope and gelu": plain(),
		"qwen2": qwen2(), "qwen3": qwen3(), "mistral": mistral(), "llama3": llama3(), "norms of heads with learned positions": headNorms(), "layernorm of heads": headLayerNorms(),
	}
}

func newManager(t *testing.T, prefer opregistry.Kind, rules ...oppolicy.Rule) *opmanager.Manager {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(flagos.Source()))
	policy := oppolicy.Default()
	policy.Prefer = prefer
	policy.Strict = true
	policy.Rules = rules
	m := opmanager.New(reg, policy, opmanager.Settings{})
	t.Cleanup(m.Close)
	return m
}

type trainable struct {
	*model.Model
	*model.Pass
}

func newModel(t *testing.T, cfg model.Config, prefer opregistry.Kind, batch int) trainable {
	t.Helper()
	return newModelOn(t, cfg, newManager(t, prefer), batch)
}

func newModelOn(t *testing.T, cfg model.Config, mgr *opmanager.Manager, batch int) trainable {
	t.Helper()
	backend := cpu.New()
	m, err := model.New(cfg, backend)
	require.NoError(t, err)
	require.NoError(t, m.Init(7))
	p, err := m.NewPass(mgr, batch, cfg.SeqLength, true)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, p.Close())
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close())
	})
	rows := make([]int32, batch*(cfg.SeqLength+1))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		rows[i] = rng.Int32N(256)
	}
	require.NoError(t, p.SetBatch(rowsOf(cfg, rows)))
	return trainable{m, p}
}

// rowsOf returns a batch of rows without masks.
func rowsOf(cfg model.Config, rows []int32) model.Batch {
	return model.Batch{Seq: cfg.SeqLength, Tokens: rows}
}

func (m trainable) loss(t *testing.T) float64 {
	t.Helper()
	loss, err := m.Loss()
	require.NoError(t, err)
	return loss
}

// TestRules holds each call to the rules for its layer and phase.
func TestRules(t *testing.T) {
	mgr := newManager(t, opregistry.KindFlagos,
		oppolicy.Rule{Layers: []oppolicy.LayerRange{{First: 1, Last: 1}}, Prefer: opregistry.KindReference},
		oppolicy.Rule{Phase: oppolicy.PhaseBackward, PerOp: []oppolicy.OpRule{{Pattern: "generic_gemm", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}},
	)
	m := newModelOn(t, tiny(false), mgr, 1)
	m.loss(t)
	require.NoError(t, m.Backward(1, false))
	calls := map[string]uint64{}
	for _, s := range mgr.Stats() {
		if s.Calls > 0 {
			calls[s.Op+" "+s.ID] = s.Calls
		}
	}
	for call, want := range map[string]uint64{
		"swiglu default.flagos": 1, "swiglu reference.go": 1, "dswiglu reference.go": 1, "dswiglu default.flagos": 1,
		"rmsnorm_fwd default.flagos": 3, "rmsnorm_fwd reference.go": 2, "rmsnorm_bwd default.flagos": 3, "rmsnorm_bwd reference.go": 2,
		"fused_attn_fwd reference.go": 1, "fused_attn_bwd reference.go": 1, "cross_entropy_bwd default.flagos": 1,
		"generic_gemm default.flagos": 5, "generic_gemm reference.go": 4 + 2*9,
	} {
		assert.Equal(t, want, calls[call], call)
	}
}

// whole returns the loss that Backward takes the gradient of.
func (m trainable) whole(t *testing.T) float64 {
	t.Helper()
	return m.loss(t) + m.AuxLoss()
}

// TestGradients compares the backward pass with central differences, weight by
// weight, for a choice of elements of each.
func TestGradients(t *testing.T) {
	for _, kind := range []opregistry.Kind{opregistry.KindReference, opregistry.KindFlagos} {
		for name, cfg := range architectures() {
			t.Run(fmt.Sprintf("%v %s", kind, name), func(t *testing.T) {
				const batch = 2
				mgr := newManager(t, kind, oppolicy.Rule{PerOp: []oppolicy.OpRule{{Pattern: "fused_attn_*", Order: []oppolicy.Token{{Kind: opregistry.KindReference}}}}})
				if cfg.AttentionDropout == 0 {
					mgr = newManager(t, kind)
				}
				m := newModelOn(t, cfg, mgr, batch)
				m.Drop(5, 6)
				m.checkGradients(t, batch*cfg.SeqLength)
			})
		}
	}
}

// checkGradients compares the gradients of a batch of some tokens with central differences.
func (m trainable) checkGradients(t *testing.T, tokens int) {
	t.Helper()
	m.whole(t)
	require.NoError(t, m.Backward(1/float32(tokens), false))
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range m.Trained() {
		value, grad := tensor.Data[float32](p.Value), tensor.Data[float32](p.Grad)
		largest := 0.0
		for _, g := range grad {
			largest = max(largest, math.Abs(float64(g)))
		}
		require.Positive(t, largest, p.Name)
		for range 6 {
			i := rng.IntN(len(value))
			old := value[i]
			const step = 1e-2
			value[i] = old + step
			up := m.whole(t)
			value[i] = old - step
			down := m.whole(t)
			value[i] = old
			assert.InDelta(t, (up-down)/(2*step), float64(grad[i]), 0.02*largest+2e-5, "%s[%d]", p.Name, i)
		}
	}
}

func TestAccumulatedGradientIsTheSum(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cfg, opregistry.KindReference, 1)
			m.Drop(1, 2)
			m.loss(t)
			require.NoError(t, m.Backward(1, false))
			once := map[string][]float64{}
			for _, p := range m.Params() {
				once[p.Name] = p.Grad.Float64s()
			}
			require.ErrorContains(t, m.Backward(1, true), "run Loss first")
			m.loss(t)
			require.NoError(t, m.Backward(1, true))
			for _, p := range m.Params() {
				for i, g := range p.Grad.Float64s() {
					require.InDelta(t, 2*once[p.Name][i], g, 1e-4*(1+math.Abs(g)), "%s[%d]", p.Name, i)
				}
			}
		})
	}
}

func TestImplsAgree(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			want := newModel(t, cfg, opregistry.KindReference, 2)
			got := newModel(t, cfg, opregistry.KindFlagos, 2)
			assert.InEpsilon(t, want.loss(t), got.loss(t), 1e-5)
			assert.InDelta(t, want.AuxLoss(), got.AuxLoss(), 1e-6)
		})
	}
}

// A forward-only pass shares memory among layers, and it drops nothing.
func TestForwardOnlyPassAgrees(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			cfg.NumLayers = 5
			m := newModel(t, cfg, opregistry.KindFlagos, 1)
			forward, err := m.NewPass(newManager(t, opregistry.KindFlagos), 1, cfg.SeqLength, false)
			require.NoError(t, err)
			defer func() { assert.NoError(t, forward.Close()) }()
			rows := []int32{1, 2, 3, 4, 5, 6, 7}
			only := rowsOf(cfg, rows)
			require.NoError(t, forward.SetBatch(only))
			require.NoError(t, m.SetBatch(only))
			loss, err := forward.Loss()
			require.NoError(t, err)
			assert.Equal(t, m.loss(t), loss)
		})
	}
}

// What is dropped is a function of seed and batch.
func TestDropout(t *testing.T) {
	m := newModel(t, mixed(), opregistry.KindReference, 2)
	all := m.loss(t)
	m.Drop(1, 1)
	first := m.loss(t)
	assert.NotEqual(t, all, first)
	assert.Equal(t, first, m.loss(t))
	m.Drop(1, 2)
	second := m.loss(t)
	m.Drop(2, 1)
	assert.NotEqual(t, first, second)
	assert.NotEqual(t, second, m.loss(t))
	m.Drop(1, 1)
	assert.Equal(t, first, m.loss(t))
	m.KeepAll()
	assert.Equal(t, all, m.loss(t))
}

func TestStepAllocatesNothing(t *testing.T) {
	if callsAllocate {
		t.Skip("calls allocate in this build")
	}
	for name, most := range map[string]float64{"llama": 2, "gpt2": 2, "mixtral": 100} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, architectures()[name], opregistry.KindFlagos, 2)
			step := func() {
				if _, err := m.Loss(); err != nil {
					t.Error(err)
				}
				if err := m.Backward(1, false); err != nil {
					t.Error(err)
				}
			}
			for range 100 { // what is allocated once per op or handle
				step()
			}
			assert.LessOrEqual(t, testing.AllocsPerRun(10, step), most, "the two runs, and views of the rows of experts")
		})
	}
}

func TestCheckFiniteNamesTheOp(t *testing.T) {
	m := newModel(t, tiny(true), opregistry.KindFlagos, 1)
	for _, p := range m.Params() {
		if p.Name == "model.layers.1.mlp.down_proj.weight" {
			tensor.Data[float32](p.Value)[0] = float32(math.Inf(1))
		}
	}
	m.CheckFinite(true)
	_, err := m.Loss()
	var at *model.NonFiniteError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, "layer 1 mlp", at.Place)
	assert.Equal(t, "generic_gemm", at.Op)
}

func TestConfigErrors(t *testing.T) {
	cfg := tiny(true)
	cfg.HiddenSize, cfg.VocabSize, cfg.NumQueryGroups, cfg.NormEpsilon = 18, 0, 3, 0
	err := cfg.Validate()
	for _, want := range []string{
		"hidden_size: given 18, want a multiple of num_attention_heads 4",
		"vocab_size: given 0, want a number >= 1",
		"num_query_groups: given 3, want a divisor of num_attention_heads 4",
		"norm_epsilon: given 0",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestConfigErrorsOfParts(t *testing.T) {
	cfg := tiny(true)
	cfg.Normalization, cfg.PositionEmbedding, cfg.Activation = "rmsnorm", "alibi", "relu"
	cfg.MaxPositionEmbeddings, cfg.HiddenDropout, cfg.AttentionDropout = 3, 1, -1
	cfg.Experts = model.Experts{NumExperts: 4, RouterTopk: 5, AuxLossCoeff: -1, MoEFFNHiddenSize: -1}
	cfg.AddBiasLinear = true
	err := cfg.Validate()
	for _, want := range []string{
		`normalization: given "rmsnorm", want RMSNorm or LayerNorm`,
		`position_embedding_type: given "alibi", want rope or yarn or dynamic or longrope or learned_absolute`,
		`activation_func: given "relu", want swiglu or geglu or geglu_erf or gelu or gelu_erf`,
		"max_position_embeddings: given 3, want at least seq_length 6",
		"hidden_dropout: given 1, want a number in [0, 1)",
		"attention_dropout: given -1, want a number in [0, 1)",
		"moe_router_topk: given 5, want a number from 2 to num_experts 4, or 1 with moe_router_pre_softmax",
		"moe_aux_loss_coeff: given -1",
		"moe_ffn_hidden_size: given -1",
		"activation_func: given relu, want swiglu with num_experts",
		"add_bias_linear: given true, want false with num_experts",
	} {
		assert.ErrorContains(t, err, want)
	}
	cfg = tiny(true)
	cfg.NumExperts = 1
	assert.ErrorContains(t, cfg.Validate(), "num_experts: given 1, want 0 for an MLP, or a number >= 2")
}

func TestNumParameters(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cfg, opregistry.KindFlagos, 1)
			n, named := 0, 0
			for _, p := range m.Params() {
				n += p.Value.NumElements()
			}
			for _, x := range m.Tensors() {
				named += x.Tensor.NumElements()
			}
			assert.Equal(t, m.Model.Config().NumParameters(), n)
			assert.Equal(t, n, named)
		})
	}
}

// Checkpoints have the names and shapes of the family of the model.
func TestFamilies(t *testing.T) {
	tests := []struct {
		cfg       model.Config
		modelType string
		names     []string
		shape     []int // of the last of them
	}{
		{tiny(true), "llama", []string{"model.layers.1.self_attn.k_proj.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"}, []int{256, 16}},
		{gpt2(), "gpt2", []string{"transformer.wpe.weight", "transformer.h.1.ln_2.bias", "transformer.ln_f.bias", "transformer.h.0.attn.c_attn.bias", "transformer.h.0.mlp.c_fc.weight"}, []int{16, 24}},
		{mixtral(), "mixtral", []string{"model.layers.0.block_sparse_moe.gate.weight", "model.layers.1.block_sparse_moe.experts.3.w3.weight", "model.layers.0.block_sparse_moe.experts.0.w2.weight"}, []int{16, 8}},
		{mixed(), "primus", []string{"model.layers.0.self_attn.q_proj.bias", "model.layers.0.mlp.gate_proj.bias", "model.norm.bias"}, []int{16}},
	}
	for _, tt := range tests {
		t.Run(tt.modelType, func(t *testing.T) {
			m := newModel(t, tt.cfg, opregistry.KindFlagos, 1)
			config := m.Config().HFConfig()
			assert.Equal(t, tt.modelType, config["model_type"])
			// Hugging Face's defaults are 1 and 2 for Llama and Mixtral, 50256 for GPT-2.
			for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
				assert.Contains(t, config, key)
				assert.Nil(t, config[key], key)
			}
			shapes := map[string]tensor.Shape{}
			for _, n := range m.Tensors() {
				shapes[n.Name] = n.Tensor.Shape()
			}
			for _, name := range tt.names {
				assert.Contains(t, shapes, name)
			}
			assert.EqualValues(t, tt.shape, shapes[tt.names[len(tt.names)-1]])
		})
	}
}

// What no token reaches is counted, once for the embedding and once for an output layer of its own.
func TestUnusedParameters(t *testing.T) {
	cfg := tiny(true)
	for _, untie := range []bool{true, false} {
		cfg.Untie, cfg.VocabSize = untie, 256
		used := cfg.NumParameters()
		assert.Zero(t, cfg.UnusedParameters(256))
		cfg.VocabSize = 1000
		assert.Equal(t, cfg.NumParameters()-used, cfg.UnusedParameters(256))
	}
}

// The depth of a weight is that of its layer, and only matrices decay.
func TestDepthAndDecay(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			for _, p := range newModel(t, cfg, opregistry.KindFlagos, 1).Params() {
				want := cfg.NumLayers + 1
				switch {
				case strings.Contains(p.Name, ".0."):
					want = 1
				case strings.Contains(p.Name, ".1."):
					want = 2
				case strings.Contains(p.Name, "embed") || strings.Contains(p.Name, ".wte") || strings.Contains(p.Name, ".wpe"):
					want = 0
				}
				assert.Equal(t, want, p.Depth, p.Name)
				assert.Equal(t, len(p.Value.Shape()) > 1, p.Decay, p.Name)
			}
		})
	}
}
