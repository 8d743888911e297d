package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// healthWatch is an observer that keeps the judgements and the end of a run.
type healthWatch struct {
	backend.Observers
	judged []string
	result backend.Result
}

func (w *healthWatch) Judged(j backend.Judgement) {
	w.judged = append(w.judged, fmt.Sprintf("%s %d", j.Change, j.Step))
}

func (w *healthWatch) RunEnded(r backend.Result) { w.result = r }

// spoil multiplies the losses of some batches of the data, by their numbers from 1, by a factor,
// whenever the run trains on them. firsts are the first micro batches of all batches.
func spoil(firsts []string, factor float64, bad ...int) []patch.Patch {
	return []patch.Patch{{ID: "spoil", Phase: patch.Setup, Apply: func(c *patch.Context) error {
		return patch.Wrap(c, native.ForwardStepPoint, func(next func(model.Batch) (float64, error)) func(model.Batch) (float64, error) {
			return func(micro model.Batch) (float64, error) {
				loss, err := next(micro)
				for _, n := range bad {
					if firsts[n-1] == fmt.Sprint(micro.Tokens) {
						loss *= factor
					}
				}
				return loss, err
			}
		})
	}}}
}

// firstMicros returns the first micro batches of the batches of a run.
func firstMicros(t *testing.T, l *lab, steps int) (firsts []string) {
	t.Helper()
	l.patches = []patch.Patch{{ID: "record", Phase: patch.Setup, Apply: func(c *patch.Context) error {
		return patch.Wrap(c, native.DataOrderPoint, func(next func(*model.Batch) error) func(*model.Batch) error {
			return func(b *model.Batch) error {
				err := next(b)
				firsts = append(firsts, fmt.Sprint(b.Slice(0, 2).Tokens))
				return err
			}
		})
	}}}
	require.NoError(t, l.train(t.Context(), "record", "save_interval=0", "eval_interval=0", fmt.Sprintf("train_iters=%d", steps), "lr_decay_iters=40"))
	return firsts
}

var steady = []string{"train_iters=24", "lr_decay_iters=40", "save_interval=4", "eval_interval=0", "clip_grad=0.01"}

// A spike is warned of, dropped, sends the run back or ends it, and what follows is the same after
// an interruption.
func TestOnSpike(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for _, factor := range []float64{50, math.NaN()} {
		what := "a high loss"
		if math.IsNaN(factor) {
			what = "NaN"
		}
		t.Run(what, func(t *testing.T) {
			l := newLab(t)
			firsts := firstMicros(t, l, 30)
			l.patches = spoil(firsts, factor, 14)
			run := func(name string, more ...string) (*healthWatch, error) {
				w := &healthWatch{}
				l.observer = w
				err := l.train(t.Context(), name, append(append([]string{}, steady...), more...)...)
				return w, err
			}
			steps := func(name string) (all []int) {
				for _, r := range l.metrics(name) {
					all = append(all, r.Step)
				}
				return all
			}

			w, err := run("warn")
			if math.IsNaN(factor) {
				require.ErrorIs(t, err, backend.ErrNonFinite)
			} else {
				require.NoError(t, err)
				assert.Equal(t, []string{"spike 14"}, w.judged)
				assert.Equal(t, backend.Health{Spikes: 1, LastSpike: 14}, w.result.Health)
				assert.Contains(t, l.log.String(), "step 14: spike of the loss: the loss is ")
				listed, err := checkpoint.List(l.path("warn", "checkpoints"))
				require.NoError(t, err)
				var marks []string
				for _, e := range listed {
					marks = append(marks, fmt.Sprint(e.Step, " ", e.Judgement))
				}
				assert.Equal(t, []string{"24 spike", "20 spike", "12 good"}, marks, "rotation keeps two, and the last good one")
			}

			w, err = run("skip", "on_spike=skip")
			require.NoError(t, err)
			assert.Equal(t, []string{"skipped 14"}, w.judged)
			assert.Equal(t, backend.Health{Spikes: 1, LastSpike: 14, Skipped: 1}, w.result.Health)
			assert.Len(t, steps("skip"), map[bool]int{true: 23, false: 24}[math.IsNaN(factor)])

			w, err = run("rewind", "on_spike=rewind")
			require.NoError(t, err)
			assert.Equal(t, []string{"spike 14", "rewound 14"}, w.judged)
			assert.Equal(t, backend.Health{Spikes: 1, LastSpike: 14, Rewinds: 1}, w.result.Health)
			assert.Contains(t, l.log.String(), "step 14: the run has gone back to the checkpoint of step 12")
			all := steps("rewind")
			require.Len(t, all, 24)
			for i, s := range all {
				assert.Equal(t, i+1, s)
			}
			assert.EqualValues(t, 4*(24+2), stateOf(t, l, "rewind", 24)["consumed_samples"], "the data of steps 13 and 14 are passed over")

			_, err = run("stop", "on_spike=stop")
			require.ErrorIs(t, err, map[bool]error{true: backend.ErrNonFinite, false: backend.ErrDiverged}[math.IsNaN(factor)])
			if !math.IsNaN(factor) {
				assert.ErrorContains(t, err, "step 14: ")
				assert.EqualValues(t, 13, stateOf(t, l, "stop", 13)["step"], "the last good step is saved")
			}

			// Interrupted before and after, the run is the same. A checkpoint between that of step 12
			// and the spike would be the one to go back to.
			for _, action := range []string{"skip", "rewind"} {
				for _, at := range []int{5, 12, 16} {
					name := fmt.Sprint(action, at)
					l.observer = nil
					require.ErrorIs(t, interrupt(l, name, at, append(append([]string{}, steady...), "on_spike="+action)...), backend.ErrInterrupted)
					_, err := run(name, "on_spike="+action)
					require.NoError(t, err)
					assert.Equal(t, l.metrics(action), l.metrics(name), name)
				}
			}
		})
	}
}

