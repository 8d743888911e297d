package opencl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/opencl"
)

// Choices are kept for later processes, and those that two processes make at a time are both kept.
func TestChoices(t *testing.T) {
	folder := t.TempDir()
	deviceOf := func(options opencl.Options) *opencl.Device {
		b := opencl.New(options)
		if err := b.Usable(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		d, err := b.Of(0)
		require.NoError(t, err)
		return d
	}
	one, other := deviceOf(opencl.Options{Cache: folder}), deviceOf(opencl.Options{Cache: folder})
	assert.Empty(t, one.Choice("tiles"))
	assert.Empty(t, other.Choice("rows"))
	one.Choose("tiles", "large")
	other.Choose("rows", "many")
	assert.Equal(t, "large", one.Choice("tiles"))
	want := map[string]string{"tiles": "large", "rows": "many"}
	assert.Equal(t, want, other.Choices())
	assert.Equal(t, want, deviceOf(opencl.Options{Cache: folder}).Choices())

	none := deviceOf(opencl.Options{})
	assert.False(t, none.Measures())
	assert.True(t, one.Measures())
	none.Choose("tiles", "small")
	assert.Equal(t, "small", none.Choice("tiles"))
}
