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
	allocateNothing(t, func() { _ = bound.Call(a) })
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
	changes := dryRun(f.Manager, next).Changes
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

// An op that no impl serves on a device runs on the host with copies of its operands.
func TestCallsAcrossDevices(t *testing.T) {
	far := fardevice.New(0)
	f := newManager(t, nil, opmanager.Settings{})
	bound, a := opmanager.MustBind(f.Manager, addOne), farArgs(t, far)
	for range 2 {
		require.NoError(t, bound.Call(a))
		assert.Equal(t, []float32{2, 3, 4}, far.Floats(a.Out))
	}
	assert.Equal(t, fardevice.Copies{In: 2, Out: 2, BytesIn: 24, BytesOut: 24}, far.Copies(), "only what is read goes to the host, only what is written comes back")
	var served opmanager.ImplStats
	for _, s := range f.Stats() {
		if s.CrossDevice > 0 {
			served = s
		}
	}
	assert.Equal(t, []any{"vendor.acme", uint64(2), uint64(2), uint64(48)}, []any{served.ID, served.Calls, served.CrossDevice, served.CrossDeviceBytes})
	assert.Equal(t, 2, count[opmanager.CrossedDevice](f.events))
	assert.Zero(t, count[opmanager.FellBack](f.events))

	inPlace := addArgs{In: a.Out, Out: a.Out}
	require.NoError(t, bound.Call(inPlace))
	assert.Equal(t, []float32{3, 4, 5}, far.Floats(a.Out), "views that are the same stay so")

	mixed := newArgs(t)
	mixed.In = a.Out
	require.NoError(t, bound.Call(mixed))
	assert.Equal(t, []float32{4, 5, 6}, tensor.Data[float32](mixed.Out))

	other := farArgs(t, fardevice.New(1))
	other.Out = a.Out
	require.NoError(t, bound.Call(other))
	assert.Equal(t, []float32{2, 3, 4}, far.Floats(a.Out))
}

func TestCrossDeviceError(t *testing.T) {
	far := fardevice.New(0)
	f := newManager(t, func(p *oppolicy.Policy) { require.NoError(t, p.SetCrossDevice("Error", "test")) }, opmanager.Settings{})
	err := opmanager.MustBind(f.Manager, addOne).Call(farArgs(t, far))
	assert.EqualError(t, err, `op "add_one": no impl serves operands on device_type(12):0, and the policy does not copy them to the host (cross_device=error, test)`)
	assert.Zero(t, f.vendor.calls+f.flagos.calls+f.reference.calls)
	assert.Zero(t, far.Copies())

	declining, impl := farManager(t, far, func(p *oppolicy.Policy) { p.CrossDevice = oppolicy.CrossDeviceError })
	impl.do = declines
	err = opmanager.MustBind(declining.Manager, addOne).Call(farArgs(t, far))
	assert.ErrorContains(t, err, `impl "vendor.far": unsupported: dtype f32`)
	assert.ErrorContains(t, err, `impl "vendor.acme": unsupported: operands on device_type(12): declared for cpu`)
}

// What the impls for a device decline goes to the host, whether the call is the first or not.
func TestDeclinedOnADevice(t *testing.T) {
	far := fardevice.New(0)
	f, impl := farManager(t, far, nil)
	works := impl.do
	bound := opmanager.MustBind(f.Manager, addOne)
	for i, do := range []func(addArgs) error{declines, works, declines, panics} {
		impl.do = do
		a := farArgs(t, far)
		require.NoError(t, bound.Call(a), i)
		assert.Equal(t, []float32{2, 3, 4}, far.Floats(a.Out), i)
	}
	assert.Equal(t, []int{4, 3}, []int{impl.calls, f.vendor.calls})
	assert.Equal(t, 3, count[opmanager.CrossedDevice](f.events))
}

// A backward op runs where its forward op ran, also when that was the host.
func TestFamilyAcrossDevices(t *testing.T) {
	far := fardevice.New(0)
	f, impl := farManager(t, far, nil)
	fwd, bwd := opmanager.MustBind(f.Manager, pairFwd), opmanager.MustBind(f.Manager, pairBwd)
	call := func(b *opmanager.Bound[pairArgs], saved *opregistry.Saved) error {
		a := farArgs(t, far)
		return b.Call(pairArgs{a.In, a.Out, saved})
	}
	works := impl.do
	for _, c := range []struct {
		do    func(addArgs) error
		owner string
	}{{works, "vendor.far"}, {declines, "vendor.acme"}} {
		saved := new(opregistry.Saved)
		impl.do = c.do
		require.NoError(t, call(fwd, saved))
		assert.Equal(t, c.owner, saved.Owner())
		impl.do = works
		require.NoError(t, call(bwd, saved))
	}
	assert.Equal(t, []int{3, 2}, []int{impl.calls, f.vendor.calls})

	host := newPair(t)
	host.Saved.SetOwner("vendor.far")
	assert.ErrorIs(t, bwd.Call(host), opmanager.ErrSavedState, "no host impl reads what one for a device saved")
}

// A fault in the middle leaves nothing half-written on the device.
func TestFaultsAcrossDevices(t *testing.T) {
	far := fardevice.New(0)
	f := newManager(t, nil, opmanager.Settings{})
	bound := opmanager.MustBind(f.Manager, addOne)
	a := farArgs(t, far)
	a.Out = a.In
	far.FailFrom(1)
	assert.EqualError(t, bound.Call(a), `op "add_one": copy operand "in" to the host: tensor: copy f32[3] on device_type(12):0 to the host: fardevice: the device is lost`)
	far.FailFrom(2)
	assert.ErrorContains(t, bound.Call(a), `op "add_one": copy operand "out" back to device_type(12):0`)
	far.FailFrom(0)
	assert.Equal(t, []float32{1, 2, 3}, far.Floats(a.In))
	f.vendor.do = halfWay
	f.flagos.do, f.reference.do = declines, declines
	assert.ErrorContains(t, bound.Call(a), "device lost")
	assert.Equal(t, []float32{1, 2, 3}, far.Floats(a.In))
}

// An impl for a device is verified against the reference on the host.
func TestVerifyOnADevice(t *testing.T) {
	far := fardevice.New(0)
	f, impl := farManager(t, far, func(p *oppolicy.Policy) { p.Verify = oppolicy.Verify{Fraction: 1} })
	bound := opmanager.MustBind(f.Manager, addOne)
	require.NoError(t, bound.Call(farArgs(t, far)))
	works := impl.do
	impl.do = func(a addArgs) error {
		err := works(a)
		far.Floats(a.Out)[1] = 7
		return err
	}
	require.NoError(t, bound.Call(farArgs(t, far)))
	for _, s := range f.Stats() {
		if s.ID == "vendor.far" && s.Op == "add_one" {
			assert.Equal(t, []uint64{2, 1, 0}, []uint64{s.Verify.Calls, s.Verify.Violations, s.Verify.Skipped})
		}
	}
	assert.Equal(t, 1, count[opmanager.VerificationFailed](f.events))
}
