package tuning_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/tuning"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

type args struct {
	X *tensor.Tensor `op:"0 x read f32 [n]"`
	Y *tensor.Tensor `op:"1 y write f32 [n]"`
}

type pairArgs struct {
	X     *tensor.Tensor `op:"0 x read f32 [n]"`
	Y     *tensor.Tensor `op:"1 y write f32 [n]"`
	Saved *opregistry.Saved
}

var (
	plain   = opregistry.NewOp("plain", opregistry.Schema[args]{})
	pairFwd = opregistry.NewOp("pair_fwd", opregistry.Schema[pairArgs]{Family: "pair", Forward: true})
	pairBwd = opregistry.NewOp("pair_bwd", opregistry.Schema[pairArgs]{Family: "pair"})
)

// slow returns an impl that takes a time that depends on the size of x. The ratios are so large
// that a busy machine does not change the choice.
func slow(ms func(n int) time.Duration) opregistry.Func[args] {
	return func(_ *opregistry.Exec, a args) error {
		time.Sleep(ms(a.X.NumElements()))
		return nil
	}
}

func constant(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func newManager(t *testing.T, policy oppolicy.Policy) (*opmanager.Manager, *opregistry.Snapshot) {
	t.Helper()
	small := func(n int) time.Duration { // fast for small operands only
		if n < 100 {
			return time.Millisecond
		}
		return 40 * time.Millisecond
	}
	pair := func(d time.Duration) opregistry.Func[pairArgs] {
		return func(*opregistry.Exec, pairArgs) error { time.Sleep(d); return nil }
	}
	declines := opregistry.Func[args](func(*opregistry.Exec, args) error { return opregistry.Unsupported("all") })
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Version: "1", Impls: []opregistry.Impl{
		{Op: plain, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: slow(constant(8 * time.Millisecond))},
		{Op: plain, ID: "vendor.small", Kind: opregistry.KindVendor, Vendor: "small", Run: slow(small)},
		{Op: plain, ID: "vendor.never", Kind: opregistry.KindVendor, Vendor: "never", Run: declines},
		{Op: plain, ID: "reference.go", Kind: opregistry.KindReference, Run: slow(constant(0))},
		{Op: pairFwd, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: pair(time.Millisecond)},
		{Op: pairBwd, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: pair(30 * time.Millisecond)},
		{Op: pairFwd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: pair(3 * time.Millisecond)},
		{Op: pairBwd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: pair(5 * time.Millisecond)},
	}}))
	m := opmanager.New(reg, policy, opmanager.Settings{})
	t.Cleanup(m.Close)
	return m, reg.Snapshot()
}

func operands(t *testing.T, n int) (x, y *tensor.Tensor) {
	t.Helper()
	x, err := tensor.FromSlice(make([]float32, n))
	require.NoError(t, err)
	y, err = tensor.FromSlice(make([]float32, n))
	require.NoError(t, err)
	return x, y
}

func callPlain(t *testing.T, m *opmanager.Manager, n int) {
	t.Helper()
	x, y := operands(t, n)
	require.NoError(t, opmanager.MustBind(m, plain).Call(args{x, y}))
}

func tune(t *testing.T) *tuning.File {
	t.Helper()
	m, snap := newManager(t, oppolicy.Default())
	assert.Equal(t, []string{"plain", "pair_fwd", "pair_bwd"}, tuning.Choices(m))
	profile := tuning.NewProfile(tuning.Choices(m))
	remove := m.Tap(profile)
	for range 3 {
		callPlain(t, m, 10)
		callPlain(t, m, 1000)
	}
	callPlain(t, m, 1000)
	x, y := operands(t, 5)
	saved := &opregistry.Saved{}
	require.NoError(t, opmanager.MustBind(m, pairFwd).Call(pairArgs{x, y, saved}))
	require.NoError(t, opmanager.MustBind(m, pairBwd).Call(pairArgs{x, y, saved}))
	remove()
	entries, err := tuning.Measure(t.Context(), profile, tuning.Settings{Manager: m, Ops: snap, Budget: time.Minute})
	require.NoError(t, err)
	return tuning.New("toy", entries, snap, 1)
}

func families(op string) string {
	if op == "plain" {
		return ""
	}
	return "pair"
}

