package inference_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func llama() model.Config {
	return model.Config{
		NumLayers: 2, HiddenSize: 32, FFNHiddenSize: 48, NumAttentionHeads: 4, NumQueryGroups: 2,
		SeqLength: 64, VocabSize: 256, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.2, Untie: true,
	}
}

func architectures() map[string]model.Config {
	gpt2, mixtral := llama(), llama()
	gpt2.NumQueryGroups, gpt2.RotaryBase, gpt2.Untie = 0, 0, false
	gpt2.Normalization, gpt2.PositionEmbedding, gpt2.Activation, gpt2.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, model.GELU, true
	mixtral.Experts = model.Experts{NumExperts: 4, MoEFFNHiddenSize: 16}
	qwen3, mistral, llama3 := llama(), llama(), llama()
	qwen3.QKNorm, qwen3.KVChannels = true, 6
	mistral.Window, mistral.WindowLayers = [2]int{20, 0}, slices.Repeat([]int{1}, mistral.NumLayers)
	mistral.WindowLayers[0] = 0
	qwen3.PositionEmbedding = model.YaRN
	qwen3.Yarn = model.Yarn{Factor: 4, Context: 60, BetaFast: 4}
	llama3.RopeScaling = model.RopeScaling{UseScaling: true, ScalingFactor: 4, OldContext: 60}
	qwen3MoE := mixtral
	qwen3MoE.QKNorm, qwen3MoE.KVChannels, qwen3MoE.PreSoftmax = true, 6, true
	bias, long := llama(), llama()
	bias.AttentionBias = true
	long.PositionEmbedding, long.OldContext = model.LongRope, 60
	long.LongRopeFactors = model.LongRopeFactors{ShortFactors: []float64{1, 1, 1.5, 2}, LongFactors: []float64{1, 2, 3.25, 6}}
	olmo2 := llama()
	olmo2.NormPlacement, olmo2.QKNorm, olmo2.QKNormWhole = model.PostNorm, true, true
	gemma3 := qwen3
	gemma3.PositionEmbedding, gemma3.Yarn, gemma3.Interpolation = model.Rope, model.Yarn{}, 2
	gemma3.Activation, gemma3.NormPlacement, gemma3.ZeroCentered, gemma3.QueryScalar, gemma3.LocalBase = model.GeGLU, model.BothNorm, true, 9, 100
	gemma3.EmbeddingMultiplier, gemma3.Window, gemma3.WindowLayers = math.Sqrt(32), [2]int{20, 0}, mistral.WindowLayers
	gemma2 := gemma3
	gemma2.QKNorm, gemma2.LocalBase, gemma2.AttnSoftcap, gemma2.FinalSoftcap = false, 0, 2, 3
	exact, exactGPT2 := llama(), gpt2
	exact.Activation, exactGPT2.Activation = model.GeGLUErf, model.GELUErf
	return map[string]model.Config{"gemma2": gemma2, "exact gelu": exact, "gpt2 with exact gelu": exactGPT2, "gemma3": gemma3, "olmo2": olmo2, "attention bias": bias, "longrope": long, "qwen3 moe": qwen3MoE, "llama": llama(), "gpt2": gpt2, "mixtral": mixtral, "qwen3 with yarn": qwen3, "windows of some layers": mistral, "llama3": llama3}
}

// newManager returns a manager that uses the fast impls only.
func newManager(t *testing.T) *opmanager.Manager {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(flagos.Source()))
	policy := oppolicy.Default()
	policy.Strict = true
	m := opmanager.New(reg, policy, opmanager.Settings{})
	t.Cleanup(m.Close)
	return m
}

func newEngine(t *testing.T, m *model.Model, s inference.Settings) *inference.Engine {
	t.Helper()
	e, err := inference.New(m, tokenizer.Byte{}, newManager(t), s)
	require.NoError(t, err)
	return e
}

// startEngine returns an engine for a small model with random weights, which is closed at the end.
func startEngine(t *testing.T, s inference.Settings) *inference.Engine {
	t.Helper()
	backend := cpu.New()
	m, err := model.NewFrozen(llama(), backend)
	require.NoError(t, err)
	require.NoError(t, m.Init(11))
	e := newEngine(t, m, s)
	t.Cleanup(func() {
		assert.NoError(t, e.Close())
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close())
	})
	return e
}

