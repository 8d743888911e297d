package opencl_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// allocated returns the bytes in blocks of device 0.
func allocated(t *testing.T, b *opencl.Backend) uint64 {
	t.Helper()
	use, err := b.MemoryUse(0)
	require.NoError(t, err)
	return use.Allocated
}

func TestAllocationFails(t *testing.T) {
	for n := range 4 {
		b := open(t)
		restore := b.Inject(cl.CreateBuffer, cl.MemObjectAllocationFailure, n, 1000)
		var blocks []unsafe.Pointer
		var failure error
		for failure == nil {
			p, err := b.Alloc(1 << 20)
			if failure = err; err == nil {
				blocks = append(blocks, p)
			}
		}
		restore()
		assert.Len(t, blocks, n)
		require.ErrorIs(t, failure, device.ErrOutOfMemory)
		for _, part := range []string{"clCreateBuffer", "CL_MEM_OBJECT_ALLOCATION_FAILURE", "opencl:0", "1048576 bytes were asked for", "are allocated", "use a smaller batch"} {
			assert.ErrorContains(t, failure, part)
		}
		assert.Equal(t, uint64(n)<<20, allocated(t, b))
		p, err := b.Alloc(1 << 20)
		require.NoError(t, err, "the backend goes on")
		for _, p := range append(blocks, p) {
			require.NoError(t, b.Free(p))
		}
	}
}

// Memory that is kept for reuse goes back to the device before an allocation fails.
func TestAllocationTakesWhatIsKept(t *testing.T) {
	b := open(t)
	p, err := b.Alloc(8 << 20)
	require.NoError(t, err)
	require.NoError(t, b.Free(p))
	defer b.Inject(cl.CreateBuffer, cl.OutOfResources, 0, 1)()
	p, err = b.Alloc(9 << 20)
	require.NoError(t, err)
	use, err := b.MemoryUse(0)
	require.NoError(t, err)
	assert.Less(t, use.Reserved, uint64(16<<20), "the chunk that was kept is gone")
	require.NoError(t, b.Free(p))
}

func TestBlockIsNotLostWhenItCannotBeZeroed(t *testing.T) {
	b := open(t)
	restore := b.Inject(cl.EnqueueFillBuffer, cl.OutOfHostMemory, 0, 1)
	defer restore()
	_, err := b.Alloc(1 << 20)
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	assert.Zero(t, allocated(t, b))
	p, err := b.Alloc(1 << 20)
	require.NoError(t, err)
	require.NoError(t, b.Free(p))
}

func TestLaunchFails(t *testing.T) {
	b := open(t)
	k := kernelOf(t, b, 0, scale, "scale")
	x := vector(t, b, 1, 2, 3, 4)
	launch := func() error { return k.Launch(0, []int{4}, nil, opencl.Buf(x), opencl.F32(2)) }

	restore := b.Inject(cl.SetKernelArg, cl.InvalidValue, 1, 1)
	err := launch()
	restore()
	require.Error(t, err)
	assert.NotErrorIs(t, err, device.ErrLost)

	restore = b.Inject(cl.EnqueueNDRangeKernel, cl.DeviceNotAvailable, 0, 1)
	err = launch()
	restore()
	require.ErrorIs(t, err, device.ErrLost)
	assert.NotErrorIs(t, err, device.ErrOutOfMemory)
	assert.ErrorContains(t, err, "resume from the last checkpoint")
	var failure *opencl.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, "clEnqueueNDRangeKernel", failure.Call)
	assert.Equal(t, "CL_DEVICE_NOT_AVAILABLE", failure.Name)
	assert.Contains(t, failure.Device, "opencl:0")

	require.NoError(t, launch())
	assert.Equal(t, []float64{2, 4, 6, 8}, x.Float64s(), "exactly one launch ran, with all of its arguments")
}

