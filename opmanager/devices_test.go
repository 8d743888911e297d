package opmanager_test

import (
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// farManager is a Manager with an impl of add_one and of the pair for far devices, beside those of
// newManager for host memory.
func farManager(t *testing.T, far *fardevice.Backend, edit func(*oppolicy.Policy)) (fixtureManager, *scripted) {
	t.Helper()
	f := newManager(t, edit, opmanager.Settings{})
	impl := &scripted{do: func(a addArgs) error {
		in, out := far.Floats(a.In), far.Floats(a.Out)
		for i := range in {
			out[i] = in[i] + 1
		}
		return nil
	}}
	src := opregistry.Source{Name: "far"}
	for _, op := range []opregistry.Handle{addOne, pairFwd, pairBwd} {
		src.Impls = append(src.Impls, opregistry.Impl{
			Op: op, ID: "vendor.far", Kind: opregistry.KindVendor, Vendor: "far", Priority: 100, Run: runOf(op, impl.run),
			Support: opregistry.Support{Devices: []device.Type{fardevice.Type}},
		})
	}
	require.NoError(t, f.registry.Register(src))
	return f, impl
}

// farArgs are arguments on a far device.
func farArgs(t *testing.T, far *fardevice.Backend) addArgs {
	t.Helper()
	in, err := tensor.New(far, tensor.F32, 3)
	require.NoError(t, err)
	out, err := tensor.New(far, tensor.F32, 3)
	require.NoError(t, err)
	copy(far.Floats(in), []float32{1, 2, 3})
	return addArgs{In: in, Out: out}
}

// The operands decide which impls are candidates, before the policy ranks them.
func TestOperandsDecideWhoServes(t *testing.T) {
	far := fardevice.New(0)
	f, impl := farManager(t, far, func(p *oppolicy.Policy) { require.NoError(t, p.SetPrefer("flagos", "test")) })
	bound := opmanager.MustBind(f.Manager, addOne)
	for range 3 {
		a := farArgs(t, far)
		require.NoError(t, bound.Call(a))
		assert.Equal(t, []float32{2, 3, 4}, far.Floats(a.Out))
		b := newArgs(t)
		require.NoError(t, bound.Call(b))
		assert.Equal(t, []float32{2, 3, 4}, tensor.Data[float32](b.Out))
	}
	assert.Equal(t, []int{3, 3}, []int{impl.calls, f.flagos.calls})
	assert.Zero(t, count[opmanager.Failed](f.events), "an impl for another device is not tried")
	assert.Zero(t, count[opmanager.FellBack](f.events))
	assert.Zero(t, far.Copies())
}

func TestCallsOnADeviceAllocateNothing(t *testing.T) {
	far := fardevice.New(0)
	f, impl := farManager(t, far, nil)
	impl.do = func(addArgs) error { return nil }
	bound, a := opmanager.MustBind(f.Manager, addOne), farArgs(t, far)
	require.NoError(t, bound.Call(a))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = bound.Call(a) }))
}

func TestExplainSaysWhatServesOnDevices(t *testing.T) {
	f, _ := farManager(t, fardevice.New(0), nil)
	e, err := f.Explain("add_one")
	require.NoError(t, err)
	assert.Equal(t, "vendor.acme", e.Selected)
	name := fardevice.Type.String()
	assert.Equal(t, []opmanager.DeviceChoice{{Device: name, Selected: "vendor.far", Order: []string{"vendor.far"}}}, e.Devices)
	assert.Contains(t, e.String(), "\non "+name+": vendor.far\n")
	assert.Contains(t, e.String(), "operands on cpu: declared for "+name)

	next := f.Policy()
	next.Deny = []string{"far"}
	changes, _ := f.Preview(next)
	require.Len(t, changes, 3)
	assert.Equal(t, opmanager.Change{
		Op: "add_one", Device: name, From: "vendor.far", Places: changes[0].Places,
		Reason: "on " + name + ": no impl serves operands there; not vendor.far: vendor far is denied by the program",
	}, changes[0])

	var devices []string
	for _, o := range f.Manifest().Ops {
		devices = append(devices, o.Op+" "+o.Device+" "+o.Impl)
	}
	assert.Contains(t, devices, "add_one "+name+" vendor.far")
	assert.Contains(t, devices, "add_one  vendor.acme")
	host := newManager(t, nil, opmanager.Settings{})
	assert.NoError(t, host.Manifest().Check(f.Manifest()), "a manifest says nothing about devices that it does not name")
	assert.NoError(t, f.Manifest().Check(host.Manifest()))
}

func TestSupportOfNoDevice(t *testing.T) {
	f := newManager(t, nil, opmanager.Settings{})
	err := f.registry.Register(opregistry.Source{Name: "none", Impls: []opregistry.Impl{{
		Op: addOne, ID: "vendor.none", Kind: opregistry.KindVendor, Vendor: "none", Run: runOf(addOne, (&scripted{}).run),
		Support: opregistry.Support{Devices: []device.Type{}},
	}}})
	assert.ErrorContains(t, err, "want types of devices, or nil for host memory")
}
