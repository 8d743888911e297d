package runs_test

import (
	"errors"
	"testing"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
)

// A run that has diverged says so until it recovers, goes back, or for good when it has ended.
func TestDivergedRun(t *testing.T) {
	b := runs.NewBoard(runs.BoardSettings{})
	b.RunStarted(backend.Run{Name: "r", Steps: 10})
	state := func() runs.State { return b.Runs()[0].State }
	for _, change := range []backend.HealthChange{backend.HealthRecovered, backend.HealthRewound} {
		b.Judged(backend.Judgement{Change: backend.HealthSpike, Text: "spike"})
		assert.Equal(t, runs.Running, state())
		b.Judged(backend.Judgement{Change: backend.HealthDiverged, Text: "it has"})
		assert.Equal(t, runs.Diverged, state())
		assert.Equal(t, "it has", b.Runs()[0].Diverged)
		b.Judged(backend.Judgement{Change: change})
		assert.Equal(t, runs.Running, state())
	}
	for _, end := range []struct {
		result backend.Result
		want   runs.State
	}{
		{backend.Result{}, runs.Done},
		{backend.Result{Health: backend.Health{Diverged: 3}}, runs.Diverged},
		{backend.Result{Err: backend.ErrDiverged}, runs.Diverged},
		{backend.Result{Err: backend.ErrInterrupted, Health: backend.Health{Diverged: 3}}, runs.Interrupted},
		{backend.Result{Err: errors.New("no")}, runs.Failed},
	} {
		b.RunStarted(backend.Run{Name: "r"})
		b.RunEnded(end.result)
		assert.Equal(t, end.want, state())
	}
}