func TestEventAndStreamFail(t *testing.T) {
	b := open(t)
	e, err := b.CreateEvent()
	require.NoError(t, err)
	restore := b.Inject(cl.EnqueueMarkerWithWaitList, cl.OutOfHostMemory, 0, 1)
	require.Error(t, b.RecordEvent(e, 0))
	restore()
	require.ErrorContains(t, b.SyncEvent(e), "never recorded")
	restore = b.Inject(cl.CreateCommandQueue, cl.OutOfResources, 0, 1)
	_, err = b.CreateStream()
	restore()
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	restore = b.Inject(cl.EnqueueMarkerWithWaitList, cl.OutOfResources, 1, 1)
	require.Error(t, b.Submit(0, func() { t.Error("the function of a failed Submit runs") }))
	restore()
	require.NoError(t, b.RecordEvent(e, 0))
	require.NoError(t, b.SyncEvent(e))
	require.NoError(t, b.FreeEvent(e))
}

func TestContextFails(t *testing.T) {
	b := open(t)
	defer b.Inject(cl.CreateContext, cl.DeviceNotAvailable, 0, 1)()
	_, err := b.Alloc(64)
	require.ErrorIs(t, err, device.ErrLost)
}

func TestCopyFails(t *testing.T) {
	b := open(t)
	x := vector(t, b, 1, 2)
	restore := b.Inject(cl.EnqueueReadBuffer, cl.OutOfResources, 0, 1)
	err := b.CopyOut(make([]byte, 8), x.Pointer(), 0)
	restore()
	require.ErrorContains(t, err, "clEnqueueReadBuffer")
	for _, err := range []error{
		b.CopyOut(make([]byte, 3<<20), x.Pointer(), 0),
		b.CopyIn(unsafe.Pointer(new(int)), make([]byte, 8), 0),
		b.CopyOn(x.Pointer(), unsafe.Pointer(new(int)), 8, 0),
		b.Zero(x.Pointer(), 3<<20, 0),
		b.CopyIn(x.Pointer(), make([]byte, 8), 4),
	} {
		assert.Error(t, err)
	}
	assert.Equal(t, []float64{1, 2}, x.Float64s())
}

// A copy that its caller does not wait for fails like others when it cannot be queued.
func TestQueuedCopyFails(t *testing.T) {
	b := open(t)
	x := vector(t, b, 1, 2)
	for _, streams := range []int{0, 1} {
		if streams > 0 {
			s, err := b.CreateStream()
			require.NoError(t, err)
			defer func() { assert.NoError(t, b.FreeStream(s)) }()
		}
		restore := b.Inject(cl.EnqueueWriteBuffer, cl.OutOfResources, 0, 1)
		err := b.CopyIn(x.Pointer(), make([]byte, 8), 0)
		restore()
		require.ErrorContains(t, err, "clEnqueueWriteBuffer")
		assert.ErrorContains(t, err, "8 bytes")
		restore = b.Inject(cl.EnqueueReadBuffer, cl.OutOfResources, 0, 1)
		_, err = b.ReadLater(x.Pointer(), 8, 0)
		restore()
		require.ErrorContains(t, err, "clEnqueueReadBuffer")
		wait, err := b.ReadLater(x.Pointer(), 8, 0)
		require.NoError(t, err)
		restore = b.Inject(cl.WaitForEvents, cl.OutOfResources, 0, 1)
		_, err = wait()
		restore()
		require.ErrorContains(t, err, "clWaitForEvents")
		_, err = b.ReadLater(x.Pointer(), 3<<20, 0)
		require.ErrorContains(t, err, "go beyond the end")
		assert.Equal(t, []float64{1, 2}, x.Float64s())
	}
}

func TestBuildFails(t *testing.T) {
	b := open(t)
	d, err := b.Of(0)
	require.NoError(t, err)
	_, err = d.Program("broken", "\n\n__kernel void f() { nonsense; }\n", "-DX=1")
	var failure *opencl.BuildError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, "broken", failure.Program)
	assert.Contains(t, failure.Options, "-DX=1")
	assert.Contains(t, failure.Log, "nonsense")
	assert.Contains(t, failure.Log, ":3:", "the line in the source that was given")
	_, err = d.Program("very broken", strings.Repeat("nonsense;\n", 50))
	require.ErrorAs(t, err, &failure)
	assert.Greater(t, strings.Count(failure.Log, "\n"), 40)
	assert.Equal(t, 21, strings.Count(err.Error(), "\n"))
	assert.Regexp(t, `\nand \d+ more lines$`, err.Error())
	p, err := d.Program("good", scale)
	require.NoError(t, err)
	_, err = p.Kernel("scala")
	require.ErrorContains(t, err, "CL_INVALID_KERNEL_NAME")
}

