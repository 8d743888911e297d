//go:build invariants

package opmanager_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

func TestBrokenTablesAreFound(t *testing.T) {
	t.Parallel()
	for name, fault := range opmanager.Faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newManager(t, nil, opmanager.Settings{})
			assert.Contains(t, panicOf(func() { opmanager.CheckBroken(f.Manager, addOne.Name(), fault.Break) }), fault.Want)
		})
	}
}

func TestSavedStateOfAnotherImplIsFound(t *testing.T) {
	t.Parallel()
	f := newManager(t, nil, opmanager.Settings{})
	b, err := opmanager.Bind(f.Manager, pairBwd)
	require.NoError(t, err)
	a := newPair(t)
	a.Saved.SetOwner("reference.go")
	assert.Contains(t, panicOf(func() { _ = opmanager.InvokeOn(b, 0, a) }), "got the saved state of reference.go")
}

func TestScratchThatIsNotReleasedIsFound(t *testing.T) {
	t.Parallel()
	leaks := false
	leaky := func(ex *opregistry.Exec, _ addArgs) error {
		if buf := ex.Scratch(100); !leaks {
			ex.Release(buf)
		}
		return nil
	}
	f := newManager(t, nil, opmanager.Settings{})
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "leaky", Impls: []opregistry.Impl{
		{Op: addOne, ID: "vendor.leaky", Kind: opregistry.KindVendor, Vendor: "leaky", Priority: 1000, Run: leaky},
	}}))
	b, a := opmanager.MustBind(f.Manager, addOne), newArgs(t)
	require.NoError(t, b.Call(a))
	leaks = true
	const want = "impl vendor.leaky returned without releasing 1 slices of scratch, 100 float32s"
	assert.Contains(t, panicOf(func() { _ = b.Call(a) }), want, "a call that only runs the head")
	assert.Contains(t, panicOf(func() { _ = opmanager.InvokeOn(b, 0, a) }), want)
}

// allocateNothing calls f; the checks of invariants allocate.
func allocateNothing(_ *testing.T, f func()) { f() }

// panicOf returns the text that f panics with.
func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}
