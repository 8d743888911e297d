package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// project changes to a new directory with a primus.yaml that counts.
func project(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "home"))
	t.Setenv(settings.EnvFile, "")
	require.NoError(t, os.WriteFile(settings.FileName, []byte(text), 0o644))
	return dir
}

func TestConfigCLI(t *testing.T) {
	dir := project(t, "threads: 2\nlisten: 127.0.0.1:9500\n")
	t.Setenv("PRIMUS_METRICS_ADDR", "127.0.0.1:9402")
	got := commandtest.Run(t, "config", "cli")
	require.Zero(t, got.Code, got.Stderr)
	const at = "primus.yaml"
	assert.Contains(t, got.Out, "project "+at+"\nuser    "+filepath.Join(dir, "home", "primus", "primus.yaml")+" (does not exist)\n")
	assert.Regexp(t, `(?m)^threads +2 +project +`+at+`:1:10 +0 \(default\) +benchmark, chat, evaluate, generate, init, ops, serve, train$`, got.Out)
	assert.Regexp(t, `(?m)^metrics-addr +127\.0\.0\.1:9402 +environment +PRIMUS_METRICS_ADDR +- +train$`, got.Out)
	assert.Regexp(t, `(?m)^strict-config +false +default `, got.Out)

	type row struct {
		Key, Origin, Where, Variable string
		Value                        []string
		Over                         []settings.Value
	}
	var view struct{ Values []row }
	got = commandtest.Run(t, "config", "cli", "-o", "json", "train", "pretrain", "lr=1e-3", "--threads", "4", "--strict-config")
	require.Zero(t, got.Code, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Out), &view))
	i := slices.IndexFunc(view.Values, func(r row) bool { return r.Key == "threads" })
	threads := view.Values[i]
	assert.Equal(t, []string{"flag", "--threads", "PRIMUS_THREADS", "4"}, []string{threads.Origin, threads.Where, threads.Variable, threads.Value[0]})
	assert.Equal(t, []settings.Value{
		{Scope: settings.Project, Texts: []string{"2"}, Where: at + ":1:10"}, {Scope: settings.Default, Texts: []string{"0"}},
	}, threads.Over)

	for _, tt := range []struct{ line, want string }{
		{"trian", `unknown command "trian" for "primus"; did you mean "train"?`},
		{"train --treads 3", "unknown flag --treads; did you mean --threads?"},
		{"serve --listen", "--listen needs a value"},
	} {
		got := commandtest.Run(t, append([]string{"config", "cli"}, strings.Fields(tt.line)...)...)
		assert.Equal(t, 2, got.Code)
		assert.Contains(t, got.Stderr, tt.want)
	}
}

// Every command hears of a fault in the file, and those that have the flag of a wrong value.
func TestProjectFile(t *testing.T) {
	project(t, "treads: 2\n")
	got := commandtest.Run(t, "version")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), `treads: unknown key, want the name of a flag; primus config cli lists them; did you mean "threads"?`)

	project(t, "metrics-textfile: metrics.txt\nthreads: 1\n")
	got = commandtest.NewLab(t).Train()
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), `--metrics-textfile: given "metrics.txt", want a file that ends with .prom`)

	project(t, "policy: p.yaml\n")
	require.NoError(t, os.WriteFile("p.yaml", []byte("prefer: reference\n"), 0o644))
	require.NoError(t, os.Mkdir("below", 0o755))
	t.Chdir("below")
	got = commandtest.Run(t, "ops", "list", "residual_add")
	require.Zero(t, got.Code, got.Stderr)
	first := regexp.MustCompile(`(?m)^residual_add +reference\.go .* yes +1 *$`)
	assert.Regexp(t, first, got.Out)
	assert.NotRegexp(t, first, commandtest.Run(t, "ops", "list", "residual_add", "--prefer", "flagos").Out)
}
