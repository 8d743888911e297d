package opencl_test

import (
	"encoding/binary"
	"math"
	"sync"
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

// kernelOf returns a kernel of a source on a device.
func kernelOf(t testing.TB, b *opencl.Backend, index int, source, name string) *opencl.Kernel {
	t.Helper()
	d, err := b.Of(index)
	require.NoError(t, err)
	p, err := d.Program("test", source)
	require.NoError(t, err)
	k, err := p.Kernel(name)
	require.NoError(t, err)
	return k
}

// onHost returns a vector in Go memory.
func onHost(t *testing.T, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(values)
	require.NoError(t, err)
	return x
}

// vector returns a vector on the current device, which is released at the end of the test.
func vector(t *testing.T, b *opencl.Backend, values ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(b, tensor.F32, len(values))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Release()) })
	require.NoError(t, x.CopyFrom(onHost(t, values...)))
	return x
}

func TestLaunch(t *testing.T) {
	b := open(t)
	infos, err := b.Devices()
	require.NoError(t, err)
	for i := range infos {
		require.NoError(t, b.SetDefaultDevice(i))
		k := kernelOf(t, b, i, scale, "scale")
		assert.Positive(t, k.MaxWorkGroup())
		x := vector(t, b, 1, 2, 3, 4, 5, 6)
		view, err := x.Slice(0, 2, 4)
		require.NoError(t, err)
		require.NoError(t, k.Launch(0, []int{2}, []int{2}, opencl.Buf(view), opencl.F32(10)))
		require.NoError(t, k.Launch(0, []int{6}, nil, opencl.Buf(x), opencl.F32(2)))
		require.NoError(t, k.Launch(0, []int{2}, []int{1}, opencl.Buf(view), opencl.F32(10)))
		assert.Equal(t, []float64{2, 4, 600, 800, 10, 12}, x.Float64s())
		dl := x.DLPack()
		assert.Equal(t, tensor.DLDevice{Type: 4, Index: int32(i)}, dl.Device)
	}
}

const kinds = `
__kernel void kinds(BUFFER(double, out), BUFFER(float, none), int i, uint u, long l, ulong ul, double d, __local int *scratch) {
	TENSOR(double, out);
	scratch[get_local_id(0)] = get_global_id(0) + get_global_size(0) * get_global_id(1);
	barrier(CLK_LOCAL_MEM_FENCE);
	if (get_global_id(0) == 0 && get_global_id(1) == 0) {
		out[0] = none_memory == 0;
		out[1] = i;
		out[2] = u;
		out[3] = l;
		out[4] = ul;
		out[5] = d;
		out[6] = scratch[get_local_size(0) - 1];
	}
}
`

func TestKindsOfArguments(t *testing.T) {
	b := open(t)
	d, err := b.Of(0)
	require.NoError(t, err)
	if !d.Info().FP64 {
		t.Skip("the device has no double")
	}
	k := kernelOf(t, b, 0, kinds, "kinds")
	x, err := tensor.New(b, tensor.F64, 7)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, k.Launch(0, []int{8, 2}, []int{4, 1}, opencl.Buf(x), opencl.Buf(nil), opencl.I32(-5), opencl.U32(1<<31), opencl.I64(-1<<40),
			opencl.U64(1<<63), opencl.F64(math.Pi), opencl.Local(4*4)))
	}
	assert.Equal(t, []float64{1, -5, 1 << 31, -1 << 40, 1 << 63, math.Pi, 3}, x.Float64s())
	require.NoError(t, x.Release())
}

