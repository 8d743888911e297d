package inference_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// place is where a model computes.
type place struct {
	backend device.Backend
	sources []opregistry.Source
	crosses oppolicy.CrossDevice
}

// outcome is what a model generates and how likely it finds a text.
type outcome struct {
	texts  [][]inference.Event
	loss   float64
	scores []inference.Score
}

// use generates texts with a model of random weights and scores others.
func (p place) use(t *testing.T, cfg model.Config) outcome {
	t.Helper()
	reg := opregistry.NewRegistry()
	for _, s := range p.sources {
		require.NoError(t, reg.Register(s))
	}
	policy := oppolicy.Default()
	policy.CrossDevice = p.crosses
	mgr := opmanager.New(reg, policy, opmanager.Settings{})
	defer mgr.Close()
	m, err := model.NewFrozen(cfg, p.backend)
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	fillRandomly(t, m)
	return outcome{texts: generateTogether(t, m, mgr)}.scored(t, m, mgr)
}

// fillRandomly gives a model random weights, rounded to the types of its own.
func fillRandomly(t *testing.T, m *model.Model) {
	t.Helper()
	cfg, host := m.Config(), cpu.New()
	cfg.BF16 = false
	wide, err := model.NewFrozen(cfg, host)
	require.NoError(t, err)
	require.NoError(t, wide.Init(11))
	from := wide.Tensors()
	for i, to := range m.Tensors() {
		require.NoError(t, to.Tensor.CopyFrom(from[i].Tensor))
	}
	require.NoError(t, wide.Close())
	require.NoError(t, host.Close())
}

// generateTogether continues prompts of several lengths at the same time, one of which is longer
// than a step.
func generateTogether(t *testing.T, m *model.Model, mgr *opmanager.Manager) [][]inference.Event {
	t.Helper()
	e, err := inference.New(m, tokenizer.Byte{}, mgr, inference.Settings{Slots: 3, Rows: 16})
	require.NoError(t, err)
	defer func() { assert.NoError(t, e.Close()) }()
	prompts := [][]int32{{65, 66}, {67}, tokens(20)}
	texts := make([][]inference.Event, len(prompts))
	var all sync.WaitGroup
	for i, prompt := range prompts {
		all.Go(func() {
			_, err := e.Generate(t.Context(), inference.Request{Prompt: prompt, MaxTokens: 40, Logprobs: true, TopLogprobs: 2}, func(event inference.Event) error {
				if event.ID >= 0 {
					texts[i] = append(texts[i], event)
				}
				return nil
			})
			assert.NoError(t, err)
		})
	}
	all.Wait()
	return texts
}

// scored adds what a scorer finds.
func (o outcome) scored(t *testing.T, m *model.Model, mgr *opmanager.Manager) outcome {
	t.Helper()
	s, err := inference.NewScorer(m, mgr, 24)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	text := tokens(60)
	score, err := s.Text(t.Context(), len(text), func(dst []int32, from int) error {
		copy(dst, text[from:])
		return nil
	}, 16)
	require.NoError(t, err)
	o.loss = score.Loss()
	likely := o.texts[0][0].ID
	o.scores, err = s.Choices(t.Context(), []int32{65, 66}, [][]int32{{likely}, {(likely + 1) % 256, 7}})
	require.NoError(t, err)
	return o
}

func tokens(n int) []int32 {
	rng := rand.New(rand.NewPCG(9, 9))
	all := make([]int32, n)
	for i := range all {
		all[i] = rng.Int32N(256)
	}
	return all
}

// sameTexts checks that texts differ by rounding only. They are compared up to a token that is as
// likely as another one but for rounding, after which they may differ.
func sameTexts(t *testing.T, want, got outcome, tolerance float64) {
	t.Helper()
	compared := 0
	for i := range want.texts {
		require.Len(t, got.texts[i], len(want.texts[i]))
		for at, w := range want.texts[i] {
			if w.Top[0].Logprob-w.Top[1].Logprob < 2*tolerance {
				break
			}
			g := got.texts[i][at]
			require.Equal(t, w.ID, g.ID, "text %d, token %d", i, at)
			assert.InDelta(t, w.Logprob.Logprob, g.Logprob.Logprob, tolerance, "text %d, token %d", i, at)
			compared++
		}
	}
	assert.Greater(t, compared, 20)
}

// sameScores checks that the likelihood of given texts differs by rounding only.
func sameScores(t *testing.T, want, got outcome, tolerance float64) {
	t.Helper()
	assert.InDelta(t, want.loss, got.loss, tolerance)
	assert.InDelta(t, want.scores[1].Nats, got.scores[1].Nats, 2*tolerance)
	assert.False(t, got.scores[1].Greedy)
}

// A model on a device generates and finds as likely what it does in host memory: to the bit where
// the same impls serve copies of the operands, but texts are generated together as they come.
func TestModelsOnADevice(t *testing.T) {
	sources := []opregistry.Source{reference.Source(), flagos.Source()}
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			host, far := cpu.New(), fardevice.New(0)
			want := place{host, sources, oppolicy.CrossDeviceError}.use(t, cfg)
			got := place{far, sources, oppolicy.CrossDeviceCopy}.use(t, cfg)
			sameTexts(t, want, got, 1e-4)
			assert.Equal(t, want.loss, got.loss)
			assert.Equal(t, want.scores, got.scores)
			assert.Zero(t, far.Blocks(), "all memory of the device is released")
			assert.NoError(t, host.Close())
		})
	}
}

// Every op of a model has an impl for OpenCL devices, in f32 and in bf16, but soft caps have none.
func TestModelsOnOpenCL(t *testing.T) {
	dev := opencltest.Backend(t)
	all := architectures()
	delete(all, "gemma2")
	narrow := all["mixtral"]
	narrow.BF16 = true
	all["mixtral in bf16"] = narrow
	for name, cfg := range all {
		t.Run(name, func(t *testing.T) {
			host := cpu.New()
			want := place{host, []opregistry.Source{reference.Source(), flagos.Source()}, oppolicy.CrossDeviceError}.use(t, cfg)
			onDevice := place{dev, []opregistry.Source{reference.Source(), opencl.Source()}, oppolicy.CrossDeviceError}
			got := onDevice.use(t, cfg)
			if cfg.BF16 {
				sameScores(t, want, got, 0.1)
			} else {
				sameScores(t, want, got, 1e-4)
				sameTexts(t, want, got, 1e-4)
				assert.True(t, got.scores[0].Greedy)
				assert.Equal(t, got.loss, onDevice.use(t, cfg).loss, "twice with the same bits")
			}
			assert.NoError(t, host.Close())
		})
	}
}

// small is a device that describes itself, with little memory.
type small struct{ *fardevice.Backend }

func (small) Describe(int) (device.Description, error) {
	return device.Description{Name: "Small", Memory: 1 << 20}, nil
}

func TestTextsThatDoNotFitADevice(t *testing.T) {
	far := small{fardevice.New(0)}
	m, err := model.NewFrozen(llama(), far)
	require.NoError(t, err)
	_, err = inference.New(m, tokenizer.Byte{}, newManager(t), inference.Settings{Slots: 40, Capacity: 1000})
	assert.ErrorContains(t, err, "the keys and values of 40 texts of 1000 tokens take 9.89 MiB")
	assert.ErrorContains(t, err, "the device has 1")
	_, err = inference.NewScorer(m, newManager(t), 100_000)
	assert.ErrorContains(t, err, "fewer or shorter texts")
	require.NoError(t, m.Close())
	assert.Zero(t, far.Blocks())
}
