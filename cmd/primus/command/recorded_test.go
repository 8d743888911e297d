package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recordedInputs unpacks the experiments and presets of Primus, or skips the test where they are not.
func recordedInputs(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	archive, err := filepath.Abs(filepath.Join(shared, "fixtures", "primus-config", "inputs.tar.gz"))
	require.NoError(t, err)
	if _, err := os.Stat(archive); err != nil {
		t.Skipf("recorded experiments are not here (set PRIMUS_SHARED): %v", err)
	}
	return unpack(t, archive)
}

// Every experiment of Primus whose framework is compiled in can be planned.
func TestRecordedExperiments(t *testing.T) {
	dir := recordedInputs(t)
	t.Chdir(dir)
	planned := 0
	for _, framework := range []string{"megatron", "torchtitan", "maxtext", "megatron_bridge"} {
		for _, file := range files(t, filepath.Join("examples", framework)) {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), "work_group:") {
				continue
			}
			got := primus(t, "patches", "plan", "--config", file, "--configs-dir", filepath.Join("primus", "configs"))
			if assert.Zero(t, got.code, "%s: %s", file, got.stderr) {
				assert.Contains(t, got.out, "framework "+framework+", version", file)
			}
			planned++
		}
	}
	assert.Greater(t, planned, 100)
	assert.NoDirExists(t, filepath.Join(dir, "data"))
}