func TestDevicesAreApart(t *testing.T) {
	b := twoDevices(t)
	first := vector(t, b, 1, 2)
	require.NoError(t, b.SetDefaultDevice(1))
	second := vector(t, b, 3, 4)
	assert.Equal(t, "opencl:1", second.Device().String())
	k := kernelOf(t, b, 0, scale, "scale")
	require.ErrorContains(t, k.Launch(0, []int{2}, nil, opencl.Buf(second), opencl.F32(2)), "want memory of opencl:0")
	s, err := b.CreateStream()
	require.NoError(t, err)
	require.ErrorContains(t, k.Launch(s, []int{2}, nil, opencl.Buf(first), opencl.F32(2)), "is on opencl:0")
	require.NoError(t, b.FreeStream(s))
	require.NoError(t, first.CopyFrom(second))
	assert.Equal(t, []float64{3, 4}, first.Float64s())
	require.NoError(t, b.CopyOn(second.Pointer(), first.Pointer(), 4, 0))
	use, err := b.MemoryUse(1)
	require.NoError(t, err)
	assert.Equal(t, uint64(8), use.Allocated)
	assert.Positive(t, use.Total)
}

// twoDevices returns a backend with several devices, or skips the test.
func twoDevices(t *testing.T) *opencl.Backend {
	t.Helper()
	b := open(t)
	if infos, err := b.Devices(); err != nil || len(infos) < 2 {
		t.Skip("one device only")
	}
	return b
}

func TestHammer(t *testing.T) {
	b := open(t)
	infos, err := b.Devices()
	require.NoError(t, err)
	kernels := make([]*opencl.Kernel, len(infos))
	for i := range infos {
		kernels[i] = kernelOf(t, b, i, scale, "scale")
	}
	shared, err := b.CreateStream()
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range 40 {
				x, err := tensor.New(b, tensor.F32, 100*(i%7+1))
				if !assert.NoError(t, err) {
					return
				}
				s := device.DefaultStream
				if i%2 == 1 {
					s = shared
				}
				in := make([]byte, 4*x.NumElements())
				for j := range x.NumElements() {
					binary.NativeEndian.PutUint32(in[4*j:], math.Float32bits(float32(j)))
				}
				assert.NoError(t, b.CopyIn(x.Pointer(), in, s))
				assert.NoError(t, kernels[0].Launch(s, []int{x.NumElements()}, nil, opencl.Buf(x), opencl.F32(float32(g))))
				assert.NoError(t, b.CopyOut(in, x.Pointer(), s))
				for j := range x.NumElements() {
					if got := math.Float32frombits(binary.NativeEndian.Uint32(in[4*j:])); !assert.Equal(t, float32(j*g), got) {
						return
					}
				}
				assert.NoError(t, x.Release())
			}
		})
	}
	wg.Wait()
	require.NoError(t, b.FreeStream(shared))
	assert.Zero(t, allocated(t, b))
}

func TestLaunchAllocatesNothing(t *testing.T) {
	b := open(t)
	k, x := kernelOf(t, b, 0, scale, "scale"), vector(t, b, 1, 2)
	global, local, factor := []int{2}, []int{1}, float32(0)
	launch := func() {
		factor++
		if err := k.Launch(0, global, local, opencl.Buf(x), opencl.F32(factor)); err != nil {
			t.Error(err)
		}
	}
	assert.Zero(t, testing.AllocsPerRun(200, launch))
}

func BenchmarkLaunch(b *testing.B) {
	backend := opencl.New(opencl.Options{})
	defer backend.Close()
	if err := backend.Usable(); err != nil {
		b.Skip(err)
	}
	k := kernelOf(b, backend, 0, scale, "scale")
	x, err := tensor.New(backend, tensor.F32, 64)
	require.NoError(b, err)
	global, local := []int{64}, []int{64}
	launch := func(b *testing.B, p device.Profile) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if err := k.Launch(0, global, local, opencl.Buf(x), opencl.F32(float32(i&1))); err != nil {
				b.Fatal(err)
			}
			if i%256 == 0 { // as a step that waits for its loss
				x.Float64s()
				if p != nil {
					if _, err := p.Take(); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	}
	b.Run("plain", func(b *testing.B) { launch(b, nil) })
	p, err := backend.Profile(0)
	require.NoError(b, err)
	b.Run("profiled", func(b *testing.B) { launch(b, p) })
	require.NoError(b, p.Close())
	require.NoError(b, x.Release())
}
