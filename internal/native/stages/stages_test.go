package stages_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const seq, seed = 6, 3

// decoder returns an architecture of so many layers.
func decoder(layers int) model.Config {
	return model.Config{
		NumLayers: layers, HiddenSize: 16, FFNHiddenSize: 24, NumAttentionHeads: 4, NumQueryGroups: 2,
		SeqLength: seq, VocabSize: 64, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.2, Untie: true,
	}
}

// architectures differ in what stages have to take care of.
func architectures(layers int) map[string]model.Config {
	tied, windows, dropout, mixture := decoder(layers), decoder(layers), decoder(layers), decoder(layers)
	tied.Untie = false
	tied.Normalization, tied.PositionEmbedding, tied.Activation, tied.AddBiasLinear = model.LayerNorm, model.LearnedAbsolute, model.GELU, true
	tied.NumQueryGroups, tied.RotaryBase, tied.MaxPositionEmbeddings = 0, 0, seq
	windows.Window, windows.QKNorm = [2]int{2, 0}, true
	windows.WindowLayers = make([]int, layers)
	for i := range windows.WindowLayers {
		windows.WindowLayers[i] = i % 2
	}
	dropout.HiddenDropout, dropout.AttentionDropout = 0.2, 0.2
	mixture.Experts = model.Experts{NumExperts: 4, MoEFFNHiddenSize: 8, AuxLossCoeff: 0.1}
	return map[string]model.Config{"untied": decoder(layers), "tied": tied, "windows": windows, "dropout": dropout, "mixture": mixture}
}

// newManager returns a manager of the fast impls.
func newManager(t *testing.T) *opmanager.Manager {
	t.Helper()
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(flagos.Source()))
	m := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(nil, 0)})
	t.Cleanup(m.Close)
	return m
}

// batches returns random micro batches.
func batches(rng *rand.Rand, n int) []model.Batch {
	all := make([]model.Batch, n)
	for i := range all {
		all[i] = model.NewBatch(1, seq)
		for k := range all[i].Tokens {
			all[i].Tokens[k] = rng.Int32N(64)
		}
	}
	return all
}

// result is what a step has computed.
type result struct {
	losses []float64
	aux    float64
	grads  map[string][]float32
}

// whole computes a step on one rank.
func whole(t *testing.T, m *opmanager.Manager, c model.Config, of []model.Batch) result {
	t.Helper()
	one, err := model.New(c, cpu.New())
	require.NoError(t, err)
	defer one.Close()
	require.NoError(t, one.Init(seed))
	p, err := one.NewPass(m, 1, seq, true)
	require.NoError(t, err)
	defer p.Close()
	r := result{grads: map[string][]float32{}}
	for i, b := range of {
		require.NoError(t, p.SetBatch(b))
		p.Drop(seed, uint64(i))
		loss, err := p.Loss()
		require.NoError(t, err)
		r.losses, r.aux = append(r.losses, loss), r.aux+p.AuxLoss()
		require.NoError(t, p.Backward(1, i > 0))
	}
	for _, p := range one.Params() {
		r.grads[p.Name] = slices.Clone(tensor.Data[float32](p.Grad))
	}
	return r
}

// wire carries messages between stages of one process. A send waits until it is received, as
// messages of a library may.
type wire struct {
	stage  int
	to     [][]chan []float32 // by sender and receiver
	failed chan struct{}
	queue  chan func()
}

var errFailed = errors.New("another stage has failed")

func (w *wire) ask(call func() error) func() error {
	done, result := make(chan struct{}), error(nil)
	w.queue <- func() {
		result = call()
		close(done)
	}
	return func() error {
		<-done
		return result
	}
}

func (w *wire) Send(_ string, to int, t *tensor.Tensor) func() error {
	return w.ask(func() error {
		select {
		case w.to[w.stage][to] <- slices.Clone(tensor.Data[float32](t)):
			return nil
		case <-w.failed:
			return errFailed
		}
	})
}

func (w *wire) Receive(_ string, from int, t *tensor.Tensor) func() error {
	return w.ask(func() error {
		select {
		case got := <-w.to[from][w.stage]:
			copy(tensor.Data[float32](t), got)
			return nil
		case <-w.failed:
			return errFailed
		}
	})
}

// worker is the Work of a stage.
type worker struct {
	m      *model.Model
	passes [][]*model.Pass
	of     []model.Batch
	losses []float64
	aux    float64
}

func (w *worker) pass(s stages.Slot) *model.Pass { return w.passes[s.Chunk][s.Index] }

func (w *worker) Forward(s stages.Slot, micro int) error {
	p := w.pass(s)
	if err := p.SetBatch(w.of[micro]); err != nil {
		return err
	}
	p.Drop(seed, uint64(micro))
	loss, err := p.Loss()
	w.losses[micro] += loss
	w.aux += p.AuxLoss()
	return err
}

func (w *worker) Backward(s stages.Slot, _ int, weights bool) error {
	if weights {
		return w.pass(s).Backward(1, true)
	}
	return w.pass(s).BackwardInput(1)
}

func (w *worker) Weights(s stages.Slot, _ int) error { return w.pass(s).BackwardWeights() }

func (w *worker) Stream(s stages.Slot) (in, out, gradient *tensor.Tensor) {
	p := w.pass(s)
	return p.Input(), p.Output(), p.Gradient()
}

