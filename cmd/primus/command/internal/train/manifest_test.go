package train_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opmanager"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Impls that are part of this module have the version of the build, by which a manifest tells
// builds apart.
func TestManifestHasTheVersionOfTheBuild(t *testing.T) {
	l := commandtest.NewLab(t)
	t.Setenv("TE_FL_PER_OP", "residual_add=reference")
	require.Zero(t, l.Train("train_iters=1").Code)
	text, err := os.ReadFile(l.Path("manifest.json"))
	require.NoError(t, err)
	var manifest opmanager.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	sources := map[string]int{}
	for _, op := range manifest.Ops {
		if op.Source == "flagos" || op.Source == "reference" {
			sources[op.Source]++
			assert.Equal(t, buildinfo.Version(), op.Version, op.Op)
		}
	}
	assert.Len(t, sources, 2)
}

func TestRequireManifest(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train().Code)
	manifest := l.Path("manifest.json")

	got := l.Train("--require-manifest", manifest, "load=none")
	require.Zero(t, got.Code, got.Stderr)
	got = l.Train("--require-manifest", manifest, "--per-op", "swiglu=reference", "load=none")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "dispatch differs, so nothing was trained")
	assert.Contains(t, got.Stderr, `op "swiglu" is served by reference.go, want default.flagos`)
	got = l.Train("--require-manifest", "none.json")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "want the manifest.json of another run")
}
