package recording_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keepWrong makes calls of a vendor that is wrong in each of them, and returns what was kept.
func keepWrong(t *testing.T, dir string, calls int) (m *opmanager.Manager, reg *opregistry.Registry, log *strings.Builder) {
	t.Helper()
	m, reg = newManager(t)
	policy := oppolicy.Default()
	policy.Prefer = opregistry.KindVendor
	m = m.With(policy)
	t.Cleanup(m.Close)
	log = &strings.Builder{}
	w := recording.NewWrongCalls(slog.New(slog.NewTextHandler(log, nil)))
	w.SetDir(dir)
	w.SetStep(7)
	m.KeepWrong(w.Keep)
	for range calls {
		m.ClearQuarantine("", "")
		a := newCall(t)
		require.NoError(t, opmanager.MustBind(m.Layer(1).Phase(oppolicy.PhaseBackward), every).Call(a))
		assert.InDelta(t, 11.9, a.Sums[0].At(0), 1e-5, "flagos serves the call")
	}
	return m, reg, log
}

// A wrong call in place is kept with what it read, and the file tells who is wrong.
func TestWrongCallIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wrong-calls")
	m, reg, log := keepWrong(t, dir, 1)
	file := filepath.Join(dir, "every-vendor.acme-1.safetensors")
	require.Len(t, m.Quarantines(), 1)
	assert.Equal(t, file, m.Quarantines()[0].File)
	assert.Contains(t, m.Quarantines()[0].Cause, "primus ops replay "+file)
	assert.Empty(t, log.String())

	c, err := recording.Open(t.Context(), file, reg.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, recording.Site{Step: 7, Number: 1, Layer: 1, Phase: oppolicy.PhaseBackward}, c.Site)
	assert.Equal(t, "vendor.acme", c.Impl())
	assert.Contains(t, c.Why, "differs from the result of the reference")
	results, err := recording.Replay(context.Background(), c, entries(reg.Snapshot()), &entries(reg.Snapshot())[2], opregistry.NewExec(nil, 0), 1)
	require.NoError(t, err)
	require.Len(t, results, 3)
	for _, r := range results {
		want := recording.Right
		if r.Impl == "vendor.acme" {
			want = recording.Wrong
			assert.True(t, r.Recorded.Equal, "it is as wrong as it was")
		}
		assert.Equal(t, want, r.Verdict, r.Impl)
		assert.True(t, r.RecordedWrong())
	}
}

// What cannot be kept is logged, and the calls are served all the same.
func TestWrongCallsHaveLimits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wrong-calls")
	m, _, log := keepWrong(t, dir, 4)
	files, err := recording.Files(dir)
	require.NoError(t, err)
	assert.Len(t, files, recording.MaxWrongPerImpl)
	assert.Equal(t, 1, strings.Count(log.String(), "is not kept"), log.String())
	assert.Empty(t, m.Quarantines()[0].File)

	require.NoError(t, os.Truncate(files[1], recording.MaxWrongBytes))
	require.NoError(t, os.Remove(files[0]))
	_, _, log = keepWrong(t, dir, 1)
	assert.Contains(t, log.String(), fmt.Sprint("and the limit is ", recording.MaxWrongBytes))

	occupied := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(occupied, nil, 0o600))
	_, _, log = keepWrong(t, occupied, 1)
	assert.Contains(t, log.String(), "a wrong call of op 'every' on 'vendor.acme' is not kept: mkdir")
}

// noteArgs are for an op that reads x.
type noteArgs struct {
	X   *tensor.Tensor `op:"0 x read f32 [n]"`
	Y   *tensor.Tensor `op:"1 y read f32 [n]"`
	Out *tensor.Tensor `op:"2 out write f32 [n]"`
}

// The verdicts tell what verification tells: rounding that the call magnifies is not wrong, and a
// write to an operand that the op only reads is, whatever the result.
func TestVerdicts(t *testing.T) {
	op := opregistry.NewOp("subtract", opregistry.Schema[noteArgs]{})
	subtract := func(off, write float32) opregistry.Func[noteArgs] {
		return func(_ *opregistry.Exec, a noteArgs) error {
			for i, x := range tensor.Data[float32](a.X) {
				tensor.Data[float32](a.Out)[i] = x - tensor.Data[float32](a.Y)[i] + off*x
			}
			tensor.Data[float32](a.Y)[0] += write
			if write == 2 {
				return opregistry.Unsupported("too late")
			}
			return nil
		}
	}
	vendor := func(name string, run opregistry.Func[noteArgs]) opregistry.Impl {
		return opregistry.Impl{Op: op, ID: "vendor." + name, Kind: opregistry.KindVendor, Vendor: name, Run: run}
	}
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{
		{Op: op, ID: "reference.go", Kind: opregistry.KindReference, Run: subtract(0, 0)},
		vendor("rounds", subtract(0x1p-22, 0)), vendor("wrong", subtract(1e-3, 0)), vendor("writes", subtract(0, 1)), vendor("late", subtract(0, 2)),
		vendor("fails", func(*opregistry.Exec, noteArgs) error { panic("out of order") }),
		vendor("declines", func(*opregistry.Exec, noteArgs) error { return opregistry.Unsupported("another day") }),
	}}))
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	dir := filepath.Join(t.TempDir(), "calls")
	w := recording.NewWrongCalls(slog.New(slog.DiscardHandler))
	w.SetDir(dir)
	m.KeepWrong(w.Keep)
	for _, id := range []string{"vendor.rounds", "vendor.wrong", "vendor.writes"} {
		policy := oppolicy.Default()
		policy.PerOp = []oppolicy.OpRule{{Pattern: "subtract", Order: []oppolicy.Token{{Impl: id}, {Impl: "reference.go"}}}}
		view := m.With(policy)
		a := noteArgs{X: floats(t, []int{2}, 1, 2), Y: floats(t, []int{2}, 1, 2), Out: floats(t, []int{2}, 0, 0)}
		err := opmanager.MustBind(view, op).Call(a)
		require.NoError(t, err)
		view.Close()
	}
	files, err := recording.Files(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "rounding is not kept")
	snap := reg.Snapshot()
	i, _ := snap.Index("subtract")
	for n, file := range files {
		c, err := recording.Open(t.Context(), file, snap)
		require.NoError(t, err)
		impls := snap.Impls(i)
		k := 0
		for impls[k].ID != "reference.go" {
			k++
		}
		results, err := recording.Replay(context.Background(), c, impls, &impls[k], opregistry.NewExec(nil, 0), 1)
		require.NoError(t, err)
		got := map[string]recording.Verdict{}
		for _, r := range results {
			got[r.Impl] = r.Verdict
			assert.True(t, r.RecordedWrong())
			assert.Equal(t, n == 0, strings.Contains(r.RecordedWrote, `operand "y" was written to`))
		}
		assert.Equal(t, map[string]recording.Verdict{
			"reference.go": recording.Right, "vendor.rounds": recording.Rounding, "vendor.wrong": recording.Wrong, "vendor.writes": recording.Wrong,
			"vendor.late": recording.Wrong, "vendor.fails": recording.Failed, "vendor.declines": recording.Declined,
		}, got)
	}
}