func TestChoosesByShapeAndFamily(t *testing.T) {
	file := tune(t)
	impls := map[string]string{}
	for _, e := range file.Entries {
		impls[e.Op+" "+e.Call] = e.Impl
		assert.NotContains(t, e.Times, "vendor.never")
		assert.NotContains(t, e.Times, "reference.go")
	}
	assert.Equal(t, map[string]string{
		"plain x f32 [10], y f32 [10]": "vendor.small", "plain x f32 [1000], y f32 [1000]": "default.flagos",
		"pair_fwd x f32 [5], y f32 [5]": "default.flagos", "pair_bwd x f32 [5], y f32 [5]": "vendor.acme",
	}, impls)

	choices := file.Tuning("tuning file x", families)
	assert.Equal(t, "default.flagos", choices.Ops["plain"].Impl)
	require.Len(t, choices.Ops["plain"].Calls, 1)
	assert.Regexp(t, `^tuned: vendor.small, \d+\.\d\dx faster than default.flagos on x f32 \[10\], y f32 \[10\], \d+ samples, `, choices.Ops["plain"].Calls[0].Why)
	assert.Equal(t, "vendor.acme", choices.Ops["pair_fwd"].Impl, "the family is faster, although its forward op is not")
	assert.Equal(t, "vendor.acme", choices.Ops["pair_bwd"].Impl)
	assert.Empty(t, choices.Ops["pair_fwd"].Calls)
}

// Calls run on the impl that was chosen for their signature, and on the next one when it declines.
func TestCallsFollowTheTuning(t *testing.T) {
	choices := tune(t).Tuning("tuning file x", families)
	policy := oppolicy.Default()
	policy.UseTuning(choices)
	m, _ := newManager(t, policy)
	callPlain(t, m, 10)
	callPlain(t, m, 1000)
	callPlain(t, m, 11) // another signature
	calls := map[string]uint64{}
	for _, s := range m.Stats() {
		calls[s.Op+" "+s.ID] = s.Calls
	}
	assert.EqualValues(t, 1, calls["plain vendor.small"])
	assert.EqualValues(t, 2, calls["plain default.flagos"])
	e, err := m.Explain("plain")
	require.NoError(t, err)
	assert.Len(t, e.Tuned, 2)
	assert.Contains(t, e.String(), "order: tuned|flagos|vendor|reference (tuning file x)")

	explicit := oppolicy.Default()
	require.NoError(t, explicit.SetPrefer("flagos", "environment TE_FL_PREFER"))
	explicit.UseTuning(choices)
	n, _ := newManager(t, explicit)
	callPlain(t, n, 10)
	e, err = n.Explain("plain")
	require.NoError(t, err)
	assert.Empty(t, e.Tuned, "an explicit preference wins")
	assert.NotEqual(t, policy.Fingerprint(), explicit.Fingerprint())
}

func TestFileBelongsToAMachine(t *testing.T) {
	_, snap := newManager(t, oppolicy.Default())
	file := tuning.New("toy", []tuning.Entry{{Op: "plain", Impl: "a", Over: "b", Usual: "b", Calls: 1, Times: map[string]float64{"a": 1, "b": 2}}}, snap, 2)
	path := filepath.Join(t.TempDir(), "tune.json")
	require.NoError(t, file.Write(path))
	read, err := tuning.Read(path)
	require.NoError(t, err)
	assert.Equal(t, file, read)
	require.NoError(t, read.Check(path, tuning.ThisMachine(snap, 2)))
	err = read.Check(path, tuning.ThisMachine(snap, 1))
	elsewhere, ok := errors.AsType[*tuning.MachineError](err)
	require.True(t, ok)
	assert.Equal(t, []string{"threads: made for 2, here 1"}, elsewhere.Differences)
	read.Machine.Primus, read.Machine.Sources["same"] = "0.1", "0.1"
	here := tuning.ThisMachine(snap, 2)
	here.Sources["same"] = here.Primus
	elsewhere, _ = errors.AsType[*tuning.MachineError](read.Check(path, here))
	assert.Equal(t, []string{"primus: made for 0.1, here " + here.Primus}, elsewhere.Differences, "a part of the program is not named again")
	read.Machine = tuning.ThisMachine(snap, 2)
	read.Machine.Sources["gone"] = "2"
	read.Machine.Sources["test"] = "0"
	assert.ErrorContains(t, read.Check(path, tuning.ThisMachine(snap, 2)), "source gone: not here, source test: made for 0, here 1")
}