// interrupt trains until a step is done.
func interrupt(l *lab, name string, at int, overrides ...string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.observer = stopAt{step: at, stop: cancel}
	return l.train(ctx, name, overrides...)
}

type stopAt struct {
	backend.Observers
	step int
	stop func()
}

func (s stopAt) StepDone(d backend.Step) {
	if d.Step == s.step {
		s.stop()
	}
}

func stateOf(t *testing.T, l *lab, name string, step int) (state map[string]any) {
	t.Helper()
	text, err := os.ReadFile(l.path(name, "checkpoints", fmt.Sprintf("step-%08d", step), "trainer_state.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	return state
}

// Spikes without end do not keep a run busy without end.
func TestLimitsOfSpikes(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	firsts := firstMicros(t, l, 30)
	l.patches = spoil(firsts, 50, 13, 14, 15, 16, 17, 18)
	err := l.train(t.Context(), "skip", append(steady, "on_spike=skip", "max_skips=3")...)
	require.ErrorIs(t, err, backend.ErrDiverged)
	require.ErrorContains(t, err, "step 16: ")
	require.ErrorContains(t, err, "the updates of the last 4 steps were dropped, and max_skips is 3")
	l.patches = spoil(firsts, 50, 13, 14, 15, 16, 17, 18)
	err = l.train(t.Context(), "rewind", append(steady, "on_spike=rewind", "max_rewinds=2")...)
	require.ErrorIs(t, err, backend.ErrDiverged)
	require.ErrorContains(t, err, "the run has gone back 2 times, and max_rewinds is 2")
	err = l.train(t.Context(), "nowhere", append(steady, "on_spike=rewind", "save_interval=0")...)
	require.ErrorContains(t, err, "there is no good checkpoint to go back to: give save_initial=true or a shorter save_interval")
	require.NoError(t, l.train(t.Context(), "initial", append(steady, "on_spike=rewind", "save_interval=0", "save_initial=true", "max_rewinds=9")...))
}

// Divergence is seen within a few steps, and the last good checkpoint outlives it.
func TestDivergence(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	w := &healthWatch{}
	l.observer = w
	require.NoError(t, l.train(t.Context(), "run", "train_iters=60", "lr_decay_iters=60", "lr=20", "lr_warmup_iters=30", "clip_grad=0", "save_interval=2", "eval_interval=0"))
	require.NotZero(t, w.result.Health.Diverged, w.judged)
	assert.Contains(t, w.judged, fmt.Sprintf("diverged %d", w.result.Health.Diverged))
	listed, err := checkpoint.List(l.path("run", "checkpoints"))
	require.NoError(t, err)
	require.Len(t, listed, 3)
	assert.Equal(t, checkpoint.Diverged, listed[0].Judgement)
	assert.Equal(t, checkpoint.Good, listed[2].Judgement)
	assert.Less(t, int(listed[2].Step), w.result.Health.Diverged)
}

// keep_best keeps the checkpoints with the lowest validation losses, keep_every those of some
// steps, under Megatron's name, too.
func TestKeep(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "run", "train_iters=12", "save_interval=2", "eval_interval=2", "keep_last=1", "keep_best=1", "save_retain_interval=6", "lr=0.001", "lr_warmup_iters=0"))
	steps, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
	require.NoError(t, err)
	var names []string
	for _, s := range steps {
		names = append(names, filepath.Base(s))
	}
	assert.Equal(t, []string{"step-00000006", "step-00000012"}, names)
	listed, err := checkpoint.List(l.path("run", "checkpoints"))
	require.NoError(t, err)
	assert.Equal(t, *l.metrics("run")[11].ValidLoss, *listed[0].ValidLoss)
	require.ErrorContains(t, l.train(t.Context(), "wrong", "keep_every=3", "save_retain_interval=6"), "save_retain_interval: given 6, and keep_every is 3")
	require.ErrorContains(t, l.train(t.Context(), "wrong", "keep_best=3", "eval_interval=3"), "keep_best: given 3, want 0, or validation text and a save_interval")
}
