package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
)

// Every experiment of Primus whose framework is compiled in can be planned.
func TestRecordedExperiments(t *testing.T) {
	primustest.Long(t, "it compares hundreds of experiments")
	dir := commandtest.RecordedInputs(t)
	t.Chdir(dir)
	planned := 0
	for _, framework := range []string{"megatron", "torchtitan", "maxtext", "megatron_bridge"} {
		for _, file := range commandtest.Files(t, filepath.Join("examples", framework)) {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), "work_group:") {
				continue
			}
			got := commandtest.Run(t, "patches", "plan", "--config", file)
			if assert.Zero(t, got.Code, "%s: %s", file, got.Stderr) {
				assert.Contains(t, got.Out, "framework "+framework+", version", file)
			}
			planned++
		}
	}
	assert.Greater(t, planned, 100)
	assert.NoDirExists(t, filepath.Join(dir, "data"))
}
