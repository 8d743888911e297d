package opregistry_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	r, copies, other := opregistry.NewRegistry(), newCopy(), newOther()
	empty := r.Snapshot()
	assert.Zero(t, empty.Generation())
	assert.Empty(t, empty.Ops())

	vendor := impl(copies, "vendor.acme")
	vendor.Kind, vendor.Vendor, vendor.Priority = opregistry.KindVendor, " ACME ", 100
	register(t, r, opregistry.Source{Name: "one", Version: "7", Impls: []opregistry.Impl{impl(copies, "reference.go"), vendor}})
	register(t, r, opregistry.Source{Name: "two", Ops: []opregistry.Handle{other, copies}, Impls: []opregistry.Impl{impl(copies, "more")}})

	s := r.Snapshot()
	assert.Equal(t, uint64(2), s.Generation())
	assert.Equal(t, []opregistry.Handle{copies, other}, s.Ops())
	assert.Equal(t, []string{"reference.go of one", "vendor.acme of one", "more of two"}, ids(t, s, "copy"))
	assert.Empty(t, ids(t, s, "other"), "declared without an impl")
	assert.Equal(t, "acme", s.Impls(0)[1].Vendor, "vendors are normalised")
	assert.Equal(t, 100, s.Impls(0)[1].Priority)
	require.Len(t, s.Sources(), 2)
	assert.Equal(t, "7", s.Sources()[0].Version)
	_, ok := s.Index("third")
	assert.False(t, ok)
	assert.Empty(t, empty.Ops(), "an old snapshot stays as it was")
}

// B13, B14: an impl that does not fit its op is refused, and nothing of its source is registered.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	copies := newCopy()
	edit := func(f func(i *opregistry.Impl)) opregistry.Source {
		i := impl(copies, "wrong")
		f(&i)
		return source("new", impl(copies, "fine"), i)
	}
	var noRun opregistry.Func[copyArgs]
	tests := []struct {
		name string
		give opregistry.Source
		want []string
	}{
		{"no name", source(""), []string{"source without a name"}},
		{"known name", source("first", impl(copies, "fine")), []string{`source "first" is registered already`}},
		{"no op", edit(func(i *opregistry.Impl) { i.Op = nil }), []string{`source "new"`, `impl "wrong"`, "no Op"}},
		{"no id", edit(func(i *opregistry.Impl) { i.ID = "" }), []string{`op "copy"`, `id ""`}},
		{"id with spaces", edit(func(i *opregistry.Impl) { i.ID = "my impl" }), []string{`"my impl"`, "joined by dots"}},
		{"id that ends in a dot", edit(func(i *opregistry.Impl) { i.ID = "vendor." }), []string{`"vendor."`}},
		{"no kind", edit(func(i *opregistry.Impl) { i.Kind = 0 }), []string{"kind unspecified", "flagos, vendor or reference"}},
		{"unknown kind", edit(func(i *opregistry.Impl) { i.Kind = 9 }), []string{"kind(9)"}},
		{"vendor without a name", edit(func(i *opregistry.Impl) { i.Kind = opregistry.KindVendor }), []string{"kind vendor without a vendor"}},
		{"vendor of odd characters", edit(func(i *opregistry.Impl) { i.Vendor = "a/b" }), []string{`vendor "a/b"`}},
		{"nothing to run", edit(func(i *opregistry.Impl) { i.Run = nil }), []string{"Run of type <nil>", "copyArgs"}},
		{"rate below 0", edit(func(i *opregistry.Impl) { i.Measured = opregistry.Measurement{Rate: -1, By: "make bench"} }), []string{"measured rate of -1", "above 0"}},
		{"rate of nobody", edit(func(i *opregistry.Impl) { i.Measured.Rate = 2 }), []string{"measured rate of 2 without what measured it"}},
		{"determinism of another release", edit(func(i *opregistry.Impl) { i.Determinism = 9 }), []string{"determinism(9)"}},
		{"nil function", edit(func(i *opregistry.Impl) { i.Run = noRun }), []string{"non-nil"}},
		{"arguments of another op", edit(func(i *opregistry.Impl) {
			i.Run = func(*opregistry.Exec, otherArgs) error { return nil }
		}), []string{`impl "wrong" of op "copy"`, "func(*opregistry.Exec, opregistry_test.otherArgs) error", "func(*opregistry.Exec, opregistry_test.copyArgs) error"}},
		{"pointer to the arguments", edit(func(i *opregistry.Impl) { i.Run = func(*opregistry.Exec, *copyArgs) error { return nil } }), []string{"*opregistry_test.copyArgs"}},
		{"second handle", source("new", impl(newCopy(), "second")), []string{`op "copy" has two handles`}},
		{"second handle, declared", opregistry.Source{Name: "new", Ops: []opregistry.Handle{newCopy()}}, []string{`op "copy" has two handles`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := opregistry.NewRegistry()
			register(t, r, source("first", impl(copies, "reference.go")))
			before := r.Snapshot()
			err := r.Register(tt.give)
			require.Error(t, err)
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
			assert.Same(t, before, r.Snapshot(), "all of a source or nothing")
		})
	}
}