func generate(t *testing.T, e *inference.Engine, r inference.Request) inference.Result {
	t.Helper()
	var text strings.Builder
	var ids []int32
	got, err := e.Generate(t.Context(), r, func(event inference.Event) error {
		text.WriteString(event.Text)
		if event.ID >= 0 {
			ids = append(ids, event.ID)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, got.Text, text.String())
	assert.Equal(t, got.IDs, ids)
	return got
}

func TestSamplingDependsOnTheSeedOnly(t *testing.T) {
	e := startEngine(t, inference.Settings{Slots: 2})
	r := inference.Request{Prompt: []int32{65, 66}, MaxTokens: 30, Sampling: inference.Sampling{Temperature: 1, Seed: 3}}
	first := generate(t, e, r)
	assert.Equal(t, first, generate(t, e, r))
	r.Seed = 4
	assert.NotEqual(t, first.IDs, generate(t, e, r).IDs)
	r.TopK = 1
	greedy := generate(t, e, inference.Request{Prompt: r.Prompt, MaxTokens: 30})
	assert.Equal(t, greedy, generate(t, e, r), "the likeliest token alone")
	r.TopK, r.TopP = 0, 1e-9
	assert.Equal(t, greedy, generate(t, e, r), "the likeliest token has that probability")
}

func TestTextsEnd(t *testing.T) {
	e := startEngine(t, inference.Settings{})
	r := inference.Request{Prompt: []int32{65, 66}}
	whole := generate(t, e, r)
	assert.Equal(t, inference.FinishLength, whole.Finish)
	assert.Len(t, whole.IDs, 62, "as many as fit")
	r.MaxTokens = 5
	assert.Equal(t, whole.IDs[:5], generate(t, e, r).IDs)

	ended := startEngine(t, inference.Settings{EOS: []int32{whole.IDs[7]}})
	got := generate(t, ended, inference.Request{Prompt: r.Prompt})
	assert.Equal(t, inference.FinishStop, got.Finish)
	assert.Equal(t, whole.IDs[:7], got.IDs, "the token that ends the text is not in it")

	sliding := generate(t, e, inference.Request{Prompt: r.Prompt, MaxTokens: 150, Slide: true})
	assert.Len(t, sliding.IDs, 150)
	assert.Equal(t, whole.IDs, sliding.IDs[:62])
}

func TestLogprobs(t *testing.T) {
	e := startEngine(t, inference.Settings{})
	_, err := e.Generate(t.Context(), inference.Request{Prompt: []int32{1}, MaxTokens: 4, Logprobs: true, TopLogprobs: 3}, func(event inference.Event) error {
		if event.ID < 0 {
			return nil
		}
		require.Len(t, event.Top, 3)
		assert.Equal(t, event.Logprob, event.Top[0], "greedy")
		assert.Equal(t, event.ID, event.Logprob.ID)
		assert.Less(t, event.Logprob.Logprob, 0.)
		assert.GreaterOrEqual(t, event.Top[0].Logprob, event.Top[1].Logprob)
		assert.GreaterOrEqual(t, event.Top[1].Logprob, event.Top[2].Logprob)
		return nil
	})
	require.NoError(t, err)
}

func TestRequestErrors(t *testing.T) {
	e := startEngine(t, inference.Settings{})
	for name, tt := range map[string]struct {
		give inference.Request
		want string
	}{
		"no prompt":   {inference.Request{}, "prompt"},
		"long prompt": {inference.Request{Prompt: make([]int32, 64)}, "fewer than the 64"},
		"no token":    {inference.Request{Prompt: []int32{256}}, "given token 256"},
		"max_tokens":  {inference.Request{Prompt: []int32{1}, MaxTokens: -1}, "max_tokens"},
		"stop":        {inference.Request{Prompt: []int32{1}, Stop: []string{""}}, "stop"},
		"temperature": {inference.Request{Prompt: []int32{1}, Sampling: inference.Sampling{Temperature: -1}}, "temperature"},
		"top_p":       {inference.Request{Prompt: []int32{1}, Sampling: inference.Sampling{TopP: 1.5}}, "top_p"},
		"top_k":       {inference.Request{Prompt: []int32{1}, Sampling: inference.Sampling{TopK: -1}}, "top_k"},
		"no end":      {inference.Request{Prompt: []int32{1}, Slide: true}, "max_tokens"},
	} {
		_, err := e.Generate(t.Context(), tt.give, nil)
		var wrong *inference.RequestError
		require.ErrorAs(t, err, &wrong, name)
		assert.ErrorContains(t, err, tt.want, name)
	}
}

// A request that nobody waits for frees its slot, and the next one gets it.
func TestRequestsThatEndFreeTheirSlot(t *testing.T) {
	e := startEngine(t, inference.Settings{Queue: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client is gone")
	_, err := e.Generate(ctx, inference.Request{Prompt: []int32{1}, MaxTokens: 1 << 20, Slide: true}, func(inference.Event) error {
		cancel(why)
		return nil
	})
	require.ErrorIs(t, err, why)
	failed := errors.New("cannot write")
	_, err = e.Generate(t.Context(), inference.Request{Prompt: []int32{1}, MaxTokens: 1 << 20, Slide: true}, func(inference.Event) error { return failed })
	require.ErrorIs(t, err, failed)
	assert.Len(t, generate(t, e, inference.Request{Prompt: []int32{1}, MaxTokens: 3}).IDs, 3)
	active, waiting := e.Load()
	assert.Zero(t, waiting)
	assert.LessOrEqual(t, active, 1)
}

// With its queue full the engine refuses requests, and Close ends the others.
func TestBusyAndClosed(t *testing.T) {
	backend := cpu.New()
	m, err := model.NewFrozen(llama(), backend)
	require.NoError(t, err)
	require.NoError(t, m.Init(11))
	e := newEngine(t, m, inference.Settings{Queue: 1})
	results := make(chan error)
	started := make(chan struct{})
	endless := inference.Request{Prompt: []int32{1}, MaxTokens: 1 << 20, Slide: true}
	go func() {
		once := false
		_, err := e.Generate(t.Context(), endless, func(inference.Event) error {
			if !once {
				close(started)
			}
			once = true
			return nil
		})
		results <- err
	}()
	<-started
	go func() {
		_, err := e.Generate(t.Context(), endless, nil)
		results <- err
	}()
	for waiting := 0; waiting == 0; {
		_, waiting = e.Load()
	}
	_, err = e.Generate(t.Context(), endless, nil)
	require.ErrorIs(t, err, inference.ErrBusy)
	require.NoError(t, e.Close())
	require.ErrorIs(t, <-results, inference.ErrClosed)
	require.ErrorIs(t, <-results, inference.ErrClosed)
	_, err = e.Generate(t.Context(), endless, nil)
	require.ErrorIs(t, err, inference.ErrClosed)
	require.NoError(t, m.Close())
	require.NoError(t, backend.Close())
}
