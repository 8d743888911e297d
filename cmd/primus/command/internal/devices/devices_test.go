package devices_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/devices"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without a library the list has the processor, and says what was looked for.
func TestListWithoutLibrary(t *testing.T) {
	got := commandtest.Run(t, "devices", "list")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "cpu:0")
	assert.Contains(t, got.Out, "OPENCL: opencl: loader: open: "+commandtest.Absent)
	assert.Contains(t, got.Out, "apt install")
	got = commandtest.Run(t, "devices", "list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var rows []devices.Row
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	require.Len(t, rows, 2)
	assert.Equal(t, "cpu:0", rows[0].Device)
	assert.NotEmpty(t, rows[0].Name)
	assert.Positive(t, rows[0].Units)
	assert.Empty(t, rows[0].Problem)
	assert.Empty(t, rows[1].Device)
	assert.NotEmpty(t, rows[1].Problem)
}

// In a child, because a driver keeps threads for the life of its process.
func TestListOfDriver(t *testing.T) {
	out, err := commandtest.Child(t.Context(), []string{"PRIMUS_OPENCL=", "POCL_DEVICES=pthread pthread"}, "devices", "list", "-o", "json").Output()
	require.NoError(t, err)
	var rows []devices.Row
	require.NoError(t, json.Unmarshal(out, &rows))
	if rows[1].Device == "" {
		t.Skip(rows[1].Problem)
	}
	for i, r := range rows[1:] {
		require.NotNil(t, r.OpenCL)
		assert.Equal(t, i, r.OpenCL.Index)
		assert.NotEmpty(t, r.Name)
		assert.NotEmpty(t, r.Driver)
		assert.NotEmpty(t, r.Library)
		assert.Positive(t, r.Memory)
		assert.Positive(t, r.Units)
		assert.Positive(t, r.OpenCL.MaxWorkGroup)
	}
}

// What earlier runs measured on a device is below the list.
func TestListOfChoices(t *testing.T) {
	options := opencl.Options{Cache: t.TempDir()}
	list := func(choose func(*opencl.Device)) string {
		b := opencl.New(options)
		if err := b.Usable(); err != nil {
			t.Skip(err)
		}
		defer func() { require.NoError(t, b.Close()) }()
		d, err := b.Of(0)
		require.NoError(t, err)
		choose(d)
		var out strings.Builder
		require.NoError(t, devices.Show(&out, b))
		return out.String()
	}
	nothing := func(*opencl.Device) {}
	assert.NotContains(t, list(nothing), "tiles")
	list(func(d *opencl.Device) {
		d.Choose("tiles of products", "8×32")
		d.Choose("rows", "many")
	})
	assert.Contains(t, list(nothing), "\n\nopencl:0: rows: many\nopencl:0: tiles of products: 8×32\n")
}
