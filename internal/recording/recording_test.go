package recording_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// everyArgs has an argument of each sort.
type everyArgs struct {
	X      *tensor.Tensor           `op:"0 x read compute [rows cols]"`
	Y      *tensor.Tensor           `op:"1 y write =x [rows cols] may=x"`
	Bias   *tensor.Tensor           `op:"2 bias read =x [cols] ?"`
	Sums   []*tensor.Tensor         `op:"3 sums update f32 (rows) len=n"`
	Count  int                      `op:"4 count >=0"`
	Seed   uint64                   `op:"5 seed"`
	Scale  float32                  `op:"6 scale"`
	Clamp  opregistry.OptionalFloat `op:"7 clamp"`
	Negate opregistry.OptionalBool  `op:"8 negate"`
	Axes   []int                    `op:"9 axes"`
	Plain  bool                     `op:"10 plain"`
}

var every = opregistry.NewOp("every", opregistry.Schema[everyArgs]{})

// runEvery computes y = scale·x + bias and adds the rows of y to sums. Its result is wrong by
// wrong.
func runEvery(wrong float32) opregistry.Func[everyArgs] {
	return func(_ *opregistry.Exec, a everyArgs) error {
		if a.Seed == math.MaxUint64 {
			return errors.New("a seed too many")
		}
		for r := range a.X.Shape()[0] {
			sum := 0.0
			for c := range a.X.Shape()[1] {
				v := float64(a.Scale) * a.X.At(r, c)
				if a.Bias != nil {
					v += a.Bias.At(c)
				}
				if limit, given := a.Clamp.Get(); given {
					v = min(v, float64(limit))
				}
				a.Y.Set(v, r, c)
				sum += v
			}
			for _, s := range a.Sums {
				s.Set(s.At(r)+sum+float64(wrong), r)
			}
		}
		return nil
	}
}

func floats(t *testing.T, shape []int, values ...float32) *tensor.Tensor {
	t.Helper()
	made, err := tensor.FromSlice(values, shape...)
	require.NoError(t, err)
	return made
}

// newCall returns arguments of which x is strided and y the same view.
func newCall(t *testing.T) everyArgs {
	t.Helper()
	x, err := floats(t, []int{3, 2}, 1, 2, 3, 4, 5, 6).Transpose(0, 1)
	require.NoError(t, err)
	return everyArgs{
		X: x, Y: x, Bias: floats(t, []int{3}, 1, 0, 0), Sums: []*tensor.Tensor{floats(t, []int{2}, 10, 20), floats(t, []int{2}, 0, 0)},
		Count: 3, Seed: 1 << 63, Scale: 0.1, Clamp: opregistry.Float(2), Negate: opregistry.Bool(false), Axes: []int{0, -1},
	}
}

func newManager(t *testing.T) (*opmanager.Manager, *opregistry.Registry) {
	t.Helper()
	reg := opregistry.NewRegistry()
	impl := func(id string, kind opregistry.Kind, vendor string, wrong float32) opregistry.Impl {
		return opregistry.Impl{Op: every, ID: id, Kind: kind, Vendor: vendor, Run: runEvery(wrong)}
	}
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{
		impl("default.flagos", opregistry.KindFlagos, "", 0), impl("vendor.acme", opregistry.KindVendor, "acme", 1), impl("reference.go", opregistry.KindReference, "", 0),
	}}))
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	t.Cleanup(m.Close)
	return m, reg
}

func record(t *testing.T, set recording.Settings, calls func(*opmanager.Manager, *recording.Recorder)) (files []string, snap *opregistry.Snapshot) {
	t.Helper()
	m, reg := newManager(t)
	set.Dir, set.Log = filepath.Join(t.TempDir(), "calls"), slog.New(slog.DiscardHandler)
	r, err := recording.NewRecorder(set)
	require.NoError(t, err)
	remove := m.Tap(r)
	calls(m, r)
	remove()
	kept, err := r.Close()
	require.NoError(t, err)
	if kept == 0 {
		return nil, reg.Snapshot()
	}
	files, err = recording.Files(set.Dir)
	require.NoError(t, err)
	require.Len(t, files, kept)
	return files, reg.Snapshot()
}

