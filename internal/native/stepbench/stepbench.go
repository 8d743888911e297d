// Package stepbench measures training steps of the native backend, and what each op takes of them.
package stepbench

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// Result is what training steps of a model took.
type Result struct {
	Model           string       `json:"model"`
	Parameters      int          `json:"parameters"`
	Shape           Shape        `json:"shape"`
	Threads         int          `json:"threads"`
	TokensPerStep   int          `json:"tokens_per_step"`
	TokensPerSecond float64      `json:"tokens_per_second"` // of the median step
	Step            stats.Spread `json:"step_ms"`
	FLOPsPerToken   float64      `json:"flops_per_token"`
	PeakFLOPS       float64      `json:"peak_flops"` // of all threads, measured before each step, median; 0 where there is no kernel for it
	MFU             float64      `json:"mfu"`        // tokens_per_second · flops_per_token / peak_flops
	PeakBytes       uint64       `json:"peak_bytes"` // largest resident set of the process; 0 where the system does not tell
	Loss            float64      `json:"loss"`       // of the last step, nats per token
	Ops             []OpShare    `json:"ops"`
	OutsideOps      float64      `json:"outside_ops_ms"` // of a mean step
}

// Shape is what another program needs to train the same model.
type Shape struct {
	Layers       int  `json:"layers"`
	Hidden       int  `json:"hidden"`
	FFN          int  `json:"ffn"`
	Heads        int  `json:"heads"`
	Groups       int  `json:"groups"`
	Vocab        int  `json:"vocab"`
	Seq          int  `json:"seq"`
	Batch        int  `json:"batch"` // sequences of a micro-batch
	MicroBatches int  `json:"micro_batches"`
	Tied         bool `json:"tied"`
	GPT2         bool `json:"gpt2,omitempty"`       // LayerNorm, learned positions, GELU and biases
	Experts      int  `json:"experts,omitempty"`    // 0 for none
	TopK         int  `json:"top_k,omitempty"`      // experts of a token
	ExpertFFN    int  `json:"expert_ffn,omitempty"` // of an expert
}

// OpShare is what one impl did for an op in a mean step.
type OpShare struct {
	Op        string          `json:"op"`
	Impl      string          `json:"impl"`
	Kind      opregistry.Kind `json:"kind"`
	Calls     float64         `json:"calls"`
	MS        float64         `json:"ms"`
	Share     float64         `json:"share"` // of the step
	Fallbacks uint64          `json:"fallbacks"`
}

// Settings say what is measured and with what. The manager measures durations.
type Settings struct {
	Module        *config.Module
	Manager       *opmanager.Manager
	Device        device.Backend
	Pool          opregistry.Pool
	Log           *slog.Logger
	Warmup, Steps int // steps before the measured ones, and at least one measured step
	// Limit is the time after which only steps begin that are needed: one to warm up and one that is
	// measured. 0 is for none.
	Limit time.Duration
}

// wants reports whether another step follows when so many were measured.
func (s Settings) wants(measured int, past time.Duration) bool {
	return measured == 0 || measured < s.Steps && !s.late(past)
}

// warm reports whether i steps are enough to warm up.
func (s Settings) warm(i int, past time.Duration) bool {
	return i >= s.Warmup || i > 0 && s.late(past)
}

func (s Settings) late(past time.Duration) bool { return s.Limit > 0 && past > s.Limit }

// Measure makes steps of a module and returns what those after the warm-up took.
func Measure(ctx context.Context, s Settings) (r Result, err error) {
	bench, warnings, err := native.NewBench(s.Module, s.Manager, s.Device, s.Log)
	for _, w := range warnings {
		s.Log.Warn(w.String())
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()

	var before []opmanager.ImplStats
	var times []time.Duration
	var sum time.Duration
	var peaks []float64
	begun := time.Now()
	for i := 0; s.wants(len(times), time.Since(begun)); i++ {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		measured := len(times) > 0 || s.warm(i, time.Since(begun))
		if measured && len(times) == 0 {
			before = s.Manager.Stats()
		}
		if measured {
			peaks = append(peaks, opbench.PeakFLOPS(s.Pool))
		}
		begin := time.Now()
		if r.Loss, err = bench.Step(ctx); err != nil {
			return r, err
		}
		if measured {
			times = append(times, time.Since(begin))
			sum += times[len(times)-1]
		}
	}
	r.describe(bench.Args())
	r.PeakBytes = sysmem.Peak()
	r.Threads = s.Pool.Workers()
	r.Step = stats.SpreadOf(times)
	r.TokensPerSecond = float64(r.TokensPerStep) / (r.Step.Median / 1e3)
	r.PeakFLOPS = stats.Median(peaks)
	r.MFU = stats.Share(r.TokensPerSecond*r.FLOPsPerToken, r.PeakFLOPS)
	r.Ops = opShares(before, s.Manager.Stats(), sum, len(times))
	r.OutsideOps = 1e3 * sum.Seconds() / float64(len(times))
	for _, o := range r.Ops {
		r.OutsideOps -= o.MS
	}
	return r, nil
}

func (r *Result) describe(a native.Args) {
	r.Model, r.Parameters = a.ModelName, a.NumParameters()
	r.TokensPerStep = a.GlobalBatchSize * a.SeqLength
	r.FLOPsPerToken = a.FLOPsPerToken()
	r.Shape = Shape{
		Layers: a.NumLayers, Hidden: a.HiddenSize, FFN: a.FFNHiddenSize, Heads: a.NumAttentionHeads, Groups: a.Groups(),
		Vocab: a.VocabSize, Seq: a.SeqLength, Batch: a.MicroBatchSize, MicroBatches: a.GlobalBatchSize / a.MicroBatchSize,
		Tied: !a.Untie, GPT2: a.PositionEmbedding == model.LearnedAbsolute,
	}
	if a.NumExperts > 0 {
		r.Shape.Experts, r.Shape.TopK, r.Shape.ExpertFFN = a.NumExperts, a.Topk(), a.ExpertSize()
	}
}

// opShares returns what was done between two readings of the manager's counters, in a mean of
// steps.
func opShares(before, after []opmanager.ImplStats, took time.Duration, steps int) []OpShare {
	type key struct{ op, impl string }
	was := map[key]opmanager.ImplStats{}
	for _, s := range before {
		was[key{s.Op, s.ID}] = s
	}
	shares := []OpShare{}
	for _, s := range after {
		old := was[key{s.Op, s.ID}]
		calls, spent := s.Calls-old.Calls, s.Duration-old.Duration
		if calls == 0 {
			continue
		}
		shares = append(shares, OpShare{
			Op: s.Op, Impl: s.ID, Kind: s.Kind, Calls: float64(calls) / float64(steps),
			MS: 1e3 * spent.Seconds() / float64(steps), Share: stats.Share(spent.Seconds(), took.Seconds()), Fallbacks: s.Fallbacks - old.Fallbacks,
		})
	}
	slices.SortStableFunc(shares, func(a, b OpShare) int { return cmp.Compare(b.MS, a.MS) })
	return shares
}

// MeanStep returns the milliseconds of a mean step, which ops and the rest add up to.
func (r *Result) MeanStep() float64 {
	mean := r.OutsideOps
	for _, o := range r.Ops {
		mean += o.MS
	}
	return mean
}
