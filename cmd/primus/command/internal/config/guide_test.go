package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fence     = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```\n")
	fileMark  = regexp.MustCompile(`^# (\S+\.(?:yaml|json|toml))\n`)
	clockTime = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `)
)

// TestConsoleExamples writes the files that pages show, runs the commands of their console blocks
// in turn and compares what they print; -update rewrites the pages.
func TestConsoleExamples(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "..", "docs", "*", "*.md"))
	require.NoError(t, err)
	ran := 0
	for _, name := range names {
		page, err := filepath.Abs(name)
		require.NoError(t, err)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if strings.Contains(string(text), "```console\n") {
			ran++
			t.Run(filepath.Base(page), func(t *testing.T) { runConsole(t, page, string(text)) })
		}
	}
	assert.GreaterOrEqual(t, ran, 3)
}

func runConsole(t *testing.T, page, text string) {
	t.Chdir(t.TempDir())
	commands := 0
	rewritten := fence.ReplaceAllStringFunc(text, func(block string) string {
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
		shown := "" // the file that a cat command shows, which the page defines
		for line := range strings.Lines(body) {
			typed, isCommand := strings.CutPrefix(line, "$ ")
			if file, ok := strings.CutPrefix(strings.TrimSpace(typed), "cat "); ok && isCommand {
				shown = file
				require.NoError(t, os.WriteFile(shown, nil, 0o644))
				out.WriteString(line)
				continue
			}
			if !isCommand && shown != "" {
				content, err := os.ReadFile(shown)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(shown, append(content, line...), 0o644))
				out.WriteString(line)
			}
			if isCommand {
				shown = ""
				commands++
				out.WriteString(line + runGuide(t, strings.TrimSpace(typed)))
			}
		}
		return "```console\n" + out.String() + "```\n"
	})
	assert.Positive(t, commands)
	if *goldentest.Update {
		require.NoError(t, os.WriteFile(page, []byte(rewritten), 0o644))
		return
	}
	assert.Equal(t, text, rewritten)
}

// runGuide runs a line of a shell as far as the guide needs one: words before primus set variables,
// and > /dev/null at the end hides the output.
func runGuide(t *testing.T, line string) string {
	t.Helper()
	line, hidden := strings.CutSuffix(line, " > /dev/null")
	words := commandtest.Words(t, line)
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