// A library of another version may have other speeds.
func TestFileBelongsToTheVersionsOfLibraries(t *testing.T) {
	machine := func(version string) tuning.Machine {
		reg := opregistry.NewRegistry()
		require.NoError(t, reg.Register(opregistry.Source{Name: "acme", LibraryVersion: func() string { return version }, Impls: []opregistry.Impl{
			{Op: plain, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: slow(constant(0))},
		}}))
		return tuning.ThisMachine(reg.Snapshot(), 1)
	}
	file := &tuning.File{Machine: machine("1.2")}
	require.NoError(t, file.Check("tune.json", machine("1.2")))
	assert.ErrorContains(t, file.Check("tune.json", machine("1.3")), "source acme: made for 1.2, here 1.3")
	assert.ErrorContains(t, file.Check("tune.json", machine("")), "source acme: made for 1.2, here none")
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	file := func(entries string) string { return `{"format":"primus-tuning/3","entries":[` + entries + `]}` }
	entry := func(times string) string {
		return `{"op":"plain","impl_id":"a","over":"b","usual":"b","calls":1,"signature":"0f","times_ms":{` + times + `}}`
	}
	sound := entry(`"a":1,"b":2`)
	_, err := tuning.Parse("tune.json", []byte(file(sound)))
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                             "it is empty",
		file(sound)[:40]:               "it is cut off",
		file(sound) + "{}":             "it has text after the end of the JSON object",
		`{"format":"primus-tuning/0"}`: `given format "primus-tuning/0", want "primus-tuning/3"`,
		file(sound + "," + sound):      `entry 1: given op "plain" with signature 000000000000000f a second time`,
		file(entry(`"a":1`)):           `entry 0: times_ms of op "plain" has no time of b, want those of impl_id and over`,
		file(entry(`"a":1,"b":-2`)):    `entry 0: times_ms of op "plain": given -2 for b, want a time above 0`,
		file(entry(`"a":0,"b":2`)):     `entry 0: times_ms of op "plain": given 0 for a, want a time above 0`,
		file(`{"op":"plain"}`):         `entry 0: given op "plain", impl_id "", over "", usual "" and 0 calls`,
	} {
		_, err := tuning.Parse("tune.json", []byte(text))
		assert.ErrorContains(t, err, "tune.json: "+want, text)
	}
}

// The usual impl may decline calls, as libraries do with small products. These are measured as
// well, and a file with them can be read again.
func TestUsualImplDeclines(t *testing.T) {
	t.Parallel()
	declines := func(limit int, d time.Duration) opregistry.Func[args] {
		return func(_ *opregistry.Exec, a args) error {
			if a.X.NumElements() < limit {
				return opregistry.Unsupported("small operands")
			}
			time.Sleep(d)
			return nil
		}
	}
	failing := 0
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{
		{Op: plain, ID: "vendor.large", Kind: opregistry.KindVendor, Vendor: "large", Run: declines(100, 30*time.Millisecond), Priority: 3},
		{Op: plain, ID: "vendor.slow", Kind: opregistry.KindVendor, Vendor: "slow", Run: slow(constant(30 * time.Millisecond)), Priority: 2},
		{Op: plain, ID: "vendor.failing", Kind: opregistry.KindVendor, Vendor: "failing", Run: opregistry.Func[args](func(*opregistry.Exec, args) error {
			if failing++; failing > 5 {
				return errors.New("lost")
			}
			return nil
		}), Priority: 1},
		{Op: plain, ID: "default.flagos", Kind: opregistry.KindFlagos, Run: slow(constant(time.Millisecond))},
	}}))
	policy := oppolicy.Default()
	require.NoError(t, policy.SetPrefer("vendor", "test"))
	m := opmanager.New(reg, policy, opmanager.Settings{})
	t.Cleanup(m.Close)
	profile := tuning.NewProfile(tuning.Choices(m))
	remove := m.Tap(profile)
	callPlain(t, m, 10)
	callPlain(t, m, 1000)
	remove()
	entries, err := tuning.Measure(t.Context(), profile, tuning.Settings{Manager: m, Ops: reg.Snapshot(), Budget: time.Minute})
	require.NoError(t, err)
	require.Len(t, entries, 2)
	over := map[string]string{}
	for _, e := range entries {
		over[e.Call] = e.Over
		assert.Equal(t, "default.flagos", e.Impl, e.Call)
		assert.Equal(t, "vendor.large", e.Usual, e.Call)
	}
	assert.Equal(t, map[string]string{"x f32 [10], y f32 [10]": "vendor.slow", "x f32 [1000], y f32 [1000]": "vendor.large"}, over)

	path := filepath.Join(t.TempDir(), "tune.json")
	require.NoError(t, tuning.New("toy", entries, reg.Snapshot(), 1).Write(path))
	read, err := tuning.Read(path)
	require.NoError(t, err)
	assert.Equal(t, "default.flagos", read.Tuning("file", families).Ops["plain"].Impl)
	for i := range read.Entries {
		read.Entries[i].Dropped = true
	}
	dropped := read.Tuning("file", families).Ops["plain"]
	assert.Equal(t, "vendor.large", dropped.Impl, "nothing changes")
	assert.Empty(t, dropped.Calls)
}

