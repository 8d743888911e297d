package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/goldentest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fence     = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```\n")
	fileMark  = regexp.MustCompile(`^# (\S+\.(?:yaml|json|toml))\n`)
	clockTime = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `)
)

// TestConfigurationGuide writes the files that docs/configuration.md shows, runs its commands in turn and compares what they
// print; -update rewrites the guide.
func TestConfigurationGuide(t *testing.T) {
	guide, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "docs", "configuration.md"))
	require.NoError(t, err)
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	commands := 0
	rewritten := fence.ReplaceAllStringFunc(string(text), func(block string) string {
		parts := fence.FindStringSubmatch(block)
		kind, body := parts[1], parts[2]
		if mark := fileMark.FindStringSubmatch(body); mark != nil {
			require.NoError(t, os.MkdirAll(filepath.Dir(mark[1]), 0o755))
			require.NoError(t, os.WriteFile(mark[1], []byte(body), 0o644))
		}
		if kind != "console" {
			return block
		}
		var out strings.Builder
		for line := range strings.Lines(body) {
			if typed, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				out.WriteString(line + runGuide(t, strings.TrimSpace(typed)))
			}
		}
		return "```console\n" + out.String() + "```\n"
	})
	assert.Positive(t, commands)
	if *goldentest.Update {
		require.NoError(t, os.WriteFile(guide, []byte(rewritten), 0o644))
		return
	}
	assert.Equal(t, string(text), rewritten)
}

// runGuide runs a line of a shell as far as the guide needs one: words before primus set variables, single quotes hold words
// together, and > /dev/null at the end hides the output.
func runGuide(t *testing.T, line string) string {
	t.Helper()
	line, hidden := strings.CutSuffix(line, " > /dev/null")
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words[len(words)-1] += part
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	for ; strings.Contains(words[0], "="); words = words[1:] {
		name, value, _ := strings.Cut(words[0], "=")
		before, set := os.LookupEnv(name)
		require.NoError(t, os.Setenv(name, value))
		defer func() {
			if os.Unsetenv(name); set {
				os.Setenv(name, before)
			}
		}()
	}
	require.Equal(t, "primus", words[0])
	got := commandtest.Run(t, words[1:]...)
	if hidden {
		got.Out = ""
	}
	return clockTime.ReplaceAllString(got.Stderr, "") + got.Out
}