// B14: the impls before a duplicate are not registered either.
func TestDuplicateID(t *testing.T) {
	t.Parallel()
	r, copies := opregistry.NewRegistry(), newCopy()
	register(t, r, source("first", impl(copies, "same")))
	before := r.Snapshot()
	err := r.Register(source("second", impl(copies, "fresh"), impl(copies, "same")))
	dup, ok := errors.AsType[*opregistry.DuplicateError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, &opregistry.DuplicateError{Op: "copy", ID: "same", Existing: "first", New: "second"}, dup)
	assert.ErrorContains(t, err, `impl "same" of op "copy" from source "second" is registered already by source "first"`)
	assert.Same(t, before, r.Snapshot())
	require.Error(t, r.Register(source("third", impl(copies, "twice"), impl(copies, "twice"))), "within a source as well")
	assert.Same(t, before, r.Snapshot())
}

func TestReplace(t *testing.T) {
	t.Parallel()
	r, copies := opregistry.NewRegistry(), newCopy()
	require.NoError(t, r.Replace(source("plugin", impl(copies, "old"))), "nothing to remove")
	register(t, r, source("other", impl(copies, "kept")))
	require.NoError(t, r.Replace(source("plugin", impl(copies, "old"), impl(copies, "new"))))
	assert.Equal(t, []string{"kept of other", "old of plugin", "new of plugin"}, ids(t, r.Snapshot(), "copy"))
	assert.Equal(t, uint64(3), r.Snapshot().Generation(), "one change")

	before := r.Snapshot()
	require.Error(t, r.Replace(source("plugin", impl(copies, "kept"))))
	assert.Same(t, before, r.Snapshot(), "a source that does not fit leaves the old one")
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	r, copies := opregistry.NewRegistry(), newCopy()
	register(t, r, opregistry.Source{Name: "first", Ops: []opregistry.Handle{newOther()}})
	register(t, r, source("second", impl(copies, "y")))
	index, _ := r.Snapshot().Index("copy")
	old := r.Snapshot()

	require.NoError(t, r.Unregister("first"))
	require.NoError(t, r.Unregister("second"))
	assert.Empty(t, r.Snapshot().Sources())
	assert.Empty(t, ids(t, r.Snapshot(), "copy"))
	assert.Equal(t, []string{"y of second"}, ids(t, old, "copy"), "an old snapshot stays as it was")
	again, ok := r.Snapshot().Index("copy")
	assert.True(t, ok, "ops stay declared")
	assert.Equal(t, index, again, "and keep their index")

	err := r.Unregister("second")
	require.ErrorIs(t, err, opregistry.ErrNotFound)
	assert.ErrorContains(t, err, `source "second"`)
	register(t, r, source("second", impl(copies, "y")))
}

