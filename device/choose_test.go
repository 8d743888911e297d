package device_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// several is a backend with three devices.
type several struct {
	*probe
	chosen int
}

func (s *several) SetDefaultDevice(index int) error {
	if index < 0 || index > 2 {
		return errors.New("want an index from 0 to 2")
	}
	s.chosen = index
	return nil
}

// wrapper is a backend around another one.
type wrapper struct{ device.Backend }

func (w wrapper) Unwrap() device.Backend { return w.Backend }

func TestSelectByIndex(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, value string
		want        int
		wantErr     error
		text        string
	}{
		{name: "none", value: "CHIP", want: 1},
		{name: "index", value: "chip:2", want: 2},
		{name: "space", value: " Chip : 0 ", want: 0},
		{name: "too large", value: "CHIP:3", want: 1, wantErr: device.ErrNoDevice, text: `device: no such device: STEPMESH_BACKEND="CHIP:3": want an index from 0 to 2`},
		{name: "no number", value: "CHIP:one", want: 1, wantErr: device.ErrNoDevice, text: `device: no such device: STEPMESH_BACKEND="CHIP:one": the index of the device is "one", want a number such as 0`},
		{name: "no backend", value: "CHOP:1", want: 1, wantErr: device.ErrNotFound, text: `device: no such backend: STEPMESH_BACKEND="CHOP:1"; registered: CHIP (usable), ONE (usable); did you mean "CHIP"?`},
		{name: "the only device", value: "ONE:0", want: 1},
		{name: "beyond the only device", value: "ONE:1", want: 1, wantErr: device.ErrNoDevice, text: `device: no such device: STEPMESH_BACKEND="ONE:1": there is no device 1: ONE has only device 0`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			chip := &several{probe: ready("CHIP"), chosen: 1}
			reg := device.NewRegistry()
			require.NoError(t, reg.Register("CHIP", wrapper{chip}))
			require.NoError(t, reg.Register("ONE", ready("ONE")))
			_, err := device.Select(reg, environment(device.EnvBackend, tt.value))
			if tt.wantErr == nil {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.text)
				require.ErrorIs(t, err, tt.wantErr)
			}
			assert.Equal(t, tt.want, chip.chosen)
		})
	}
}

func TestAs(t *testing.T) {
	t.Parallel()
	chip := &several{probe: ready("CHIP")}
	got, ok := device.As[device.Numbered](wrapper{wrapper{chip}})
	assert.True(t, ok)
	assert.Same(t, chip, got)
	_, ok = device.As[device.Numbered](wrapper{ready("CHIP")})
	assert.False(t, ok)
	_, ok = device.As[device.Numbered](nil)
	assert.False(t, ok)
}
