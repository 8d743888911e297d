package ondevice_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
)

type args struct {
	In   *tensor.Tensor     `op:"0 in read any"`
	Out  *tensor.Tensor     `op:"1 out write any"`
	List [][]*tensor.Tensor `op:"2 list"`
}

var op = opregistry.NewOp("copy", opregistry.Schema[args]{})

// source returns an impl for far devices, on a device.
func source(b device.Backend, run func(*opregistry.Exec, args) error) opregistry.Impl {
	return ondevice.Source(b, opregistry.Source{Impls: []opregistry.Impl{{
		Op: op, ID: "vendor.far", Run: opregistry.Func[args](run), Support: opregistry.Support{Devices: []device.Type{fardevice.Type}},
	}}}, nil).Impls[0]
}

func vector(t *testing.T, values ...float32) *tensor.Tensor {
	t.Helper()
	v, err := tensor.FromSlice(values)
	require.NoError(t, err)
	return v
}

// Views of one storage are views of one block of the device, and all of the storage comes back.
func TestSource(t *testing.T) {
	t.Parallel()
	b := fardevice.New(0)
	whole := vector(t, 1, 2, 3, 4, 5)
	in, err := whole.Slice(0, 1, 3)
	require.NoError(t, err)
	out, err := whole.Slice(0, 2, 4)
	require.NoError(t, err)
	listed := vector(t, 7)
	empty, err := whole.Slice(0, 1, 1)
	require.NoError(t, err)
	impl := source(b, func(_ *opregistry.Exec, a args) error {
		assert.Equal(t, device.Device{Type: fardevice.Type}, a.In.Device())
		assert.Same(t, a.In.Storage(), a.Out.Storage())
		from, to := b.At(a.In.Pointer(), 8), b.At(a.Out.Pointer(), 12)
		copy(to, from)        // the views overlap
		copy(to[8:], to[4:8]) // after the end of the view
		return a.List[0][0].CopyFrom(vector(t, 8))
	})
	assert.Nil(t, impl.Support.Devices)
	run := impl.Run.(opregistry.Func[args])
	require.NoError(t, run(opregistry.NewExec(nil, 0), args{In: in, Out: out, List: [][]*tensor.Tensor{{listed, nil, empty}}}))
	assert.Equal(t, []float64{1, 2, 2, 3, 3}, whole.Float64s())
	assert.Equal(t, []float64{8}, listed.Float64s())
	assert.Zero(t, b.Blocks(), "memory is returned")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	a := args{In: vector(t, 1), Out: vector(t, 2)}
	call := func(b device.Backend, run func(*opregistry.Exec, args) error) error {
		return source(b, run).Run.(opregistry.Func[args])(opregistry.NewExec(nil, 0), a)
	}
	failure := errors.New("no such kernel")
	b := fardevice.New(0)
	require.ErrorIs(t, call(b, func(*opregistry.Exec, args) error { return failure }), failure)
	require.Panics(t, func() { _ = call(b, func(*opregistry.Exec, args) error { panic("in a kernel") }) })
	for _, at := range []int{-1, 4} {
		var seen error
		stray := ondevice.Source(b, opregistry.Source{Impls: []opregistry.Impl{{Op: op, Run: opregistry.Func[args](func(_ *opregistry.Exec, a args) error {
			b.At(unsafe.Add(a.Out.Pointer(), at), 1)[0] = 1
			return nil
		})}}}, func(err error) { seen = err })
		err := stray.Impls[0].Run.(opregistry.Func[args])(opregistry.NewExec(nil, 0), a)
		require.EqualError(t, err, "it wrote to memory of the device next to operands of f32, at most 256 bytes away")
		assert.Equal(t, err, seen)
	}
	for n := range 4 {
		b.FailFrom(n + 1)
		require.EqualError(t, call(b, func(*opregistry.Exec, args) error { return nil }), "fardevice: the device is lost")
	}
	assert.Zero(t, b.Blocks(), "memory is returned")
	require.EqualError(t, call(cpu.New(), nil), "ondevice: the backend CPU copies nothing between its memory and that of the host")
	assert.Equal(t, []float64{2}, a.Out.Float64s())
}
