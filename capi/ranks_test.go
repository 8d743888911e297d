package main

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train/traintest"
)

// watch is an observer that keeps the end of a run, and acts when ranks have called ops.
type watch struct {
	calls func([]backend.RankCalls)
	stop  func()
	ended backend.Result
}

func (w *watch) RunStarted(backend.Run) {}
func (w *watch) StepDone(backend.Step)  {}
func (w *watch) RankCalls(_ int, calls []backend.RankCalls) {
	if w.calls != nil {
		w.calls(calls)
	}
}
func (w *watch) RunEnded(r backend.Result) { w.ended = r }

// ranksLab is two ranks of a stand-in of TorchTitan whose ops go through primus_fl.
func ranksLab(t *testing.T, params string) (*traintest.Lab, *watch) {
	t.Helper()
	dir := libprimus(t)
	python := primustest.Python(t, "torch", "tomllib")
	tree, err := filepath.Abs("../internal/backends/torchtitan/testdata/torchtitan")
	require.NoError(t, err)
	packages, err := filepath.Abs("../python")
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	registry := opregistry.NewRegistry()
	for _, src := range []opregistry.Source{{Name: "catalogue", Ops: ops.All()}, flagos.Source(), reference.Source()} {
		require.NoError(t, registry.Register(src))
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	t.Cleanup(manager.Close)
	w := &watch{}
	environment := map[string]string{
		"PRIMUS_LIBRARY": filepath.Join(dir, "lib", "libprimus.so"), "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1",
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	return &traintest.Lab{
		Factory: torchtitan.Factory(), Params: params, BackendPath: tree, Observer: w, Manager: manager, Env: environment, Dir: t.TempDir(),
		Launch: launch.Options{PerNode: 2, Python: python, MasterPort: port, MasterAddr: "127.0.0.1", Ranks: "all"},
	}, w
}

// The ops of all ranks of a framework are counted exactly, and the losses are those without them.
func TestOpsOfRanks(t *testing.T) {
	const params = "training: {steps: 12, local_batch_size: 4, seq_len: 16}\noptimizer: {lr: 0.05}\n"
	l, w := ranksLab(t, params+"primus_ops: true\n")
	require.NoError(t, l.Run(t), l.Log.String())
	calls := map[string]uint64{}
	for _, u := range w.ended.Ranks {
		assert.Equal(t, 2, u.Ranks, u)
		calls[u.Op] += u.Calls
	}
	// An embedding, one linear layer and the loss, in each of 12 steps of two ranks.
	assert.Equal(t, map[string]uint64{
		"embedding_fwd": 24, "embedding_bwd": 24, "generic_gemm": 3 * 24, "cross_entropy_fwd": 24, "cross_entropy_bwd": 24,
	}, calls, l.Log.String())
	assert.NotContains(t, l.Log.String(), "no op of")

	plain, before := ranksLab(t, params)
	require.NoError(t, plain.Run(t), plain.Log.String())
	assert.InDelta(t, before.ended.Loss, w.ended.Loss, 1e-3)
	assert.Empty(t, before.ended.Ranks)
}

// A change of the policy of the run reaches its ranks.
func TestPolicyOfRanks(t *testing.T) {
	l, w := ranksLab(t, "training: {steps: 1000000, local_batch_size: 4, seq_len: 16}\nprimus_ops: true\n")
	changed, arrived := false, false
	w.calls = func(calls []backend.RankCalls) {
		if !changed {
			changed = true
			_, err := l.Manager.PolicyStack().Set(opmanager.LayerService, opmanager.PolicyLayer{Policy: oppolicy.Policy{Prefer: opregistry.KindReference}})
			assert.NoError(t, err)
		}
		if slices.ContainsFunc(calls, func(c backend.RankCalls) bool { return c.ID == "reference.go" && c.Calls > 0 }) {
			arrived = true
			w.stop()
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	w.stop = func() { stop(context.Canceled) }
	require.Error(t, l.RunIn(ctx, t))
	assert.True(t, arrived, l.Log.String())
}

// A Python without the package ends the run and says what to do.
func TestOpsOfRanksWithoutPackage(t *testing.T) {
	l, _ := ranksLab(t, "training: {steps: 2, local_batch_size: 4, seq_len: 16}\nprimus_ops: true\n")
	t.Setenv("PYTHONPATH", "")
	l.Env = map[string]string{}
	err := l.Run(t)
	require.Error(t, err)
	assert.Contains(t, err.Error()+l.Log.String(), "this Python has no package primus_fl: install its wheel (make wheel)")
	l.Params = strings.Replace(l.Params, "true", "7", 1)
	assert.ErrorContains(t, l.Run(t), "parameter primus_ops: given int 7, want true or false")
}
