package data_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program of a checkout of Primus runs once for each device, with all arguments.
func TestDiffusion(t *testing.T) {
	commandtest.Tools(t, "python3")
	t.Chdir(t.TempDir())
	got := commandtest.Run(t, "data", "diffusion-raw", "--config", "mine.yaml")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "name a checkout of it as PRIMUS_PATH")

	main := filepath.Join("Primus", "primus", "cli", "main.py")
	require.NoError(t, os.MkdirAll(filepath.Dir(main), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join("Primus", "primus", "configs"), 0o755))
	require.NoError(t, os.WriteFile(main, []byte("import os, sys\nprint(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], *sys.argv[1:])\nsys.exit(3 * ('fail' in sys.argv))\n"), 0o600))
	t.Setenv("GPUS_PER_NODE", "2")
	t.Setenv("PRIMUS_PATH", "Primus")
	got = commandtest.Run(t, "data", "diffusion-encoded", "--batch-size", "4", "--config=mine.yaml")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "0 of 2 data diffusion-encoded --batch-size 4 --config=mine.yaml\n")
	assert.Contains(t, got.Out, "1 of 2 data diffusion-encoded")
	got = commandtest.Run(t, "data", "diffusion-ingest", "fail")
	assert.Equal(t, 3, got.Code)
	assert.Contains(t, got.Stderr, "exited with 3")
}
