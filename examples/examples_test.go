// Package examples_test runs the programs of this folder.
package examples_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCustomOp(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "run", "./custom_op").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "[0.8485278 1.1313704 0.8485281 1.1313708] <nil>\n", string(out))
}

// A module of its own is not part of go test ./... of this one.
func TestOutOfTreeGo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = "outtree_go"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
