package command_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exitCodes returns the rows of the two tables of docs/reference/exit-codes.md by their first cell.
func exitCodes(t *testing.T) (codes, verdicts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "exit-codes.md"))
	require.NoError(t, err)
	codes, verdicts = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 {
			continue
		}
		name := strings.Trim(strings.TrimPrefix(cells[0], "| "), "`")
		if _, err := strconv.Atoi(name); err == nil {
			codes[name] = cells[1]
		} else if strings.HasPrefix(name, "primus ") {
			verdicts[name] = cells[1]
		}
	}
	return codes, verdicts
}

// The page lists the codes that programs end with, and the help of primus says the same.
func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	codes, _ := exitCodes(t)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	ends := map[string]int{
		"0":   cli.ExitCode(t.Context(), nil),
		"1":   cli.ExitCode(t.Context(), cli.ErrReported),
		"2":   cli.ExitCode(t.Context(), cli.UsageError{Err: os.ErrInvalid}),
		"3":   cli.ExitCode(t.Context(), &launch.Failure{Code: launch.HangCode, Hung: "silence"}),
		"130": cli.ExitCode(t.Context(), backend.ErrInterrupted),
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(ends)), slices.Collect(maps.Keys(codes)))
	help := command.NewRoot(command.Streams{}).Long
	for code, got := range ends {
		assert.Equal(t, code, strconv.Itoa(got))
		assert.Regexp(t, `[:,]\s`+code+` \w`, help)
	}
	assert.Equal(t, 130, cli.ExitCode(interrupted, context.Canceled))
	assert.Equal(t, 1, cli.ExitCode(t.Context(), os.ErrNotExist))
	assert.Equal(t, 143, cli.ExitCode(t.Context(), &launch.Failure{Code: 143}), "a rank that SIGTERM ended")
	assert.Equal(t, 7, cli.ExitCode(t.Context(), &launch.ExitError{Code: 7}))
}

// The page lists every command whose help says when it exits with 1, and no other.
func TestExitCodesOfCommands(t *testing.T) {
	t.Parallel()
	_, verdicts := exitCodes(t)
	var want []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		says := regexp.MustCompile(`(?i)exit\s+codes?[^.]*\b1\b`).MatchString(cmd.Long)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { says = says || strings.Contains(f.Usage, "exit with 1") })
		if says && cmd.HasParent() {
			want = append(want, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(command.NewRoot(command.Streams{}))
	assert.ElementsMatch(t, want, slices.Collect(maps.Keys(verdicts)))
}

// Commands exit with the codes that the page lists, where that takes little.
func TestExitCodesOfCommandLines(t *testing.T) {
	primustest.Sequential(t, "it runs one command after the other")
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return file
	}
	invalid, wrong := write("invalid.yaml", "modules: 1\n"), write("policy.yaml", "prefer: x\n")
	none := write("none.json", `[{"op": "silu", "impl_id": "default.flagos", "kind": "flagos", "available": false}]`)
	const small, large = "llama_2M-pretrain", "llama_6M-pretrain"
	for _, tt := range []struct {
		line string
		code int
	}{
		{"version", 0},
		{"config show --config " + filepath.Join(dir, "missing.yaml"), 1},
		{"vresion", 2},
		{"policy show --prefer x", 2},
		{"policy show --policy " + wrong, 1},
		{"config diff " + small + " " + small, 0},
		{"config diff " + small + " " + large, 1},
		{"config validate " + small, 0},
		{"config validate " + invalid, 1},
		{"ops diff --to-prefer reference", 0},
		{"ops diff --to-prefer reference --exit-code", 1},
		{"ops resolve silu -o json --catalog " + none, 1},
	} {
		got := commandtest.Run(t, strings.Fields(tt.line)...)
		assert.Equal(t, tt.code, got.Code, "%s: %s", tt.line, got.Stderr)
	}
	broken := grouped(command.OpSources, brokenSource())
	for line, code := range map[string]int{
		"ops verify residual_add --dtype f32 --impl default.flagos": 0,
		"ops verify residual_add --dtype f32 --impl vendor.broken":  1,
		"ops coverage residual_add --dtype f32":                     1,
	} {
		got := primusWith(t, broken, strings.Fields(line)...)
		assert.Equal(t, code, got.Code, "%s: %s", line, got.Stderr)
	}
}
