package native_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// Whatever ends a run while its weights are whole saves them first, and the run goes on to what an
// undisturbed one gives.
func TestLastStepIsSaved(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	lost := errors.New("the library is gone")
	dead := func(*opregistry.Exec, gemm.GenericGemmArgs) error { return lost }
	perStep := gemmsPerStep(t)
	tests := map[string]struct {
		spoil func(*lab)
		want  string
	}{
		"a dead impl": {func(l *lab) {
			l.prefer, l.policy = opregistry.KindVendor, func(p *oppolicy.Policy) { p.Strict = true }
			var step, calls atomic.Int64
			l.observer = onStep{do: func(s backend.Step) { step.Store(int64(s.Step)) }}
			l.sources = []opregistry.Source{saboteurWhen(func() bool { return step.Load() == 6 && calls.Add(1) > perStep/2 }, dead)}
		}, "the library is gone"},
		"a panic between steps": {func(l *lab) {
			l.observer = onStep{do: func(s backend.Step) {
				if s.Step == 6 {
					panic("out of luck")
				}
			}}
		}, "panicked: out of luck"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			require.NoError(t, l.train(t.Context(), "whole", "save_interval=0", "eval_interval=0"))
			tt.spoil(l)
			err := l.train(t.Context(), "parts", "save_interval=0", "eval_interval=0")
			require.ErrorContains(t, err, tt.want)
			assert.DirExists(t, l.path("parts", "checkpoints", "step-00000006"))
			assert.Contains(t, l.log.String(), "step 6 is saved before the end; the same command goes on from there")
			l.prefer, l.policy, l.sources, l.observer = opregistry.KindFlagos, nil, nil, backend.Observers{}
			require.NoError(t, l.train(t.Context(), "parts", "save_interval=0", "eval_interval=0"))
			assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
		})
	}
}

// gemmsPerStep counts the products of a step without evaluation.
func gemmsPerStep(t *testing.T) int64 {
	t.Helper()
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "one", "train_iters=1", "save_interval=0", "eval_interval=0"))
	first := calls(l, "generic_gemm")
	require.NoError(t, l.train(t.Context(), "two", "train_iters=2", "save_interval=0", "eval_interval=0"))
	return calls(l, "generic_gemm") - first
}

func calls(l *lab, op string) int64 {
	var n uint64
	for _, s := range l.manager.Stats() {
		if s.Op == op {
			n += s.Calls
		}
	}
	return int64(n)
}

// adamSaboteur returns a vendor whose optimizer is that of flagos, and from a call on also
// misbehaves.
func adamSaboteur(from int64, misbehave func(optim.MultiTensorAdamArgs) error) opregistry.Source {
	var calls atomic.Int64
	var run opregistry.Func[optim.MultiTensorAdamArgs]
	for _, impl := range flagos.Source().Impls {
		if impl.Op == opregistry.Handle(optim.MultiTensorAdam) {
			run = impl.Run.(opregistry.Func[optim.MultiTensorAdamArgs])
		}
	}
	return opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: optim.MultiTensorAdam, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: func(ex *opregistry.Exec, a optim.MultiTensorAdamArgs) error {
			if err := run(ex, a); err != nil || calls.Add(1) <= from {
				return err
			}
			return misbehave(a)
		},
	}}}
}

// Numbers that the optimizer spoils, in the weights or its moments, end the run before they are
// saved as good, whatever asks for the save, and the run goes on from the checkpoint before.
func TestWhatTheOptimizerSpoilsIsNotSaved(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, tt := range map[string]struct {
		list  int // 1 weights, 2 first moments, 3 second moments
		value float32
		save  string
		last  string
		want  string
	}{
		"a weight is NaN":                              {1, nan, "save_interval=1", "step-00000005", "the weight model."},
		"a weight is infinite":                         {1, -inf, "save_interval=1", "step-00000005", "the weight model."},
		"a weight is so large that the loss overflows": {1, 3e38, "save_interval=1", "step-00000005", "loss after the update"},
		"a first moment is NaN":                        {2, nan, "save_interval=1", "step-00000005", "the state of the optimizer model."},
		"a second moment is infinite":                  {3, inf, "save_interval=1", "step-00000005", "the state of the optimizer model."},
		"a weight is NaN, found a step later":          {1, nan, "save_interval=5", "step-00000005", "the loss is NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			require.NoError(t, l.train(t.Context(), "whole", tt.save, "eval_interval=0"))
			l.prefer = opregistry.KindVendor
			l.sources = []opregistry.Source{adamSaboteur(10, func(a optim.MultiTensorAdamArgs) error { // two calls per step
				values := tensor.Data[float32](a.TensorLists[tt.list][0])
				values[len(values)/2] = tt.value
				return nil
			})}
			err := l.train(t.Context(), "run", tt.save, "eval_interval=0")
			require.ErrorIs(t, err, backend.ErrNonFinite)
			require.ErrorContains(t, err, tt.want)
			saved, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
			require.NoError(t, err)
			require.NotEmpty(t, saved)
			assert.Equal(t, tt.last, filepath.Base(saved[len(saved)-1]))
			l.prefer, l.sources = opregistry.KindFlagos, nil
			require.NoError(t, l.train(t.Context(), "run", tt.save, "eval_interval=0"))
			assert.Equal(t, l.metrics("whole"), l.metrics("run"))
		})
	}
}

