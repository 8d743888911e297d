package modes_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command runs on the nodes of a real Slurm, with variables that are on no command line.
func TestSlurm(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	commandtest.StartSlurm(t)
	t.Chdir(t.TempDir())
	t.Setenv(commandtest.RoleEnv, "primus")
	t.Setenv("TE_FL_PER_OP", "")
	got := commandtest.Run(t, "slurm", "srun", "-N", "1", "--", "direct", "--env", "TE_FL_PER_OP=generic_gemm=reference", "--", "ops", "explain", "generic_gemm")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "reference.go")
	assert.Contains(t, got.Out, "TE_FL_PER_OP")
	got = commandtest.Run(t, "slurm", "-N", "1", "--", "direct", "ops", "explain", "nothing")
	assert.Equal(t, 2, got.Code, "the code of the command: %s", got.Stderr)
}

// A command runs in a real container, whose patch scripts run there.
func TestContainer(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	settings := map[string][]string{}
	for _, o := range commandtest.StartPodman(t) {
		key, value, _ := strings.Cut(strings.TrimPrefix(o, "container."), "=")
		settings[key] = append(settings[key], value)
	}
	text := "container:\n"
	for key, values := range settings {
		if len(values) > 1 {
			slices.Sort(values)
			values = []string{"[" + strings.Join(values, ", ") + "]"}
		}
		text += "  " + key + ": " + values[0] + "\n"
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("settings.yaml", []byte(text), 0o600))
	t.Setenv(commandtest.RoleEnv, "primus")
	t.Setenv("TE_FL_PER_OP", "")
	got := commandtest.Run(t, "--config", "settings.yaml", "container", "--env", commandtest.RoleEnv, "--env", "TE_FL_PER_OP=generic_gemm=reference", "--", "ops", "explain", "generic_gemm")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "reference.go")
	assert.Contains(t, got.Out, "TE_FL_PER_OP")
}
