package opencltest

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/internal/loadertest"
)

//go:embed testdata/faulty.c
var faulty string

// Faulty is an OpenCL library that fails calls on demand, in place of that of the machine.
type Faulty struct{ path string }

// NewFaulty compiles a library that calls that of the machine. The test is skipped on a machine
// without an OpenCL device or a C compiler.
func NewFaulty(t testing.TB) *Faulty {
	t.Helper()
	b := opencl.New(opencl.Options{})
	err, machine := b.Usable(), b.Library()
	require.NoError(t, b.Close())
	if err != nil {
		t.Skipf("there is no OpenCL device: %v", err)
	}
	source := filepath.Join(t.TempDir(), "faulty.c")
	require.NoError(t, os.WriteFile(source, []byte(faulty), 0o644))
	return &Faulty{loadertest.Library(t, "libfaulty.so", source, "-Wl,--no-as-needed", machine, "-ldl")}
}

// Path returns the file of the library, for opencl.Options or PRIMUS_OPENCL.
func (f *Faulty) Path() string { return f.path }

// Backend returns a backend that uses the library and is closed at the end of the test. Its Close
// may fail after a device was lost.
func (f *Faulty) Backend(t testing.TB) *opencl.Backend {
	b := opencl.New(opencl.Options{Files: []string{f.path}})
	t.Cleanup(func() { _ = b.Close() })
	require.NoError(t, b.Usable())
	return b
}

// Fail makes calls of a function return a code of OpenCL once this many have succeeded from now on,
// so many times. The function "*" is every one that does work on the device. A build that is to
// fail fails in the compiler, with a log. Fail is called once.
func (f *Faulty) Fail(t testing.TB, function string, code, after, times int) {
	t.Helper()
	text := fmt.Sprintf("%s %d %d %d\n", function, code, after, times)
	require.NoError(t, os.WriteFile(f.path+".new", []byte(text), 0o644))
	require.NoError(t, os.Rename(f.path+".new", f.path+".fault"))
}
