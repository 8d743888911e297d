package opencl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

const scale = `
__kernel void scale(BUFFER(float, x), float by) {
	TENSOR(float, x);
	x[get_global_id(0)] *= by;
}
`

func TestKernel(t *testing.T) {
	b := open(t)
	infos, err := b.Devices()
	require.NoError(t, err)
	for i := range infos {
		t.Log(infos[i])
		d, err := b.Of(i)
		require.NoError(t, err)
		p, err := d.Program("scale", scale)
		require.NoError(t, err)
		k, err := p.Kernel("scale")
		require.NoError(t, err)
		require.NoError(t, b.SetDefaultDevice(i))
		x, err := tensor.New(b, tensor.F32, 100)
		require.NoError(t, err)
		host := make([]byte, 400)
		for j := range host {
			host[j] = 0x3f
		}
		require.NoError(t, b.CopyIn(x.Pointer(), host, device.DefaultStream))
		view, err := x.Slice(0, 10, 20)
		require.NoError(t, err)
		require.NoError(t, k.Launch(device.DefaultStream, []int{10}, []int{5}, opencl.Buf(view), opencl.F32(2)))
		require.NoError(t, b.CopyOut(host, x.Pointer(), device.DefaultStream))
		got, err := tensor.FromBytes(host, tensor.F32, 100)
		require.NoError(t, err)
		for j, v := range got.Float64s() {
			want := 0.7470588088035583
			if j >= 10 && j < 20 {
				want *= 2
			}
			assert.InDelta(t, want, v, 1e-7)
		}
		require.NoError(t, x.Release())
	}
}

func BenchmarkLaunch(b *testing.B) {
	backend := opencl.New(opencl.Options{})
	defer backend.Close()
	d, err := backend.Of(0)
	if err != nil {
		b.Skip(err)
	}
	p, err := d.Program("scale", scale)
	require.NoError(b, err)
	k, err := p.Kernel("scale")
	require.NoError(b, err)
	x, err := tensor.New(backend, tensor.F32, 64)
	require.NoError(b, err)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if err := k.Launch(0, []int{64}, []int{64}, opencl.Buf(x), opencl.F32(float32(i&1))); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, x.Release())
}
