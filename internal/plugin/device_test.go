package plugin_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// openDevice opens device.c and returns its impls by id.
func openDevice(t *testing.T, set plugin.Settings, flags ...string) map[string]opregistry.Impl {
	t.Helper()
	set.Ops = fixtureOps
	p, err := plugin.Open(compile(t, "device.c", flags...), set)
	require.NoError(t, err)
	return implsOf(p.Source())
}

// far returns a tensor on a far device whose first element is not the first of its block.
func far(t *testing.T, b *fardevice.Backend) *tensor.Tensor {
	t.Helper()
	whole, err := tensor.New(b, tensor.F32, 3, 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, whole.Release()) })
	part, err := whole.Slice(0, 1, 2)
	require.NoError(t, err)
	return part
}

func runProbe(impl opregistry.Impl, a probe) error {
	return impl.Run.(opregistry.Func[probe])(opregistry.NewExec(nil, 7), a)
}

// An op gets the memory objects of the device that it declares, and handles to queue work with.
func TestOnDevice(t *testing.T) {
	t.Parallel()
	impls := openDevice(t, plugin.Settings{})
	b := fardevice.New(3)
	out := far(t, b)
	for _, id := range []string{"acme.far", "acme.both"} {
		require.NoError(t, out.SetFloat64s(make([]float64, 4)))
		require.NoError(t, runProbe(impls[id], probe{Out: out}))
		assert.Equal(t, []float64{12, 100, 203, 307}, out.Float64s(), id)
	}
	require.NoError(t, runProbe(impls["acme.workspace"], probe{Out: out, Mode: 1000}))
	assert.Equal(t, float64(1000), out.Float64s()[0])
	assert.Equal(t, 1, b.Blocks(), "workspace is returned")
	require.NoError(t, runProbe(impls["acme.workspace"], probe{Out: out}))
	assert.Zero(t, out.Float64s()[0])

	host := floats(t, make([]float32, 4), 4)
	require.NoError(t, runProbe(impls["acme.both"], probe{Out: host}))
	assert.Equal(t, []float64{1, 0, 0, 0}, host.Float64s(), "no handles on the CPU")
	require.NoError(t, runProbe(impls["acme.workspace"], probe{Out: host, Mode: 64}))
	assert.Equal(t, float64(64), host.Float64s()[0])
}

func TestDeclinesOfDevices(t *testing.T) {
	t.Parallel()
	impls := openDevice(t, plugin.Settings{})
	out, host := far(t, fardevice.New(0)), floats(t, make([]float32, 4), 4)
	other := far(t, fardevice.New(1))
	for _, tt := range []struct {
		impl string
		args probe
		want string
	}{
		{"acme.far", probe{Out: host}, "operands on cpu: declared for device_type(12)"},
		{"acme.far", probe{}, "operands on cpu: declared for device_type(12)"},
		{"acme.cpu", probe{Out: out}, "operands on device_type(12): declared for cpu"},
		{"acme.old", probe{Out: out}, "operands on device_type(12): declared for cpu"},
		{"acme.far", probe{Out: out, Mode: 1}, "no handles"},
	} {
		err := runProbe(impls[tt.impl], tt.args)
		require.ErrorIs(t, err, opregistry.ErrUnsupported)
		assert.EqualError(t, err, "unsupported: "+tt.want)
	}
	assert.EqualError(t, runProbe(impls["acme.fails"], probe{Out: out}), "the queue is full")
	assert.Equal(t, make([]float64, 4), out.Float64s(), "nothing is written")

	many := impls["acme.many"].Run.(opregistry.Func[everything])
	require.NoError(t, many(newExec(), everything{In: out, Out: out, List: []*tensor.Tensor{nil, out}}))
	assert.EqualError(t, many(newExec(), everything{In: host, Out: out}), "unsupported: operands on device_type(12):0 and in host memory, want one device")
	assert.EqualError(t, many(newExec(), everything{In: out, Lists: [][]*tensor.Tensor{{other}}}), "unsupported: operands on device_type(12):0 and device_type(12):1, want one device")
}

// The registry gets what a library declares; a list with nothing but the CPU is none.
func TestDevicesOfASource(t *testing.T) {
	t.Parallel()
	impls := openDevice(t, plugin.Settings{})
	assert.Equal(t, []device.Type{12}, impls["acme.far"].Support.Devices)
	assert.Equal(t, []device.Type{device.TypeCPU, 12}, impls["acme.both"].Support.Devices)
	assert.Nil(t, impls["acme.cpu"].Support.Devices)
	assert.Nil(t, impls["acme.old"].Support.Devices, "what lies after the end of a struct is not read")
}

// An op is available if the process has one of its devices.
func TestAvailableOnDevices(t *testing.T) {
	t.Parallel()
	impls := openDevice(t, plugin.Settings{})
	require.NoError(t, impls["acme.both"].Available())
	require.EqualError(t, impls["acme.far"].Available(), "it serves operands on device_type(12), of which this process has no devices")

	find := func(device.Type) (device.Backend, error) { return nil, errors.New("no driver") }
	impls = openDevice(t, plugin.Settings{Device: find}, "-DDEVICES={12,13}", "-DN_DEVICES=2")
	require.EqualError(t, impls["acme.far"].Available(), "it serves operands on device_type(12): no driver\nit serves operands on device_type(13): no driver")

	find = func(t device.Type) (device.Backend, error) {
		if t == 13 {
			return fardevice.New(0), nil
		}
		return nil, errors.New("no driver")
	}
	impls = openDevice(t, plugin.Settings{Device: find}, "-DDEVICES={12,13}", "-DN_DEVICES=2")
	require.NoError(t, impls["acme.far"].Available())
}

func TestWrongDevices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"-DDEVICES={0}"}, `ops[0].device_types[0] of op "probe" is 0, want a number of DLPack such as PRIMUS_DEVICE_OPENCL`},
		{[]string{"-DDEVICES={-4}"}, `ops[0].device_types[0] of op "probe" is -4, want a number of DLPack`},
		{[]string{"-DDEVICES={4,65537}", "-DN_DEVICES=2"}, `ops[0].device_types[1] of op "probe" is 65537, want a number of DLPack`},
		{[]string{"-DDEVICES={4,4}", "-DN_DEVICES=2"}, `ops[0].device_types of op "probe" has opencl twice`},
		{[]string{"-DN_DEVICES=65"}, `ops[0].n_device_types of op "probe" is 65, want at most 64`},
	} {
		_, err := plugin.Open(compile(t, "device.c", tt.flags...), plugin.Settings{Ops: fixtureOps})
		assert.ErrorContains(t, err, tt.want)
	}
}
