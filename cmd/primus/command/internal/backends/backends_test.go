package backends_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBackendsList(t *testing.T) {
	tree := t.TempDir()
	info := filepath.Join(tree, "megatron", "core", "package_info.py")
	require.NoError(t, os.MkdirAll(filepath.Dir(info), 0o755))
	require.NoError(t, os.WriteFile(info, []byte("MAJOR = 0\nMINOR = 16\nPATCH = 0\nPRE_RELEASE = 'rc0'\n"), 0o644))
	t.Setenv("BACKEND_PATH", tree)
	got := commandtest.Run(t, "backends", "list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var rows []struct {
		Framework, Version, Path, Problem string
		Trains                            bool
		Stages                            []string
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	names := []string{}
	for _, r := range rows {
		names = append(names, r.Framework)
		switch r.Framework {
		case "native", "dummy":
			assert.True(t, r.Trains)
			assert.Empty(t, r.Problem)
		case "megatron":
			assert.True(t, r.Trains)
			assert.Equal(t, "0.16.0rc0", r.Version)
			assert.Equal(t, tree, r.Path)
		}
	}
	assert.Equal(t, []string{"dummy", "maxdiffusion", "maxtext", "megatron", "megatron_bridge", "native", "torchtitan"}, names)
	t.Setenv("BACKEND_PATH", filepath.Join(tree, "gone"))
	got = commandtest.Run(t, "backends", "list")
	require.Zero(t, got.Code)
	assert.Contains(t, got.Out, "BACKEND_PATH: ")
}
