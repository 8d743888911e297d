//go:build unix

package plugins_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyState returns the arguments that give a run a plugin of each state.
func everyState(t *testing.T) []string {
	t.Helper()
	isolated := commandtest.BuildPlugin(t, `NAME="acme_apart"`, `ID="vendor.acme_apart"`)
	absent := commandtest.BuildPlugin(t, "NO_DEVICE", `NAME="acme_absent"`, `ID="vendor.acme_absent"`)
	broken := filepath.Join(t.TempDir(), "libbroken.so")
	require.NoError(t, os.WriteFile(broken, []byte("nothing"), 0o600))
	all := []string{commandtest.BuildPlugin(t), isolated, absent, commandtest.BuildPlugin(t, "CRASH", `NAME="acme_crash"`), broken, broken}
	return []string{"--plugin-modules", strings.Join(all, ","), "--isolate-plugins=acme_apart"}
}

// pluginStates are the plugins of everyState as metrics show them, without the labels of the run.
var pluginStates = []string{
	`plugin="acme_ops",$state="loaded",usable="true",version="1.2.0"`,
	`plugin="acme_apart",$state="isolated",usable="true",version="1.2.0"`,
	`plugin="acme_absent",$state="loaded",usable="false",version="1.2.0"`,
	`plugin="acme_crash",$state="rejected",usable="false",version="1.2.0"`,
	`plugin="libbroken.so",$state="rejected",usable="false",version=""`,
	`plugin="flagos",$state="compiled_in",usable="true",version="` + buildinfo.Version() + `"`,
	`plugin="openblas",$state="compiled_in",usable="false",version=""`,
}

func assertPluginStates(t *testing.T, metrics string) {
	t.Helper()
	assert.Equal(t, 1, strings.Count(metrics, `plugin="libbroken.so"`))
	for _, labels := range pluginStates {
		pattern := strings.Replace(regexp.QuoteMeta(labels), `\$`, `rank="0",run="[^"]*",`, 1)
		assert.Regexp(t, `(?m)^primus_plugin_info\{`+pattern+`\} 1$`, metrics)
	}
}

// Sums are those of a library and of the libraries that it brings along.
func TestPluginSumsCoverDependencies(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "extra.c")
	require.NoError(t, os.WriteFile(source, []byte("int extra(void) { return 7; }\n"), 0o600))
	extra := loadertest.Library(t, "libextra.so", source)
	lib := loadertest.Library(t, "libacme_ops.so", "testdata/acme.c", "-I../../../../../vendors/abi", "-Wl,--no-as-needed", extra)
	row := listPlugins(t, nil, "--plugin-modules", lib)["acme_ops"]
	require.Equal(t, "loaded", row.State, row.Reason)
	require.Len(t, row.Dependencies, 1)
	assert.Equal(t, extra, row.Dependencies[0].Path)
	assert.Equal(t, sumOf(t, extra), row.Dependencies[0].SHA256)

	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("plugin_modules: ["+lib+"]\nplugin_sha256: ["+sumOf(t, lib)+"]\n"), 0o600))
	for _, r := range listPlugins(t, nil, "--policy", policy) {
		if r.Module != "" {
			assert.Equal(t, "rejected", r.State)
			assert.Contains(t, r.Reason, "it needs "+extra+", whose SHA-256 checksum "+sumOf(t, extra)+" is not among those that")
		}
	}
	require.NoError(t, os.WriteFile(policy, []byte("plugin_modules: ["+lib+"]\nplugin_sha256: ["+sumOf(t, lib)+", "+sumOf(t, extra)+"]\n"), 0o600))
	assert.Equal(t, "loaded", listPlugins(t, nil, "--policy", policy)["acme_ops"].State)
}

// The metrics of a run have every plugin, whatever became of it.
func TestMetricsOfPlugins(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	file := filepath.Join(l.Dir, "run.prom")
	got := commandtest.RunChild(t, nil, l.Args(append(everyState(t), "--metrics-textfile", file)...)...)
	require.Zero(t, got.Code, got.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assertPluginStates(t, string(text))
}

// withoutDevices leaves out the sources of impls for devices, which a run on the CPU does not need.
func withoutDevices(t *testing.T, sources string) string {
	t.Helper()
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(sources), &rows))
	rows = slices.DeleteFunc(rows, func(row map[string]any) bool { return row["source"] == "opencl" || row["source"] == "clblast" })
	text, err := json.Marshal(rows)
	require.NoError(t, err)
	return string(text)
}

// The service of a program has the same list as the command line.
func TestServicePlugins(t *testing.T) {
	t.Parallel()
	args := everyState(t)
	want := commandtest.RunChild(t, nil, append([]string{"plugins", "list", "-o", "json"}, args...)...)
	require.Zero(t, want.Code, want.Stderr)
	for name, path := range map[string]string{"state": `"state": "isolated"`, "version": `"version": "1.2.0"`, "path": "libbroken.so", "reason": "it crashed with SIGABRT"} {
		assert.Contains(t, want.Out, path, name)
	}
	l := commandtest.NewLab(t)
	for name, command := range map[string][]string{
		"alone":    {"serve", "--listen", "127.0.0.1:0"},
		"of a run": l.Args("train_iters=1000000", "--serve", "127.0.0.1:0"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := primustest.NewProgram(t, commandtest.Child(t.Context(), []string{"PRIMUS_OPENBLAS=" + commandtest.Absent, "PRIMUS_ONEDNN=" + commandtest.Absent}, append(command, args...)...))
			require.NoError(t, run.Start())
			run.WaitFor("service on ")
			s := &commandtest.Serving{T: t, Base: commandtest.ServiceIn(run.Log.String())}
			code, got := s.Ask(http.MethodGet, "/v1/plugins", "")
			assert.Equal(t, http.StatusOK, code)
			listed := want.Out
			if name == "of a run" {
				assert.Contains(t, got, "not needed: this process computes on the CPU")
				listed, got = withoutDevices(t, listed), withoutDevices(t, got)
			}
			assert.JSONEq(t, listed, got)
			_, metrics := s.Ask(http.MethodGet, "/metrics", "")
			assertPluginStates(t, metrics)
			require.NoError(t, run.Process.Signal(syscall.SIGINT))
			_ = run.Wait()
		})
	}
}