func TestRoundTrip(t *testing.T) {
	want := newCall(t)
	files, snap := record(t, recording.Settings{Ops: []string{"ev*"}, Choice: recording.Choice{First: 1}}, func(m *opmanager.Manager, r *recording.Recorder) {
		r.SetStep(7)
		require.NoError(t, opmanager.MustBind(m.Layer(2).Phase(oppolicy.PhaseBackward), every).Call(newCall(t)))
	})
	require.Len(t, files, 1)
	c, err := recording.Open(t.Context(), files[0], snap)
	require.NoError(t, err)
	assert.Equal(t, recording.Site{Step: 7, Number: 1, Layer: 2, Phase: oppolicy.PhaseBackward}, c.Site)
	assert.Equal(t, "default.flagos", c.Impl())
	call, err := c.Arguments()
	require.NoError(t, err)
	got := opregistry.ArgsOf[everyArgs](call)
	assert.Same(t, got.X, got.Y, "one view stays one view")
	assert.Equal(t, want.X.Strides(), got.X.Strides())
	assert.Equal(t, want.X.Float64s(), got.X.Float64s())
	assert.Equal(t, want.Sums[0].Float64s(), got.Sums[0].Float64s())
	want.X, want.Y, want.Bias, want.Sums = got.X, got.Y, got.Bias, got.Sums
	assert.Equal(t, want, *got)

	results, err := recording.Replay(t.Context(), c, entries(snap), &entries(snap)[2], opregistry.NewExec(nil, 0), 2)
	require.NoError(t, err)
	require.Len(t, results, 3)
	assert.True(t, results[0].Recorded.Equal)
	assert.True(t, results[0].Reference.Equal)
	assert.False(t, results[0].Wrong())
	assert.False(t, results[0].RecordedWrong())
	assert.Equal(t, 4, results[1].Reference.Beyond)
	assert.Contains(t, results[1].Reference.Worst, `operand "sums[`)
	assert.True(t, results[1].Wrong())
	assert.Nil(t, results[2].Reference)
	assert.Equal(t, 2, results[2].Time.Count)
}