// staged computes a step in the stages of a plan, each in a goroutine.
func staged(t *testing.T, m *opmanager.Manager, c model.Config, plan *stages.Plan, of []model.Batch) result {
	t.Helper()
	to := make([][]chan []float32, plan.Stages)
	for i := range to {
		for range plan.Stages {
			to[i] = append(to[i], make(chan []float32))
		}
	}
	failed, fail := make(chan struct{}), sync.Once{}
	workers, faults := make([]*worker, plan.Stages), make([]error, plan.Stages)
	schedules := make([]*stages.Schedule, plan.Stages)
	for stage := range schedules {
		var err error
		schedules[stage], err = plan.Schedule(stage, len(of))
		require.NoError(t, err)
	}
	var running sync.WaitGroup
	for stage, s := range schedules {
		running.Go(func() {
			link := &wire{stage, to, failed, make(chan func(), 1024)}
			go func() {
				for call := range link.queue {
					call()
				}
			}()
			defer close(link.queue)
			workers[stage], faults[stage] = work(m, c, plan, s, stage, of, link)
			if faults[stage] != nil {
				fail.Do(func() { close(failed) })
			}
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(faults...))
	r := result{losses: make([]float64, len(of)), grads: map[string][]float32{}}
	for _, w := range workers {
		r.aux += w.aux
		for i, loss := range w.losses {
			r.losses[i] += loss
		}
		for _, p := range w.m.Params() {
			sum, grad := r.grads[p.Name], tensor.Data[float32](p.Grad)
			if assert.Equal(t, sum != nil && !p.Twin, false, "%s is on two ranks", p.Name); sum == nil {
				r.grads[p.Name] = slices.Clone(grad)
				continue
			}
			for i, g := range grad {
				sum[i] += g
			}
		}
		for _, list := range w.passes {
			for _, p := range list {
				require.NoError(t, p.Close())
			}
		}
		require.NoError(t, w.m.Close())
	}
	return r
}

// work does the part of one stage.
func work(m *opmanager.Manager, c model.Config, plan *stages.Plan, s *stages.Schedule, stage int, of []model.Batch, link stages.Link) (*worker, error) {
	w := &worker{of: of, losses: make([]float64, len(of))}
	var err error
	if w.m, err = model.NewPart(c, cpu.New(), model.Part{Stretches: plan.Of(stage)}); err != nil {
		return nil, err
	}
	if err := w.m.Init(seed); err != nil {
		return nil, err
	}
	for chunk, n := range s.Slots {
		w.passes = append(w.passes, nil)
		for range n {
			p, err := w.m.NewStagePass(m, chunk, 1, seq, plan.Apart)
			if err != nil {
				return nil, err
			}
			w.passes[chunk] = append(w.passes[chunk], p)
		}
	}
	for _, f := range w.m.Flats() {
		clear(tensor.Data[float32](f.Grads))
	}
	_, err = s.Run(link, w)
	return w, err
}

// equal compares two steps.
func equal(t *testing.T, want, got result) {
	t.Helper()
	for i := range want.losses {
		assert.InDelta(t, want.losses[i], got.losses[i], 1e-6)
	}
	assert.InDelta(t, want.aux, got.aux, 1e-6)
	require.Len(t, got.grads, len(want.grads))
	for name, grads := range want.grads {
		require.Len(t, got.grads[name], len(grads), name)
		largest, differ := 0.0, 0.0
		for i, g := range grads {
			largest, differ = max(largest, math.Abs(float64(g))), max(differ, math.Abs(float64(g-got.grads[name][i])))
		}
		assert.LessOrEqual(t, differ, 1e-5*max(largest, 1e-3), name)
	}
}

// Each schedule computes the losses and the gradients of one rank, whatever the model has.
func TestSchedulesComputeTheSame(t *testing.T) {
	m := newManager(t)
	const layers, micro = 8, 8
	rng := rand.New(rand.NewPCG(1, 2))
	of := batches(rng, micro)
	type layout struct {
		model, algorithm string
		stages           int
	}
	var all []layout
	for _, name := range slices.Sorted(maps.Keys(architectures(layers))) {
		for _, algorithm := range pipeline.Names() {
			all = append(all, layout{name, algorithm, 2}, layout{name, algorithm, 4})
		}
	}
	rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	want := map[string]result{}
	for _, l := range all[:primustest.Cases(30, len(all))] {
		c := architectures(layers)[l.model]
		if _, known := want[l.model]; !known {
			want[l.model] = whole(t, m, c, of)
		}
		t.Run(fmt.Sprintf("%s/%s/%d", l.model, l.algorithm, l.stages), func(t *testing.T) {
			plan, err := stages.Pipeline{Algorithm: l.algorithm}.Plan(l.stages, layers, stages.Costs{Layer: 1, Head: 0.5})
			require.NoError(t, err)
			equal(t, want[l.model], staged(t, m, c, plan, of))
		})
	}
}

// So do any numbers of stages, chunks and micro batches, and any layout.
func TestLayoutsComputeTheSame(t *testing.T) {
	m := newManager(t)
	rng := rand.New(rand.NewPCG(5, 6))
	names := pipeline.Names()
	for range primustest.Cases(25, 400) {
		n, micro, layers := 1+rng.IntN(5), 1+rng.IntN(9), 1+rng.IntN(9)
		costs := stages.Costs{Layer: 1, Head: 3 * rng.Float64()}
		config := stages.Pipeline{Algorithm: names[rng.IntN(len(names))], Layout: stages.LayoutAuto}
		if config.Algorithm == "interleaved" {
			config.VirtualStages = 2 + rng.IntN(2)
		}
		plan, err := config.Plan(n, layers, costs)
		if err != nil {
			assert.ErrorContains(t, err, "num_layers: given ")
			continue
		}
		name := fmt.Sprintf("%s on %d stages, %d micro batches, %s", config.Algorithm, n, micro, stages.Text(plan.Parts))
		if _, err := plan.Table(micro); err != nil {
			assert.ErrorContains(t, err, "global_batch_size: given ", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := decoder(layers)
			of := batches(rng, micro)
			equal(t, whole(t, m, c, of), staged(t, m, c, plan, of))
		})
	}
}
