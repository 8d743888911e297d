package fleet_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// paced lets a run do steps as fast as a function of its policy says, one each time it is asked.
func paced(r *trainer, took func(opregistry.Kind) time.Duration, fallbacks func(opregistry.Kind) uint64) {
	var calls, fell atomic.Uint64
	meter := fleet.NewPaceMeter(r.manager.Generation, func() (uint64, uint64) { return calls.Load(), fell.Load() })
	step := func() {
		kind := r.manager.Policy().Prefer
		meter.Step(took(kind))
		calls.Add(1000)
		fell.Add(fallbacks(kind))
	}
	for range 6 {
		step()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = func() fleet.Status {
		step()
		return fleet.Status{State: fleet.StateTraining, Pace: meter.Pace()}
	}
}

// A policy under which a run becomes slower or falls back more than permitted is taken back, and no
// other.
func TestApplyTakesBackWhatIsSlow(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	usual := func(opregistry.Kind) time.Duration { return time.Second }
	none := func(opregistry.Kind) uint64 { return 0 }
	slowOn := func(slow opregistry.Kind, took time.Duration) func(opregistry.Kind) time.Duration {
		return func(kind opregistry.Kind) time.Duration {
			if kind == slow {
				return took
			}
			return time.Second
		}
	}
	enough := func() {
		soon(t, func() bool {
			s, err := c.List(t.Context(), time.Minute)
			return err == nil && len(s.Members[0].Status.Pace.StepSeconds) >= 5 && len(s.Members[1].Status.Pace.StepSeconds) >= 5
		})
	}
	settings := fleet.ApplySettings{Expect: -1, Patience: time.Minute, MaxSlowdown: 0.2, Trial: 10 * time.Minute}

	first := newTrainer(t, config, 0)
	first.set = func() fleet.Status { return fleet.Status{State: fleet.StateStarting} }
	first.agent.Start(t.Context())
	_, err := c.Apply(t.Context(), "prefer: vendor\n", settings)
	require.ErrorContains(t, err, "nothing has changed: a limit of slowdown compares with the last 5 steps")
	require.ErrorContains(t, err, "(starting) has done 0 steps")
	assert.Equal(t, opregistry.KindFlagos, first.manager.Policy().Prefer)

	paced(first, usual, none)
	second := newTrainer(t, config, 1)
	paced(second, slowOn(opregistry.KindReference, 1300*time.Millisecond), func(kind opregistry.Kind) uint64 {
		if kind == opregistry.KindVendor {
			return 10
		}
		return 0
	})
	second.agent.Start(t.Context())

	got, err := c.Apply(t.Context(), "prefer: reference\n", settings)
	require.NoError(t, err)
	require.ErrorContains(t, got.Fault(), "makes 1 of 2 runs slower than permitted; the previous policy is in force again")
	assert.Equal(t, "in force", got.Runs[0].Result)
	assert.Equal(t, "too slow", got.Runs[1].Result)
	assert.Equal(t, "a step takes 1.3 s, was 1 s: 30 % longer, more than 20 %", got.Runs[1].Reason)
	soon(t, second.prefers(opregistry.KindFlagos))

	enough()
	got, err = c.Apply(t.Context(), "prefer: vendor\n", settings)
	require.NoError(t, err)
	require.Error(t, got.Fault())
	assert.Regexp(t, `^1\.\d\d % of calls fall back, were 0\.00 %$`, got.Runs[1].Reason)

	enough()
	settings.MaxSlowdown = 0.4
	got, err = c.Apply(t.Context(), "prefer: reference\n", settings)
	require.NoError(t, err)
	require.NoError(t, got.Fault())
	assert.Nil(t, got.Rollback)
	history, err := c.History(t.Context())
	require.NoError(t, err)
	assert.Contains(t, history[1].Why, "made 1 of 2 runs too slow")
}