// The file of a wrong result shows the fault where the impl that computed it is absent.
func TestRecordedResultIsWrong(t *testing.T) {
	m, reg := newManager(t)
	policy := oppolicy.Default()
	policy.Verify.Mode = oppolicy.VerifyOff
	require.NoError(t, policy.SetPrefer("vendor", "test"))
	_, err := m.SetPolicy(policy)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "calls")
	r, err := recording.NewRecorder(recording.Settings{Dir: dir, Ops: []string{"*"}, Choice: recording.Choice{First: 1}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	m.Tap(r)
	require.NoError(t, opmanager.MustBind(m, every).Call(newCall(t)))
	_, err = r.Close()
	require.NoError(t, err)
	c, err := recording.Open(t.Context(), filepath.Join(dir, "000001-every.safetensors"), reg.Snapshot())
	require.NoError(t, err)
	require.Equal(t, "vendor.acme", c.Impl())
	results, err := recording.Replay(t.Context(), c, entries(reg.Snapshot())[:1], &entries(reg.Snapshot())[2], opregistry.NewExec(nil, 0), 1)
	require.NoError(t, err)
	require.Len(t, results, 1)
	assert.False(t, results[0].Wrong())
	assert.True(t, results[0].RecordedWrong())
	assert.Equal(t, 4, results[0].RecordedReference.Beyond)
	assert.Contains(t, results[0].RecordedReference.Worst, "got 2.9000001, want 1.89999998, off by 1 ")
}

func entries(snap *opregistry.Snapshot) []opregistry.Entry {
	i, _ := snap.Index("every")
	return snap.Impls(i)
}

func TestChoice(t *testing.T) {
	steps := func(m *opmanager.Manager, r *recording.Recorder) {
		bound, layer := opmanager.MustBind(m, every), opmanager.MustBind(m.Layer(1), every)
		for step := 1; step <= 3; step++ {
			r.SetStep(step)
			a, b := newCall(t), newCall(t)
			if step == 3 {
				b.Scale = float32(math.Inf(1))
				b.Clamp = opregistry.OptionalFloat{}
			}
			require.NoError(t, bound.Call(a))
			require.NoError(t, layer.Call(b))
		}
		follows := newCall(t) // its result is not finite because an operand is not
		follows.X.Set(math.NaN(), 0, 0)
		require.NoError(t, bound.Call(follows))
		failing := newCall(t)
		failing.Seed = math.MaxUint64
		require.Error(t, bound.Call(failing))
	}
	tests := []struct {
		name   string
		choice string
		edit   func(*recording.Settings)
		want   []string
	}{
		{"the first of each place", "first:2", nil, []string{"step 1 call 1", "step 1 layer 1 call 2", "step 2 call 1", "step 2 layer 1 call 2"}},
		{"every third", "every:3", nil, []string{"step 2 call 1", "step 3 layer 1 call 2"}},
		{"a step", "step:2", nil, []string{"step 2 call 1", "step 2 layer 1 call 2"}},
		{"faults", "faults", nil, []string{"step 3 layer 1 call 2", "step 3 call 4"}},
		{"once for two reasons", "first:1,step:1", nil, []string{"step 1 call 1", "step 1 layer 1 call 2"}},
		{"a layer", "step:1", func(s *recording.Settings) { s.Layers = []int{1} }, []string{"step 1 layer 1 call 2"}},
		{"another op", "step:1", func(s *recording.Settings) { s.Ops = []string{"generic_*"} }, nil},
		{"a limit", "first:9", func(s *recording.Settings) { s.MaxBytes = 200 }, []string{"step 1 call 1", "step 1 layer 1 call 2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			choice, err := recording.ParseChoice(tt.choice)
			require.NoError(t, err)
			set := recording.Settings{Ops: []string{"every"}, Choice: choice}
			if tt.edit != nil {
				tt.edit(&set)
			}
			files, snap := record(t, set, steps)
			var got []string
			for _, file := range files {
				c, err := recording.Open(t.Context(), file, snap)
				require.NoError(t, err)
				got = append(got, c.Site.String())
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseChoiceRefuses(t *testing.T) {
	for _, text := range []string{"", "first", "first:0", "first:x", "faults:1", "last:2", "first:1,"} {
		_, err := recording.ParseChoice(text)
		assert.Error(t, err, text)
	}
}

// Only files that were written count.
func TestRecorderCannotWrite(t *testing.T) {
	m, _ := newManager(t)
	dir := filepath.Join(t.TempDir(), "calls")
	r, err := recording.NewRecorder(recording.Settings{Dir: dir, Ops: []string{"*"}, Choice: recording.Choice{First: 2}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	m.Tap(r)
	require.NoError(t, opmanager.MustBind(m, every).Call(newCall(t)))
	kept, err := r.Close()
	require.ErrorContains(t, err, "recorded calls are incomplete")
	assert.Zero(t, kept)
}

func TestRecorderRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := recording.NewRecorder(recording.Settings{Dir: dir, Ops: []string{"[a"}})
	require.ErrorContains(t, err, "want names of ops")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "000001-every.safetensors"), nil, 0o600))
	_, err = recording.NewRecorder(recording.Settings{Dir: dir, Ops: []string{"*"}})
	require.ErrorContains(t, err, "holds recorded calls already")
	_, err = recording.Files(t.TempDir())
	require.ErrorContains(t, err, "--record-dir")
}

// A file that an op with other arguments wrote, or that is no file of a call, is an error and never
// a panic.
func FuzzOpen(f *testing.F) {
	m, reg := newManager(&testing.T{})
	dir := f.TempDir()
	r, err := recording.NewRecorder(recording.Settings{Dir: dir, Ops: []string{"*"}, Choice: recording.Choice{First: 1}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	m.Tap(r)
	x, err := tensor.FromSlice([]float32{1, 2}, 1, 2)
	require.NoError(f, err)
	require.NoError(f, opmanager.MustBind(m, every).Call(everyArgs{X: x, Y: x}))
	_, err = r.Close()
	require.NoError(f, err)
	files, err := recording.Files(dir)
	require.NoError(f, err)
	text, err := os.ReadFile(files[0])
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		file := filepath.Join(t.TempDir(), "call.safetensors")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		c, err := recording.Open(t.Context(), file, reg.Snapshot())
		if err != nil {
			return
		}
		_, err = recording.Replay(context.Background(), c, entries(reg.Snapshot()), nil, opregistry.NewExec(nil, 0), 1)
		require.NoError(t, err)
	})
}