func TestAliases(t *testing.T) {
	t.Parallel()
	r := opregistry.NewRegistry()
	aliased := source("acme", impl(newCopy(), "x"))
	aliased.Aliases = map[string]string{" Rocket ": "ACME", "cuda": "acme"}
	check := func(want map[string]string) {
		t.Helper()
		for name, vendor := range want {
			assert.Equal(t, vendor, r.Snapshot().Vendor(name), "alias %q", name)
		}
	}
	builtin := map[string]string{"CUDA": "nvidia", " rocm": "amd", "hip": "amd", "npu": "ascend", "Rocket": "rocket", "acme": "acme"}
	check(builtin)
	register(t, r, aliased)
	check(map[string]string{"rocket": "acme", "ROCKET ": "acme", "cuda": "acme", "hip": "amd"})
	require.NoError(t, r.Unregister("acme"))
	check(builtin)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	r, copies := opregistry.NewRegistry(), newCopy()
	var seen []string
	note := func(who string) func(*opregistry.Snapshot) {
		return func(s *opregistry.Snapshot) {
			assert.Same(t, s, r.Snapshot(), "what is passed is current")
			seen = append(seen, fmt.Sprintf("%s %d", who, s.Generation()))
		}
	}
	cancel := r.Watch(note("a"))
	r.Watch(note("b"))
	register(t, r, source("one", impl(copies, "x")))
	require.Error(t, r.Register(source("one")))
	require.Error(t, r.Unregister("none"))
	cancel()
	cancel()
	require.NoError(t, r.Replace(source("one")))
	assert.Equal(t, []string{"a 1", "b 1", "b 2"}, seen, "in order, changes only")
}

// Writers add and remove sources while readers check that each snapshot is complete.
func TestRegistryHammer(t *testing.T) {
	t.Parallel()
	const writers, readers, rounds = 4, 4, 100
	r, copies, other := opregistry.NewRegistry(), newCopy(), newOther()
	register(t, r, opregistry.Source{Name: "base", Ops: []opregistry.Handle{copies, other}})

	var last uint64
	r.Watch(func(s *opregistry.Snapshot) {
		assert.Equal(t, last, s.Generation()-1-1, "one change at a time")
		last = s.Generation() - 1
	})
	start := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			<-start
			name := fmt.Sprintf("w%d", w)
			for range rounds {
				assert.NoError(t, r.Replace(source(name, impl(copies, name+".a"), impl(copies, name+".b"))))
				assert.NoError(t, r.Unregister(name))
			}
		})
	}
	for range readers {
		wg.Go(func() {
			<-start
			generation := uint64(0)
			for range rounds {
				s := r.Snapshot()
				assert.GreaterOrEqual(t, s.Generation(), generation)
				generation = s.Generation()
				i, ok := s.Index("copy")
				assert.True(t, ok)
				impls := map[string]int{}
				for _, e := range s.Impls(i) {
					impls[e.Source]++
				}
				for name, n := range impls {
					assert.Equal(t, 2, n, "all of %s or nothing", name)
				}
				assert.Len(t, s.Sources(), len(impls)+1)
			}
		})
	}
	for range readers {
		wg.Go(func() {
			<-start
			for range rounds {
				r.Watch(func(*opregistry.Snapshot) {})()
			}
		})
	}
	close(start)
	wg.Wait()
	assert.Equal(t, uint64(1+2*writers*rounds), r.Snapshot().Generation())
	assert.Len(t, r.Snapshot().Sources(), 1)
}

func TestDeclarations(t *testing.T) {
	for level := range opregistry.DeterminismEverywhere + 1 {
		text, err := level.MarshalText()
		require.NoError(t, err)
		var back opregistry.Determinism
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, level, back)
	}
	_, err := (opregistry.DeterminismEverywhere + 1).MarshalText()
	require.Error(t, err)
	require.Error(t, new(opregistry.Determinism).UnmarshalText([]byte("sometimes")))
	assert.Equal(t, "determinism(9)", opregistry.Determinism(9).String())
}
