package devicetest

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// Run checks the backends that newBackend returns against the contract. Each call of newBackend
// must return a new backend that nobody else uses.
func Run(t *testing.T, newBackend func(t *testing.T) device.Backend) {
	t.Helper()
	sections := []struct {
		name   string
		checks []check
	}{
		{"identity", identityChecks},
		{"device", deviceChecks},
		{"memory", memoryChecks},
		{"copy", copyChecks},
		{"event", eventChecks},
		{"stream", streamChecks},
		{"profile", profileChecks},
	}
	for _, section := range sections {
		t.Run(section.name, func(t *testing.T) {
			for _, c := range section.checks {
				t.Run(c.name, func(t *testing.T) { c.run(t, open(t, newBackend)) })
			}
		})
	}
}

// check is one promise of the contract.
type check struct {
	name string
	run  func(t *testing.T, b device.Backend)
}

// open returns a usable backend that is closed at the end of the test, or skips the test.
func open(t *testing.T, newBackend func(t *testing.T) device.Backend) device.Backend {
	t.Helper()
	b := newBackend(t)
	require.NotNil(t, b, "the constructor returned no backend")
	if c, ok := b.(io.Closer); ok {
		t.Cleanup(func() { assert.NoError(t, c.Close(), "the backend is closed with nothing left in it") })
	}
	if err := b.Usable(); err != nil {
		t.Skipf("backend %s is not usable here: %v", b.Name(), err)
	}
	return b
}
