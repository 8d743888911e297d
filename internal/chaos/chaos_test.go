//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	primustest.EndChildren()
	os.Exit(m.Run())
}

// TestDrills is the short form of make chaos.
func TestDrills(t *testing.T) {
	var out, progress strings.Builder
	err := run(t.Context(), []string{"-short", "-dir", t.TempDir()}, &out, &progress)
	t.Log("\n" + out.String())
	require.NoError(t, err, progress.String())
	for _, d := range drills {
		assert.Contains(t, out.String(), d.name)
	}
}

// TestTable compares the table of the docs with the drills.
func TestTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/explanation/reliability.md")
	require.NoError(t, err)
	for _, d := range drills {
		row := fmt.Sprintf("\n| %s | %s | %s | ", d.name, d.attack, d.promise)
		_, figures, found := strings.Cut(string(page), row)
		var attacks, kept int
		_, err := fmt.Sscanf(figures, "%d | %d |", &attacks, &kept)
		assert.True(t, found && err == nil && attacks > 0 && attacks == kept,
			"docs/explanation/reliability.md has no row that begins with %q and ends with equal figures: make chaos ARGS='-o md' prints it", row)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-only kil", `no drill "kil", want some of kill, signal`},
		{"-o json", `given "json", want text or md`},
		{"more", `unexpected argument "more"`},
		{"plugins -o json", `given "json", want text or md`},
		{"plugins -every 0", "want a number from 1"},
		{"plugins more", `unexpected argument "more"`},
	} {
		var out, progress strings.Builder
		assert.ErrorContains(t, run(t.Context(), strings.Fields(tt.args), &out, &progress), tt.want)
		assert.Empty(t, out.String())
	}
}

// The limit of the drill serve is a multiple of the time without hostile clients, or a time that
// nobody notices.
func TestLag(t *testing.T) {
	for _, tt := range []struct {
		was, is time.Duration
		want    float64
	}{
		{time.Second, 3 * time.Second, 1},
		{time.Second, 6 * time.Second, 2},
		{time.Millisecond, unnoticed, 1},
		{unnoticed, unnoticed, 1.0 / maxFirstLag},
	} {
		assert.InDelta(t, tt.want, lag{tt.was, tt.is}.excess(), 1e-9, "%v", tt)
	}
}
