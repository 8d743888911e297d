package stepbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/runtime/backends/native"
)

// Forecast is how long a run takes, by a few of its micro batches.
type Forecast struct {
	Steps           time.Duration // of all steps
	Evaluations     time.Duration
	TokensPerSecond float64
	// Guessed says that one micro batch would take longer than the limit: the times are those of
	// processors at a usual share of their peak.
	Guessed bool
}

// Total returns how long the whole run takes, without reading text and saving.
func (f Forecast) Total() time.Duration { return f.Steps + f.Evaluations }

// usualShare is the part of the peak of the processors that a model of millions of parameters
// reaches.
const usualShare = 0.4

// measuredSteps are those of a forecast, after two that warm up.
const measuredSteps = 5

// Expect measures micro batches of a module for about as long as limit, and returns how long the
// whole training will take. Module must train from scratch on one rank.
func Expect(ctx context.Context, s Settings, limit time.Duration) (f Forecast, err error) {
	var p lengths
	if _, err := document.Decode(s.Module.Params, &p); err != nil {
		return f, err
	}
	if p.Micro < 1 || p.Global < p.Micro {
		return f, fmt.Errorf("stepbench: given micro_batch_size %d and global_batch_size %d, want 1 or more micro batches", p.Micro, p.Global)
	}
	var one document.Builder
	micro, _ := s.Module.Params.Lookup("micro_batch_size")
	one.Set("global_batch_size", micro)
	module := *s.Module
	module.Params = document.Merge(module.Params.Without("rampup_batch_size"), one.Map())
	bench, _, err := native.NewBench(&module, s.Manager, s.Device, s.Log)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()

	args := bench.Args()
	tokens := float64(args.MicroBatchSize * args.SeqLength)
	step, update, forward := time.Duration(0), time.Duration(0), time.Duration(0)
	guess := time.Duration(float64(time.Second) * tokens * args.FLOPsPerToken() / max(usualShare*opbench.PeakFLOPS(s.Pool), 1e6))
	if f.Guessed = guess > limit; f.Guessed {
		step, forward = guess, guess/3
	} else if step, update, forward, err = measureMicro(ctx, s, bench, limit); err != nil {
		return f, err
	}
	each := p.step(step, update)
	f.Steps, f.Evaluations = time.Duration(p.Steps)*each, p.evaluations(forward)
	f.TokensPerSecond = float64(p.Global*args.SeqLength) / each.Seconds()
	return f, nil
}

// lengths are the parameters that the time of a run depends on.
type lengths struct {
	Steps   int `param:"train_iters"`
	Global  int `param:"global_batch_size"`
	Micro   int `param:"micro_batch_size"`
	Every   int `param:"eval_interval"`
	Windows int `param:"eval_iters"`
	Last    int `param:"final_eval_windows"`
}

// step returns what a step takes if one of a single micro batch takes one, of which update is the
// change of the weights.
func (l lengths) step(one, update time.Duration) time.Duration {
	return one + time.Duration(l.Global/l.Micro-1)*(one-update)
}

// evaluations returns what all evaluations take if a micro batch takes forward.
func (l lengths) evaluations(forward time.Duration) time.Duration {
	if l.Every == 0 {
		return 0
	}
	windows := (l.Steps-1)/l.Every*l.Windows*l.Micro + max(l.Last, l.Windows*l.Micro)
	return time.Duration(float64(windows) / float64(l.Micro) * float64(forward))
}

// measureMicro returns what a step of one micro batch takes, how much of it is the change of the
// weights, and what a forward pass takes.
func measureMicro(ctx context.Context, s Settings, bench *native.Bench, limit time.Duration) (step, update, forward time.Duration, err error) {
	var steps, forwards []time.Duration
	before := s.Manager.Stats()
	begun := time.Now()
	for i := range 2 + measuredSteps {
		if i > 0 && time.Since(begun) > limit {
			break
		}
		if i < 2 { // these warm up, and count only if there is no time for more
			steps, before = nil, s.Manager.Stats()
		}
		at := time.Now()
		if _, err := bench.Step(ctx); err != nil {
			return 0, 0, 0, err
		}
		steps = append(steps, time.Since(at))
	}
	step = time.Duration(stats.SpreadOf(steps).Median * float64(time.Millisecond))
	sum := time.Duration(0)
	for _, t := range steps {
		sum += t
	}
	for _, o := range opShares(before, s.Manager.Stats(), sum, len(steps)) {
		switch o.Op {
		case "multi_tensor_adam", "multi_tensor_l2norm", "multi_tensor_scale":
			update += time.Duration(o.MS * float64(time.Millisecond))
		}
	}
	for i := range 3 {
		if i > 0 && time.Since(begun) > limit {
			break
		}
		at := time.Now()
		if _, err := bench.ValidLoss(); err != nil {
			return 0, 0, 0, err
		}
		forwards = append(forwards, time.Since(at))
	}
	return step, min(update, step), time.Duration(stats.SpreadOf(forwards).Median * float64(time.Millisecond)), nil
}