// Weights that are half updated are not saved: the checkpoint before them stays the last one.
func TestHalfUpdatedWeightsAreNotSaved(t *testing.T) {
	l := newLab(t)
	l.sources = []opregistry.Source{adamSaboteur(13, func(optim.MultiTensorAdamArgs) error { return errors.New("lost half way") })}
	l.prefer = opregistry.KindVendor
	err := l.train(t.Context(), "run", "save_interval=4", "eval_interval=0")
	require.ErrorContains(t, err, "lost half way")
	assert.DirExists(t, l.path("run", "checkpoints", "step-00000004"))
	assert.NoDirExists(t, l.path("run", "checkpoints", "step-00000006"))
	assert.Contains(t, l.log.String(), "step 7 is not saved: the weights are half updated; the last checkpoint is that of step 4")
}

// Long loops end soon after an interrupt: those before the first step, and evaluation when there is
// no time left for it.
func TestLongLoopsListen(t *testing.T) {
	t.Run("dump_batches", func(t *testing.T) {
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := l.train(ctx, "run", "dump_batches=1000000000")
		require.ErrorIs(t, err, backend.ErrInterrupted)
		assert.NoFileExists(t, l.path("run", "batches.safetensors"))
	})
	t.Run("evaluation", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		perStep := gemmsPerStep(t)
		l := newLab(t)
		l.prefer = opregistry.KindVendor
		l.sources = []opregistry.Source{saboteur(4*perStep, func(*opregistry.Exec, gemm.GenericGemmArgs) error {
			cancel()
			return opregistry.Unsupported("no more calls")
		})}
		err := l.train(ctx, "run")
		require.ErrorIs(t, err, backend.ErrInterrupted)
		assert.Contains(t, l.log.String(), "the evaluation after step 4 is skipped")
		assert.DirExists(t, l.path("run", "checkpoints", "step-00000004"))
		assert.Nil(t, l.metrics("run")[3].ValidLoss)
	})
}

// A run that ends on time is saved, says which parameter has ended it, and the same command goes on
// to what an undisturbed run gives.
func TestRunEndsOnTime(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for _, tt := range []struct {
		given string
		ends  []int // the last step of each run
	}{
		{"exit_interval=4", []int{4, 8, 10}},
		{"exit_duration_in_mins=1e-9", []int{1, 2, 3}},
	} {
		t.Run(tt.given, func(t *testing.T) {
			l := newLab(t)
			args := []string{"train_iters=10", "save_interval=0", "eval_interval=0"}
			require.NoError(t, l.train(t.Context(), "whole", args...))
			for _, end := range tt.ends {
				l.log.Reset()
				require.NoError(t, l.train(t.Context(), "parts", append(args, tt.given)...))
				assert.DirExists(t, l.path("parts", "checkpoints", fmt.Sprintf("step-%08d", end)))
				parameter, value, _ := strings.Cut(tt.given, "=")
				text := fmt.Sprintf("the run ends at step %d of 10, which is saved, as %s %s asks for; the same command goes on", end, parameter, value)
				if value == "1e-9" {
					text = strings.ReplaceAll(text, "1e-9", "1e-09")
				}
				assert.Equal(t, end < 10, strings.Contains(l.log.String(), text), l.log.String())
			}
			assert.Equal(t, l.metrics("whole")[:tt.ends[2]], l.metrics("parts"))
		})
	}
	for _, wrong := range []string{"exit_interval=-1", "exit_duration_in_mins=-0.5", "exit_duration_in_mins=.inf"} {
		name, _, _ := strings.Cut(wrong, "=")
		assert.ErrorContains(t, newLab(t).train(t.Context(), "wrong", wrong), name+": given ")
	}
}
