//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostileLibraries is the short form of make chaos-plugins.
func TestHostileLibraries(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: ", err)
	}
	var out, progress strings.Builder
	err := run(t.Context(), []string{"plugins", "-every", "7", "-o", "md"}, &out, &progress)
	require.NoError(t, err, progress.String())
	t.Log("\n" + out.String())
	assert.Contains(t, out.String(), "| run | "+string(contained)+" | ")
}

// Every phase and every outcome is in the matrix, and every attack is there once.
func TestMatrix(t *testing.T) {
	t.Parallel()
	all := attacks()
	assert.GreaterOrEqual(t, len(all), 200)
	seen, outcomes := map[string]bool{}, map[outcome]int{}
	for _, a := range all {
		assert.False(t, seen[a.String()], a.String())
		seen[a.String()] = true
		outcomes[a.expected()]++
	}
	assert.Len(t, outcomes, 6)
	t.Log(len(all), outcomes)
}

// The table of docs/reference/plugins.md is the table of this matrix, with every attack kept.
func TestPluginTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/plugins.md")
	require.NoError(t, err)
	var want strings.Builder
	require.NoError(t, plaintext.WriteSections(&want, true, []plaintext.Section{pluginSection(attacks(), make([]error, len(attacks())))}))
	assert.Contains(t, string(page), want.String(), "make chaos-plugins ARGS='-o md' prints it")
}
