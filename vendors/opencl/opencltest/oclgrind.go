package opencltest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// drivers are where Debian's package has the driver.
const drivers = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"

// Oclgrind runs tests of the calling package, those that a pattern of -run selects, in a process
// whose only device is Oclgrind's. It fails if a test fails there or if Oclgrind reports a race, an
// access outside of memory objects or a wrong call of OpenCL. The test is skipped on a machine
// without Oclgrind.
//
// Oclgrind's search for reads of memory that was never written is left out. In its release 21.10 it
// ends kernels with the instruction freeze, which its compiler makes, and those that call a
// function with a pointer to private memory, such as sincos; without optimisation it reports sums
// that were written; and it ends the process when memory is written after a kernel has run. The
// scratch memory of Backend is filled with NaNs instead.
func Oclgrind(t *testing.T, pattern string) {
	if _, err := os.Stat(drivers); err != nil {
		t.Skipf("there is no Oclgrind: %v; apt install oclgrind", err)
	}
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "oclgrind.icd"), []byte(drivers+"\n"), 0o644))
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run="+pattern, "-test.v")
	cmd.Env = append(os.Environ(), "OCL_ICD_VENDORS="+folder, "OCLGRIND_DATA_RACES=1", "OCLGRIND_CHECK_API=1", "OCLGRIND_LOG="+log)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS", "tests must run in Oclgrind: %s", out)
	require.NotContains(t, string(out), "there is no OpenCL device", "tests must run in Oclgrind: %s", out)
	found, err := os.ReadFile(log)
	require.NoError(t, err)
	if found = bytes.TrimSpace(found); len(found) > 0 {
		t.Fatalf("Oclgrind reports:\n%s", shorten(string(found)))
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
