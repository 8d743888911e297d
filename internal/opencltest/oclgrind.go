package opencltest

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/primustest"
)

// Where Debian's packages have the driver and the library with its plugins.
const (
	driver  = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
	plugins = "/usr/lib/*-linux-gnu*/liboclgrind-*.so"
)

//go:embed testdata/uninitialized.c
var corrections string

// Oclgrind runs tests of the calling package, those that a pattern of -run selects, in processes
// whose only device is Oclgrind's. It fails if a test fails there or if Oclgrind reports something.
// The test is skipped on a machine without Oclgrind, and under the race detector.
//
// One process looks for races, accesses outside of memory objects and wrong calls of OpenCL, the
// other one for reads of memory that was never written.
func Oclgrind(t *testing.T, pattern string) {
	primustest.Sequential(t, "Oclgrind looks at kernels")
	t.Run("races", func(t *testing.T) {
		t.Parallel()
		clean(t, oclgrind(t, pattern, "OCLGRIND_DATA_RACES=1", "OCLGRIND_CHECK_API=1"))
	})
	t.Run("uninitialized", func(t *testing.T) {
		t.Parallel()
		clean(t, uninitialized(t, pattern))
	})
}

// uninitialized runs the other process of Oclgrind, and returns what that reports: control flow,
// addresses, arguments of builtin functions, and what is stored in global or local memory, that
// depend on private, local or scratch memory that was never written. Memory of Backend.Alloc is
// zeroed, and counts as written.
//
// Work-groups have 16 work-items at most, and kernels are not optimised: Oclgrind 21.10 ends those
// with the instruction freeze, which the optimiser makes.
func uninitialized(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(plugins)
	require.NoError(t, err)
	if len(found) != 1 {
		t.Skipf("there is no library of Oclgrind: %s matches %q, want one file", plugins, found)
	}
	source := filepath.Join(t.TempDir(), "uninitialized.c")
	require.NoError(t, os.WriteFile(source, []byte(corrections), 0o644))
	library := loadertest.Library(t, "libuninitialized.so", source, "-Wl,--no-as-needed", found[0], "-ldl")
	return oclgrind(t, pattern, "OCLGRIND_UNINITIALIZED=1", "OCLGRIND_BUILD_OPTIONS=-O0", "OCLGRIND_MAX_WGSIZE=16", "LD_PRELOAD="+library)
}

// oclgrind runs tests in one process, with variables of Oclgrind in its environment, and returns
// what it reports.
func oclgrind(t *testing.T, pattern string, env ...string) string {
	t.Helper()
	if _, err := os.Stat(driver); err != nil {
		t.Skipf("there is no Oclgrind: %v; apt install oclgrind", err)
	}
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "oclgrind.icd"), []byte(driver+"\n"), 0o644))
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run="+pattern, "-test.v")
	cmd.Env = append(append(os.Environ(), "OCL_ICD_VENDORS="+folder, "OCLGRIND_LOG="+log), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS", "tests must run in Oclgrind: %s", out)
	require.NotContains(t, string(out), "there is no OpenCL device", "tests must run in Oclgrind: %s", out)
	found, err := os.ReadFile(log)
	require.NoError(t, err)
	return string(bytes.TrimSpace(found))
}

// clean requires that Oclgrind reports nothing.
func clean(t *testing.T, report string) {
	t.Helper()
	if report != "" {
		t.Fatalf("Oclgrind reports:\n%s", shorten(report))
	}
}

// shorten keeps the first lines of a report.
func shorten(s string) string {
	const most = 60
	if lines := strings.Split(s, "\n"); len(lines) > most {
		return strings.Join(lines[:most], "\n") + "\n..."
	}
	return s
}
