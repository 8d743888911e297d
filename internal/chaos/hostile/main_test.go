//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(command.Main(os.Args[1:], command.StandardStreams()))
	}
	os.Exit(m.Run())
}

// TestHostileLibraries is the short form of make chaos-plugins.
func TestHostileLibraries(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: ", err)
	}
	var out, progress strings.Builder
	err := run(t.Context(), []string{"-every", "7", "-o", "md"}, &out, &progress)
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

// The table of docs/plugins.md is the table of this matrix, with every attack kept.
func TestTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/plugins.md")
	require.NoError(t, err)
	var want strings.Builder
	table(&want, "md", attacks(), make([]error, len(attacks())))
	assert.Contains(t, string(page), want.String(), "make chaos-plugins ARGS='-o md' prints it")
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o json": `got "json", want text or md`, "-every 0": "want a number from 1", "more": `unexpected argument "more"`,
	} {
		var out, progress strings.Builder
		assert.ErrorContains(t, run(t.Context(), strings.Fields(args), &out, &progress), want)
		assert.Empty(t, out.String())
	}
}
