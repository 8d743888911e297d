package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is a model and a batch, and how ranks divide them.
type shared struct {
	cfg    model.Config
	ways   world.Parallel
	ranks  int
	rows   int // of each rank
	batch  model.Batch
	drops  bool
	layout string
}

// drawShared returns the i-th sample.
func drawShared(i int) shared {
	rng := rand.New(rand.NewPCG(uint64(i), 11))
	one := func(of ...int) int { return of[rng.IntN(len(of))] }
	cfg := []model.Config{tiny(true), gpt2(), qwen3(), headLayerNorms()}[rng.IntN(4)]
	cfg.Untie = true
	if i%3 == 0 {
		cfg.NormPlacement = model.PostNorm
	}
	s := shared{rows: one(1, 1, 2)}
	w := &s.ways
	w.ContextParallel, w.TensorParallel, w.PipelineParallel = one(2, 2, 4), one(1, 1, 2), one(1, 1, 2)
	w.ContextComm = []any{world.CommP2P, world.CommAllGather}[rng.IntN(2)]
	w.SequenceParallel = rng.IntN(2) == 0
	data := one(1, 1, 2)
	cfg.SeqLength = 2 * w.ContextParallel * one(1, 2, 3, 5, 8)
	if w.TensorParallel > 1 && w.SequenceParallel {
		cfg.SeqLength *= 2
	}
	cfg.NumQueryGroups = one(w.TensorParallel, 2, 4)
	documents, window := rng.IntN(2) == 0, rng.IntN(2) == 0
	if i%4 == 0 { // all that a block of keys depends on
		documents, window, w.ContextComm = true, true, world.CommP2P
		cfg.SeqLength *= 2
	}
	if window {
		cfg.Window = [2]int{1 + rng.IntN(cfg.SeqLength), 0}
		if rng.IntN(2) == 0 {
			cfg.WindowLayers = []int{0, 1}
		}
	}
	if data == 1 && rng.IntN(3) == 0 && cfg.SeqLength/(2*w.ContextParallel)*cfg.HiddenSize%8 == 0 && !w.SequenceParallel {
		cfg.HiddenDropout, s.drops = 0.2, true
	}
	cfg.MaxPositionEmbeddings = cfg.SeqLength
	s.cfg, s.ranks = cfg, data*w.ContextParallel*w.TensorParallel*w.PipelineParallel
	all := data * s.rows
	s.batch = model.NewBatch(all, cfg.SeqLength)
	for k := range s.batch.Tokens {
		s.batch.Tokens[k] = rng.Int32N(int32(cfg.VocabSize))
	}
	if rng.IntN(2) == 0 {
		for range all * cfg.SeqLength {
			s.batch.Weights = append(s.batch.Weights, float32(one(0, 1, 1, 2)))
		}
		s.batch.Weights[0] = 1
	}
	if documents {
		restarts, length := rng.IntN(2) == 0, one(3, 20)
		s.batch.Segments = make([]int32, all*cfg.SeqLength)
		if restarts {
			s.batch.Positions = make([]int32, all*cfg.SeqLength)
		}
		for k := range s.batch.Segments {
			if k%cfg.SeqLength == 0 {
				continue
			}
			more := int32(0)
			if rng.IntN(length) == 0 {
				more = 1
			}
			s.batch.Segments[k] = s.batch.Segments[k-1] + more
			if restarts && more == 0 {
				s.batch.Positions[k] = s.batch.Positions[k-1] + 1
			}
		}
	}
	s.layout = fmt.Sprintf("%d, cp %d by %v, tp %d, sp %v, pp %d, dp %d, rows %d of %d, groups %d, %s, documents %v, window %v in %v, dropout %v",
		i, w.ContextParallel, w.ContextComm, w.TensorParallel, w.SequenceParallel, w.PipelineParallel, data, s.rows, cfg.SeqLength, cfg.NumQueryGroups, cfg.PositionEmbedding, documents, cfg.Window, cfg.WindowLayers, cfg.HiddenDropout)
	return s
}

// Ranks that share the tokens of sequences compute the loss and the gradients of one rank, together
// with the other ways in which ranks divide the work.
func TestContextComputesAsOne(t *testing.T) {
	t.Parallel()
	for i := range primustest.Cases(40, 400) {
		s := drawShared(i)
		t.Run(s.layout, func(t *testing.T) {
			wantLoss, wantGrads := s.alone(t)
			var mu sync.Mutex
			job(t, s.ranks, func(w *world.World, mgr *opmanager.Manager) error {
				loss, params, end, err := s.compute(w, mgr)
				if err != nil {
					return err
				}
				defer end()
				mu.Lock()
				defer mu.Unlock()
				assert.InEpsilon(t, wantLoss, loss, 1e-5, "rank %d", w.Rank)
				for _, p := range params {
					checkGradient(t, wantGrads[p.Name], p, w.Rank)
				}
				return nil
			})
		})
	}
}

