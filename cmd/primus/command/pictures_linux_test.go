package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPictures makes the pictures of the README with their script, from a shorter run.
func TestPictures(t *testing.T) {
	primustest.Long(t, "it trains for a picture")
	t.Parallel()
	commandtest.Tools(t, "bash", "curl", "node", "chromium")
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(root, "bin", "site-env", "ready")); err != nil {
		t.Skip("make site-env installs what takes pictures")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "scripts/pictures.sh", dir)
	cmd.Dir = root
	cmd.Env = append(commandtest.Child(t.Context(), nil).Env, "PRIMUS="+self, "STEPS=24")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"page.png", "loss.png"} {
		made, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		kept, err := os.Stat(filepath.Join(root, "docs", "images", name))
		require.NoError(t, err)
		assert.Greater(t, made.Size(), kept.Size()/4, "%s shows nothing", name)
	}
}
