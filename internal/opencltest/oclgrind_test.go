package opencltest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/tensor"
)

// kernels read memory that nothing has written, except for the one named written.
const kernels = `
__kernel void written(__global float *out, ulong out_at, __global float *scratch, ulong scratch_at) {
  __local float shared[4];
  float x[4];
  const uint i = get_local_id(0);
  for (uint j = 0; j < 4; j++)
    x[j] = j;
  shared[i] = x[i];
  scratch[scratch_at + i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[out_at + i] = shared[3 - i] + scratch[scratch_at + i];
}
__kernel void global_memory(__global float *out, ulong out_at, __global float *scratch, ulong scratch_at) {
  const uint i = get_local_id(0);
  if (i < 3)
    scratch[scratch_at + i] = i;
  out[out_at + i] = scratch[scratch_at + i];
}
__kernel void local_memory(__global float *out, ulong out_at, __global float *scratch, ulong scratch_at) {
  __local float shared[5];
  const uint i = get_local_id(0);
  shared[i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[out_at + i] = shared[i + 1];
}
__kernel void private_memory(__global float *out, ulong out_at, __global float *scratch, ulong scratch_at) {
  float x[4];
  for (uint j = 0; j < 3; j++)
    x[j] = j;
  out[out_at + get_local_id(0)] = x[get_local_id(0)];
}
__kernel void branch(__global float *out, ulong out_at, __global float *scratch, ulong scratch_at) {
  out[out_at + get_local_id(0)] = 0;
  if (scratch[scratch_at] > 1)
    out[out_at] = 1;
}
`

// TestKernels runs the kernels. What they compute is not looked at.
func TestKernels(t *testing.T) {
	for _, name := range []string{"written", "global_memory", "local_memory", "private_memory", "branch"} {
		t.Run(name, func(t *testing.T) {
			b := Backend(t)
			d, err := b.Of(0)
			require.NoError(t, err)
			p, err := d.Program("reads", kernels)
			require.NoError(t, err)
			k, err := p.Kernel(name)
			require.NoError(t, err)
			out, err := tensor.New(b, tensor.F32, 4)
			require.NoError(t, err)
			defer func() { require.NoError(t, out.Release()) }()
			for range 2 { // the second time, scratch has been used
				scratch, err := d.Scratch(device.DefaultStream, 4)
				require.NoError(t, err)
				require.NoError(t, k.Launch(device.DefaultStream, []int{4}, []int{4}, opencl.Buf(out), opencl.Buf(scratch.At(0))))
				scratch.Release()
				_ = out.Float64s() // waits
			}
		})
	}
}

func TestUninitialized(t *testing.T) {
	for name, want := range map[string]string{
		"written":        "",
		"global_memory":  "Uninitialized value written to global memory",
		"local_memory":   "Uninitialized value written to global memory",
		"private_memory": "Uninitialized value written to global memory",
		"branch":         "Controlflow depends on uninitialized value",
	} {
		t.Run(name, func(t *testing.T) {
			report := uninitialized(t, "^TestKernels$/^"+name+"$")
			if want == "" {
				assert.Empty(t, report)
			} else {
				assert.Contains(t, report, want)
			}
		})
	}
}