// A call whose measurements do not show another impl to be clearly faster than the usual one runs
// on that of the op, unless the usual one is faster than that.
func TestUnclearCallsFollowTheOp(t *testing.T) {
	t.Parallel()
	entry := func(signature int, impl string, usual, acme float64) tuning.Entry {
		return tuning.Entry{Op: "plain", Signature: tuning.Signature(signature), Call: "x", Calls: 1, Impl: impl, Over: "usual", Usual: "usual",
			Times: map[string]float64{"usual": usual, "acme": acme}}
	}
	f := tuning.File{Entries: []tuning.Entry{entry(1, "acme", 10, 1), entry(2, "usual", 1.5, 1), entry(3, "usual", 1, 1.5)}}
	op := f.Tuning("file", families).Ops["plain"]
	assert.Equal(t, "acme", op.Impl)
	require.Len(t, op.Calls, 1)
	assert.EqualValues(t, 3, op.Calls[0].Signature)
	assert.Contains(t, op.Calls[0].Why, "tuned: usual, 1.50x faster than acme on x")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":"primus-tuning/3","entries":[{"op":"plain","impl_id":"a","over":"b","usual":"c","calls":1,"signature":"0f","times_ms":{"a":1,"b":2}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		file, err := tuning.Parse("tune.json", text)
		if err == nil {
			file.Tuning("file", func(string) string { return "" })
		}
	})
}

// confirmed returns a file with four choices for plain after a trial in which a step with choices
// takes as long as took says of the number of tuned calls.
func confirmed(t *testing.T, took func(calls int) time.Duration) *tuning.File {
	t.Helper()
	_, snap := newManager(t, oppolicy.Default())
	var entries []tuning.Entry
	for i := range 5 {
		e := tuning.Entry{Op: "plain", Signature: tuning.Signature(i), Call: "x", Calls: 1, Share: 0.2, Impl: "vendor.small", Over: "default.flagos", Usual: "default.flagos", Ratio: 1.1 + float64(i)/10,
			Times: map[string]float64{"default.flagos": 1, "vendor.small": 1 / (1.1 + float64(i)/10)}}
		if i == 0 {
			e.Impl, e.Ratio, e.Times["vendor.small"], e.Times["default.flagos"] = e.Over, 1, 100, 1
		}
		entries = append(entries, e)
	}
	f := tuning.New("toy", entries, snap, 1)
	n := 0
	require.NoError(t, f.Confirm(t.Context(), 0, families, func(_ context.Context, with *oppolicy.Tuning) (time.Duration, error) {
		calls := 0
		if with != nil {
			calls = len(with.Ops["plain"].Calls)
		}
		n++
		return took(calls) + time.Duration(n%3), nil
	}))
	return f
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	used := func(f *tuning.File) (signatures []uint64) {
		for _, c := range f.Tuning("file", families).Ops["plain"].Calls {
			signatures = append(signatures, c.Signature)
		}
		return signatures
	}
	all := confirmed(t, func(calls int) time.Duration { return time.Second - time.Duration(calls)*time.Millisecond*10 })
	assert.Equal(t, []uint64{1, 2, 3, 4}, used(all))
	assert.True(t, all.Trial.Faster())
	assert.Equal(t, tuning.MinPairs, all.Trial.Pairs)
	assert.InDelta(t, 1/0.96, all.Trial.Ratio, 1e-3)

	some := confirmed(t, func(calls int) time.Duration {
		if calls > 2 {
			return 2 * time.Second
		}
		return time.Second - time.Duration(calls)*time.Millisecond
	})
	assert.Equal(t, []uint64{3, 4}, used(some), "those that gain most")
	assert.True(t, some.Trial.Faster())

	none := confirmed(t, func(int) time.Duration { return time.Second })
	assert.Empty(t, used(none))
	assert.False(t, none.Trial.Faster())
	for _, e := range none.Entries[1:] {
		assert.True(t, e.Dropped)
		assert.Equal(t, "vendor.small", e.Impl, "what was measured stays")
	}
	assert.Contains(t, none.Tuning("file", families).Ops["plain"].Why, "tuned: default.flagos, which no other impl beats")
}