// alone returns the loss and the gradients of one process.
func (s shared) alone(t *testing.T) (float64, map[string][]float32) {
	t.Helper()
	m := newModelOn(t, s.cfg, newManager(t, 0), s.batch.Rows())
	require.NoError(t, m.SetBatch(s.batch))
	if s.drops {
		m.Drop(5, 6)
	}
	loss := m.loss(t)
	require.NoError(t, m.Backward(float32(1/s.batch.Weight()), false))
	grads := map[string][]float32{}
	for _, p := range m.Trained() {
		grads[p.Name] = tensor.Data[float32](p.Grad)
	}
	return loss, grads
}

// compute returns the loss of all ranks, and the gradients of the weights that a rank has.
func (s shared) compute(w *world.World, mgr *opmanager.Manager) (loss float64, params []*model.Param, end func(), err error) {
	groups := w.Divide(s.ways)
	part := model.PartOf(groups, s.ways)
	stages := groups.Stages
	if stages.Ranks > 1 {
		part.Stretches = []model.Stretch{{Layers: model.Range{Lo: stages.Rank, Hi: stages.Rank + 1}, First: stages.Rank == 0, Last: stages.Rank == 1}}
	}
	backend := cpu.New()
	m, err := model.NewPart(s.cfg, backend, part)
	if err != nil {
		return 0, nil, nil, err
	}
	if err := m.Init(7); err != nil {
		return 0, nil, nil, err
	}
	pass := m.NewPass
	if stages.Ranks > 1 {
		pass = func(mgr *opmanager.Manager, batch, seq int, _ bool) (*model.Pass, error) {
			return m.NewStagePass(mgr, 0, batch, seq, false)
		}
	}
	p, err := pass(mgr, s.rows, s.cfg.SeqLength, true)
	if err != nil {
		return 0, nil, nil, err
	}
	end = func() {
		p.Close()
		m.Close()
		backend.Close()
	}
	first := groups.Data.Rank * s.rows
	if err := p.SetBatch(s.batch.Slice(first, first+s.rows)); err != nil {
		return 0, nil, nil, err
	}
	if s.drops {
		p.Drop(5, 6)
	}
	if stages.Rank == 1 {
		if err := stages.Receive("activations", 0, p.Input())(); err != nil {
			return 0, nil, nil, err
		}
	}
	if loss, err = p.Loss(); err != nil {
		return 0, nil, nil, err
	}
	loss *= p.Weight() / s.batch.Weight()
	if stages.Ranks > 1 && stages.Rank == 0 {
		if err := stages.Send("activations", 1, p.Output())(); err != nil {
			return 0, nil, nil, err
		}
		if err := stages.Receive("gradients", 1, p.Gradient())(); err != nil {
			return 0, nil, nil, err
		}
	}
	if err := p.Backward(float32(1/s.batch.Weight()), false); err != nil {
		return 0, nil, nil, err
	}
	if stages.Rank == 1 {
		if err := stages.Send("gradients", 0, p.Gradient())(); err != nil {
			return 0, nil, nil, err
		}
	}
	for _, p := range m.Trained() {
		if err := groups.Replicas.Total("gradients", p.Grad); err != nil {
			return 0, nil, nil, err
		}
	}
	sum, err := tensor.FromSlice([]float32{float32(loss)}, 1)
	if err == nil {
		err = w.Total("losses", sum)
	}
	return float64(tensor.Data[float32](sum)[0]) / float64(groups.Tensor.Ranks), m.Trained(), end, err
}

// checkGradient compares the part of a gradient that a rank has.
func checkGradient(t *testing.T, want []float32, p *model.Param, rank int) {
	t.Helper()
	got, largest, worst := tensor.Data[float32](p.Grad), 0.0, 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	compare := func(at, to, n int) {
		for i := range n {
			worst = max(worst, math.Abs(float64(got[at+i]-want[to+i])))
		}
	}
	if p.Slice.Whole == nil {
		compare(0, 0, len(want))
	} else {
		p.Slice.Runs(0, len(got), compare)
	}
	assert.LessOrEqual(t, worst, 1e-5*largest, "%s of rank %d, whose largest is %g", p.Name, rank, largest)
}
