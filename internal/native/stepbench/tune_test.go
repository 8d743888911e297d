package stepbench_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls on a device were measured on copies in host memory, on impls that never serve them there.
func TestTuneRefusesDevices(t *testing.T) {
	t.Parallel()
	file, err := stepbench.Tune(t.Context(), stepbench.TuneSettings{Device: fardevice.New(0)})
	require.ErrorIs(t, err, stepbench.ErrDevice)
	assert.Nil(t, file)
}
