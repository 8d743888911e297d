package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
// in turn and compares what they print, with … for any lines; -update rewrites the pages.
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
		lines := slices.Collect(strings.Lines(body))
		for i, line := range lines {
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
				output := lines[i+1:]
				if next := slices.IndexFunc(output, func(l string) bool { return strings.HasPrefix(l, "$ ") }); next >= 0 {
					output = output[:next]
				}
				out.WriteString(line + elide(strings.Join(output, ""), runGuide(t, strings.TrimSpace(typed))))
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

// elide returns what a page shows of an output: all of it, or with lines of … that stand for any
// lines what is shown already, if that is there.
func elide(shown, printed string) string {
	parts := strings.Split("\n"+shown, "\n…\n")
	rest, found := strings.CutPrefix("\n"+printed, parts[0]+"\n")
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			found = found && strings.HasSuffix("\n"+rest, "\n"+part)
			break
		}
		var here bool
		_, rest, here = strings.Cut("\n"+rest, "\n"+part+"\n")
		found = found && here
	}
	if len(parts) == 1 || !found {
		return printed
	}
	return shown
}

func TestElide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shown, printed, want string }{
		{"a\n", "b\n", "b\n"},
		{"a\n…\nd\n", "a\nb\nc\nd\n", "a\n…\nd\n"},
		{"…\nd\n", "c\nd\n", "…\nd\n"},
		{"a\n…\n", "a\nb\n", "a\n…\n"},
		{"a\n…\nc\n…\ne\n", "a\nb\nc\nd\ne\n", "a\n…\nc\n…\ne\n"},
		{"a\n…\nd\n…\ne\n", "a\nb\nc\ne\n", "a\nb\nc\ne\n"},
		{"a\n…\nd\n", "a\nb\nc\n", "a\nb\nc\n"},
		{"a\n…\nd\n", "aa\nd\n", "aa\nd\n"},
		{"a\n…\nd\n", "a\nb\ncd\n", "a\nb\ncd\n"},
	} {
		assert.Equal(t, tt.want, elide(tt.shown, tt.printed), "%q", tt.shown)
	}
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
