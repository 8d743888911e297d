package commandtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// RecordedInputs unpacks the experiments and presets of Primus, or skips the test where they are
// not.
func RecordedInputs(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join(primustest.ModuleRoot(t), "..", "shared")
	}
	archive, err := filepath.Abs(filepath.Join(shared, "fixtures", "primus-config", "inputs.tar.gz"))
	require.NoError(t, err)
	if _, err := os.Stat(archive); err != nil {
		t.Skipf("recorded experiments are not here (set PRIMUS_SHARED): %v", err)
	}
	return primustest.Unpack(t, archive)
}