func TestMisuse(t *testing.T) {
	b := open(t)
	k := kernelOf(t, b, 0, scale, "scale")
	x := vector(t, b, 1, 2)
	tests := []struct {
		name          string
		global, local []int
		args          []opencl.Arg
		want          string
	}{
		{"no dimension", nil, nil, []opencl.Arg{opencl.Buf(x), opencl.F32(1)}, "want 1 to 3"},
		{"other dimensions", []int{2}, []int{1, 1}, []opencl.Arg{opencl.Buf(x), opencl.F32(1)}, "the same for both"},
		{"too few", []int{2}, nil, []opencl.Arg{opencl.Buf(x)}, "1 arguments fill 2 parameters: the kernel has 3"},
		{"too many", []int{2}, nil, []opencl.Arg{opencl.Buf(x), opencl.F32(1), opencl.I32(1)}, "too many"},
		{"empty", []int{2}, nil, []opencl.Arg{opencl.Buf(x), {}}, "argument 1 is empty"},
		{"wrong size", []int{2}, nil, []opencl.Arg{opencl.Buf(x), opencl.F64(1)}, "CL_INVALID_ARG_SIZE"},
		{"memory of the host", []int{2}, nil, []opencl.Arg{opencl.Buf(onHost(t, 1, 2)), opencl.F32(1)}, "want memory of opencl:0"},
		{"group that does not divide", []int{3}, []int{2}, []opencl.Arg{opencl.Buf(x), opencl.F32(1)}, "launch scale of test over [3] in groups of [2]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, k.Launch(0, tt.global, tt.local, tt.args...), tt.want)
		})
	}
	require.NoError(t, k.Launch(0, []int{0}, nil, opencl.Buf(x), opencl.F32(5)), "nothing to do")
	assert.Equal(t, []float64{1, 2}, x.Float64s())
}

func TestClosed(t *testing.T) {
	b := open(t)
	p, err := b.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, b.Free(p))
	require.NoError(t, b.Close())
	_, err = b.Alloc(64)
	require.ErrorIs(t, err, device.ErrClosed)
	require.ErrorIs(t, b.Usable(), device.ErrClosed)
	_, err = b.CreateStream()
	require.ErrorIs(t, err, device.ErrClosed)
	_, err = b.CreateEvent()
	require.ErrorIs(t, err, device.ErrClosed)
	d, err := b.Of(0)
	require.NoError(t, err)
	_, err = d.Program("scale", scale)
	require.ErrorIs(t, err, device.ErrClosed)
}

// What is still allocated when a backend is closed is reported, and goes back when it is freed.
func TestCloseWithBlocks(t *testing.T) {
	b := opencl.New(opencl.Options{})
	if err := b.Usable(); err != nil {
		t.Skip(err)
	}
	p, err := b.Alloc(100)
	require.NoError(t, err)
	require.ErrorContains(t, b.Close(), "still allocated: 100 bytes")
	require.NoError(t, b.Free(p))
	use, err := b.MemoryUse(0)
	require.NoError(t, err)
	assert.Zero(t, use.Allocated)
	assert.Zero(t, use.Reserved)
	require.Error(t, b.Free(p))
}

func TestWithoutLibrary(t *testing.T) {
	b := opencl.New(opencl.Options{Files: []string{"/nowhere/libOpenCL.so.1"}})
	err := b.Usable()
	require.ErrorContains(t, err, "/nowhere/libOpenCL.so.1")
	assert.ErrorContains(t, err, "apt install pocl-opencl-icd")
	_, err = b.Alloc(64)
	require.Error(t, err)
	require.NoError(t, b.Close())
}
