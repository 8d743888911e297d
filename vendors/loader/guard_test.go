package loader_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

// tiny becomes a subnormal number when it is halved.
var tiny = float32(1.2e-38)

// A guarded call returns its result and leaves the floating-point environment of its thread alone.
func TestGuard(t *testing.T) {
	lib, err := loader.Open(compile(t, "control.c"))
	require.NoError(t, err)
	assert.True(t, lib.Change().IsZero())
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	get := symbol(t, lib, "control_get")
	before := loader.Call(get)
	tests := []struct{ function, want string }{
		{"control_keep", ""},
		{"control_flush", "flushed to zero"},
		{"control_round", "rounding towards zero"},
		{"control_x87", "x87 precision of 53 bits (x87 control word 0x33f to 0x23f)"},
		{"control_direction", ""},
	}
	for _, tt := range tests {
		t.Run(tt.function, func(t *testing.T) {
			if tt.function == "control_x87" && runtime.GOARCH != "amd64" {
				t.Skip("only amd64 has an x87 unit")
			}
			var g loader.Guard
			for range 3 {
				result, change := g.Call(symbol(t, lib, tt.function), 7, 3)
				assert.EqualValues(t, 37, result)
				assert.Equal(t, tt.want == "", change.IsZero())
				if tt.want != "" {
					assert.Contains(t, change.String(), tt.want)
				}
			}
		})
	}
	assert.Equal(t, before, loader.Call(get))
	assert.NotZero(t, tiny/2)
}

// Go may continue on another thread after a call, so the thread that made the call must be restored
// within it.
func TestGuardRestoresEveryThread(t *testing.T) {
	lib, err := loader.Open(compile(t, "control.c"))
	require.NoError(t, err)
	flush, get := symbol(t, lib, "control_flush"), symbol(t, lib, "control_get")
	want := loader.Call(get)
	done := make(chan bool)
	for range 32 {
		go func() {
			same := true
			var g loader.Guard
			for range 200 {
				g.Call(flush, 0, 0)
				runtime.Gosched()
				same = same && loader.Call(get) == want && tiny/2 != 0
			}
			done <- same
		}()
	}
	for range 32 {
		assert.True(t, <-done)
	}
}

func TestOpenRestoresTheFloatingPointEnvironment(t *testing.T) {
	path := compile(t, "control.c", "-DCONSTRUCTOR")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := loader.Open(path)
	require.NoError(t, err)
	assert.NotZero(t, tiny/2)
	assert.Contains(t, lib.Change().String(), "rounding towards zero, ")
	assert.Contains(t, lib.Change().String(), "flushed to zero")
	_, change := new(loader.Guard).Call(symbol(t, lib, "control_keep"), 0, 0)
	assert.True(t, change.IsZero())
}

func symbol(t testing.TB, lib *loader.Library, name string) uintptr {
	t.Helper()
	address, err := lib.Symbol(name)
	require.NoError(t, err)
	return address
}
