package opmanager_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func TestCallByName(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	a := newArgs(t)
	require.NoError(t, opmanager.Call(f.Manager, "add_one", a))
	assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](a.Out))
	allocateNothing(t, func() {
		if opmanager.Call(f.Manager, "add_one", a) != nil {
			t.Fail()
		}
	})

	err := opmanager.Call(f.Manager, "add_noe", a)
	require.ErrorIs(t, err, opregistry.ErrNotFound)
	require.ErrorContains(t, err, `did you mean "add_one"?`)
	err = opmanager.Call(f.Manager, "nvshmem_finalize", a)
	require.ErrorIs(t, err, opregistry.ErrNotFound)
	require.ErrorContains(t, err, `op "nvshmem_finalize": not registered: TransformerEngine-FL uses it to stop NVSHMEM; here: nothing`)
	require.ErrorContains(t, opmanager.Call(f.Manager, "add_one", 3), `op "add_one": given arguments of type int, want those of *opregistry.Op`)

	// An op that is registered later.
	late := opregistry.NewOp("late", opregistry.Schema[addArgs]{})
	run := &scripted{}
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "late", Impls: []opregistry.Impl{
		{Op: late, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Run: run.run},
	}}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if err := opmanager.Call(f.Manager, "late", newArgs(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 400, run.calls)
}

// B22: what an impl declares about dtypes is heeded before it runs.
func TestDeclaredSupport(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	narrow := &scripted{}
	require.NoError(t, f.registry.Register(opregistry.Source{Name: "narrow", Impls: []opregistry.Impl{
		{Op: addOne, ID: "vendor.narrow", Kind: opregistry.KindVendor, Vendor: "narrow", Priority: 200, Run: narrow.run,
			Support: opregistry.Support{DTypes: []tensor.DType{tensor.BF16}}},
		{Op: addOne, ID: "vendor.alien", Kind: opregistry.KindVendor, Vendor: "alien", Priority: 300, Run: narrow.run,
			Support: opregistry.Support{Features: []string{"asimd", "avx2"}}},
	}}))
	require.NoError(t, opmanager.MustBind(f.Manager, addOne).Call(newArgs(t)))
	assert.Zero(t, narrow.calls)
	assert.Equal(t, 1, f.vendor.calls)

	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "vendor.narrow", e.Selected)
	assert.Equal(t, "dtype bf16", e.Order[0].Supports)
	assert.Contains(t, reasons(e)["vendor.alien"], "unavailable: unsupported: needs CPU feature")
	e, err = f.ExplainCall("add_one", opmanager.CallShape{DType: tensor.F32})
	require.NoError(t, err)
	assert.Equal(t, "vendor.acme", e.Selected)
	assert.Equal(t, "unsupported: dtype f32: declared for bf16", reasons(e)["vendor.narrow"])
}
