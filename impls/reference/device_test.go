package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// accelerator declares its memory, which is the host's, to be a GPU's.
type accelerator struct{ device.Backend }

func (accelerator) Device() (device.Device, error) { return device.Device{Type: device.TypeCUDA}, nil }

func TestDeclinesDeviceMemory(t *testing.T) {
	t.Parallel()
	x, err := tensor.New(accelerator{cpu.New()}, tensor.F32, 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Release()) })
	y := f32(t, 1, 2)
	err = function(t, norm.ResidualAdd)(nil, norm.ResidualAddArgs{A: y, B: x, Output: y})
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, `operand "b" lies on cuda:0`)
	want(t, y, 1, 2)
}
