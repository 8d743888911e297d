package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is a Go program, too.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	program, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, run(&out, program, "v0.1.0"))
	var b bom
	require.NoError(t, json.Unmarshal(out.Bytes(), &b))
	assert.Equal(t, "CycloneDX", b.Format)
	assert.Equal(t, "v0.1.0", b.Metadata.Component.Version)
	names := map[string]component{}
	for _, c := range b.Components {
		names[c.Name] = c
	}
	assert.Regexp(t, `^go1\.`, names["std"].Version)
	assert.Len(t, b.Dependencies[0].DependsOn, len(b.Components))

	require.ErrorContains(t, run(&out, "main.go", "v0.1.0"), "read how main.go was built")
}

func TestModules(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "a", Version: "v1.0.0", Replace: &debug.Module{Path: "b", Version: "v2.0.0"}},
		{Path: "c", Version: "v3.0.0", Sum: "h1:x"},
	}}
	modules := billOf(info, "v0.1.0").Components[1:]
	assert.Equal(t, "pkg:golang/b@v2.0.0", modules[0].PURL, "what is linked in is listed")
	assert.Empty(t, modules[0].Properties)
	assert.Equal(t, []property{{"go:sum", "h1:x"}}, modules[1].Properties)
}
