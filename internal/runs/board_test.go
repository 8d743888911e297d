package runs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Python framework trains in other processes: what it reports takes the place of the counters of
// this program.
func TestBoardOfAFramework(t *testing.T) {
	own := []opmanager.ImplStats{{Op: "gelu", ImplInfo: opmanager.ImplInfo{ID: "own", Kind: opregistry.KindFlagos}, Calls: 3, Errors: 7}}
	b := runs.NewBoard(runs.BoardSettings{Stats: func() []opmanager.ImplStats { return own }})
	b.RunStarted(backend.Run{Name: "r", FirstStep: 1})
	uses, ok := b.Uses("r")
	require.True(t, ok)
	assert.Equal(t, []runs.Use{{Op: "gelu", Impl: "own", Kind: "flagos", Calls: 3, Errors: 7}}, uses)

	cuda := opmanager.ImplInfo{ID: "vendor.cuda", Kind: opregistry.KindVendor}
	b.OpEvent(1, opmanager.Failed{Op: "gelu", Impl: cuda, Err: errors.New("no kernel")})
	b.OpEvent(1, opmanager.FellBack{Op: "gelu", From: cuda, To: opmanager.ImplInfo{ID: "default.flagos", Kind: opregistry.KindFlagos}, Cause: errors.New("no kernel")})
	b.StepDone(backend.Step{Step: 5, TFLOPSPerDevice: 98.5, MemoryBytes: 1 << 33})
	uses, _ = b.Uses("r")
	assert.Equal(t, []runs.Use{{Op: "gelu", Impl: "default.flagos", Kind: "flagos", Fallbacks: 1}, {Op: "gelu", Impl: "vendor.cuda", Kind: "vendor", Errors: 1}}, uses)
	run := b.Runs()[0]
	assert.Equal(t, uint64(1), run.Errors)
	assert.Equal(t, uint64(1), run.Fallbacks)
	assert.InDelta(t, 98.5, run.TFLOPSPerDevice, 0)
	assert.Equal(t, int64(1<<33), run.MemoryBytes)
	assert.Nil(t, run.ETASeconds, "the last step is unknown")
}

// A job of ranks shows which one computed longest.
func TestBoardOfRanks(t *testing.T) {
	b := runs.NewBoard(runs.BoardSettings{WorldSize: 2})
	b.RunStarted(backend.Run{Name: "r", FirstStep: 1})
	assert.Nil(t, b.Runs()[0].Ranks)
	b.StepDone(backend.Step{Step: 1, Ranks: &backend.RankTimes{Computed: []time.Duration{time.Second, 3 * time.Second}, Waited: 2 * time.Second}})
	assert.Equal(t, &runs.Ranks{ComputeSeconds: []float64{1, 3}, WaitSeconds: 2, Slowest: 1, Skew: 0.5}, b.Runs()[0].Ranks)
}
