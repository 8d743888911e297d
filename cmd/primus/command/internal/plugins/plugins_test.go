package plugins_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SourceRow is a row of `primus plugins list -o json`.
type sourceRow struct {
	Source, Version, State, Module, Path, SHA256, ABI, Reason string
	Dependencies                                              []struct{ Path, SHA256 string }
	Ops                                                       []struct {
		Op, Reason, Unusable string
		Impl                 string `json:"impl_id"`
		Available            bool
		Trial                struct {
			Served, Declined int
			Failure          string
		}
	}
}

// ListPlugins returns the rows by the name of the source, or of the module where that is not known.
func listPlugins(t *testing.T, env []string, args ...string) map[string]sourceRow {
	t.Helper()
	got := commandtest.RunChild(t, env, append([]string{"plugins", "list", "-o", "json", "--plugin-timeout", "5m"}, args...)...)
	require.Zero(t, got.Code, got.Stderr)
	var rows []sourceRow
	require.NoError(t, json.Unmarshal([]byte(got.Out), &rows))
	byName := map[string]sourceRow{}
	for _, r := range rows {
		name := r.Source
		if name == "" {
			name = r.Module
		}
		byName[name] = r
	}
	return byName
}

func TestPluginsList(t *testing.T) {
	t.Parallel()
	lib, noDevice := commandtest.BuildPlugin(t), commandtest.BuildPlugin(t, "NO_DEVICE", `NAME="acme_two"`, `ID="vendor.acme2"`)
	rows := listPlugins(t, []string{"TE_FL_PLUGIN_MODULES= " + lib + ", ," + noDevice + ",my_plugin"})
	assert.Equal(t, "compiled_in", rows["flagos"].State)
	assert.NotEmpty(t, rows["flagos"].Ops)

	acme := rows["acme_ops"]
	assert.Equal(t, "loaded", acme.State)
	assert.Equal(t, "1.2.0", acme.Version)
	assert.Equal(t, "1.2", acme.ABI)
	assert.Equal(t, lib, acme.Path)
	assert.Equal(t, sumOf(t, lib), acme.SHA256)
	require.Len(t, acme.Ops, 1)
	assert.Equal(t, "residual_add", acme.Ops[0].Op)
	assert.Equal(t, "vendor.acme", acme.Ops[0].Impl)
	assert.True(t, acme.Ops[0].Available)
	assert.Equal(t, 4, acme.Ops[0].Trial.Served)
	assert.Positive(t, acme.Ops[0].Trial.Declined)
	require.Len(t, rows["acme_two"].Ops, 1)
	assert.False(t, rows["acme_two"].Ops[0].Available)
	assert.Equal(t, "no acme chip", rows["acme_two"].Ops[0].Reason)
	assert.Equal(t, "rejected", rows["my_plugin"].State)
	assert.Contains(t, rows["my_plugin"].Reason, "Python")

	table := commandtest.RunChild(t, []string{"TE_FL_PLUGIN_MODULES=" + lib}, "plugins", "list")
	assert.Zero(t, table.Code, table.Stderr)
	assert.Regexp(t, `(?m)^acme_ops +1\.2\.0 +loaded +`+lib+` +`+acme.SHA256[:12]+` +1 of 1$`, table.Out)
	assert.Empty(t, table.Stderr)
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sha256sum", file).Output()
	if err != nil {
		t.Skip(err)
	}
	return strings.Fields(string(out))[0]
}

// Where plugins come from and how far they are trusted: later sources win.
func TestPluginSources(t *testing.T) {
	t.Parallel()
	lib := commandtest.BuildPlugin(t)
	dir, file := filepath.Dir(lib), filepath.Base(lib)
	policy := func(text string) string {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	tests := []struct {
		name  string
		env   []string
		args  []string
		state string // "" when nothing is named
		want  string // part of the reason
	}{
		{name: "nothing"},
		{name: "blank variable", env: []string{"TE_FL_PLUGIN_MODULES= "}},
		{name: "isolated", env: []string{"TE_FL_PLUGIN_MODULES=" + lib}, args: []string{"--isolate-plugins"}, state: "isolated"},
		{name: "isolated by name", env: []string{"TE_FL_PLUGIN_MODULES=" + lib}, args: []string{"--isolate-plugins=" + file}, state: "isolated"},
		{name: "another isolated", env: []string{"TE_FL_PLUGIN_MODULES=" + lib}, args: []string{"--isolate-plugins=other.so"}, state: "loaded"},
		{name: "policy file", args: []string{"--policy", policy("plugin_modules: [" + lib + "]\n")}, state: "loaded"},
		{name: "variable over policy file", env: []string{"TE_FL_PLUGIN_MODULES=" + lib}, args: []string{"--policy", policy("plugin_modules: [/absent.so]\n")}, state: "loaded"},
		{name: "flag over variable", env: []string{"TE_FL_PLUGIN_MODULES=/absent.so"}, args: []string{"--plugin-modules", lib}, state: "loaded"},
		{name: "name in a directory", args: []string{"--plugin-modules", file, "--plugin-dir", t.TempDir(), "--plugin-dir", dir}, state: "loaded"},
		{name: "name in the path", env: []string{"PRIMUS_PLUGIN_PATH=/absent:" + dir, "TE_FL_PLUGIN_MODULES=" + file}, state: "loaded"},
		{name: "name in no directory", env: []string{"PRIMUS_PLUGIN_PATH=/absent:/absent2", "TE_FL_PLUGIN_MODULES=" + file}, state: "rejected", want: "no such file in /absent, /absent2"},
		{name: "name alone", env: []string{"LD_LIBRARY_PATH=" + dir, "TE_FL_PLUGIN_MODULES=" + file}, state: "rejected", want: "PRIMUS_PLUGIN_PATH"},
		{name: "missing", args: []string{"--plugin-modules", dir + "/absent.so"}, state: "rejected", want: "no such file or directory"},
		{name: "sum that is allowed", args: []string{"--plugin-modules", lib, "--policy", policy("plugin_sha256: [" + sumOf(t, lib) + "]\n")}, state: "loaded"},
		{name: "sum that is not allowed", args: []string{"--plugin-modules", lib, "--policy", policy("plugin_sha256: [" + strings.Repeat("0", 64) + "]\n")}, state: "rejected", want: "is not among those that "},
		{name: "no sum is allowed", args: []string{"--plugin-modules", lib, "--policy", policy("plugin_sha256: []\n")}, state: "rejected", want: "policy.yaml:1 allows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range listPlugins(t, tt.env, tt.args...) {
				if r.Module == "" {
					continue
				}
				require.NotEmpty(t, tt.state, "%s: %+v", name, r)
				assert.Equal(t, tt.state, r.State, r.Reason)
				assert.Contains(t, r.Reason, tt.want)
				return
			}
			assert.Empty(t, tt.state, "nothing is listed")
		})
	}
}

// A library of an earlier version is used: an op that has more arguments now serves the calls that
// leave them out, and only the op whose arguments it does not know is left out.
func TestOldPlugins(t *testing.T) {
	t.Parallel()
	const dir = "../../../../../internal/plugin/testdata/headers"
	build := func(flags ...string) string {
		return loadertest.Library(t, "libold.so", dir+"/old.c", append([]string{"-I" + dir, "-I" + dir + "/82735246"}, flags...)...)
	}
	lib := build()
	const without = `impl "vendor.acme" was compiled before op "all_reduce" had first, stride: calls that give one of these arguments go to other impls`
	for _, args := range [][]string{nil, {"--isolate-plugins"}} {
		args = append(args, "--plugin-modules", lib)
		acme := listPlugins(t, nil, args...)["acme_ops"]
		assert.Equal(t, without, acme.Reason)
		for _, o := range acme.Ops {
			assert.True(t, o.Available, o.Op)
		}
		got := commandtest.RunChild(t, nil, append([]string{"ops", "explain", "all_reduce"}, args...)...)
		assert.Regexp(t, "vendor.acme .* calls without first, stride", got.Out)
		assert.Contains(t, got.Stderr, "WARN  plugin "+lib+": "+without)
	}

	// As if an argument of all_reduce had been removed since.
	lib = build("-DREDUCE_LAYOUT=" + "0x06f85daff57ed58bULL")
	const reason = `it was compiled for arguments of op "all_reduce" that differ in several places from those of this program`
	acme := listPlugins(t, nil, "--plugin-modules", lib)["acme_ops"]
	assert.Equal(t, "loaded", acme.State)
	assert.Contains(t, acme.Reason, `impl "vendor.acme" of op "all_reduce" is left out: `+reason)
	require.Len(t, acme.Ops, 2)
	for _, o := range acme.Ops {
		assert.Equal(t, o.Op != "all_reduce", o.Available, o.Op)
	}
	got := commandtest.RunChild(t, nil, "ops", "explain", "all_reduce", "--plugin-modules", lib)
	assert.Contains(t, got.Out, "unavailable: "+reason)
	assert.Contains(t, got.Stderr, reason)
}

// A library that cannot be used is listed with its reason, whatever is wrong with it.
func TestPluginsAreRejected(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, macro, want string }{
		{"crash", "PROBE_CRASH", "it crashed with SIGABRT (abort) in is_available of impl"},
		{"hang", "PROBE_HANG", "it did not come back within 3s in is_available of impl"},
		{"crash in run", "CRASH", `it crashed with SIGABRT (abort) in run of impl "vendor.acme" of op "residual_add", case f32/`},
		{"hang in run", "HANG", `it did not come back within 3s in run of impl "vendor.acme" of op "residual_add", case f32/`},
		{"write in supports", "SUPPORTS_WRITES", `supports wrote to operand "a"; it may only read arguments`},
		{"write before a decline", "DECLINES_LATE", `operand "output" was written to before the impl declined`},
		{"old ABI", "OLD_ABI", "it does not speak ABI 1.2"},
		{"name of a source", `NAME="flagos"`, `source "flagos" is registered already`},
		{"id of an impl", `ID="default.flagos"`, `impl "default.flagos" of op "residual_add" from source "acme_ops" is registered already by source "flagos"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lib := commandtest.BuildPlugin(t, tt.macro)
			for _, r := range listPlugins(t, nil, "--plugin-modules", lib, "--plugin-timeout", "3s") {
				if r.Module != "" {
					assert.Equal(t, "rejected", r.State)
					assert.Contains(t, r.Reason, "plugin "+lib+": ")
					assert.Contains(t, r.Reason, tt.want)
					assert.Empty(t, r.Ops)
					return
				}
			}
			t.Error("the plugin is not listed")
		})
	}
	lib := commandtest.BuildPlugin(t)
	got := commandtest.RunChild(t, nil, "ops", "list", "residual_add", "--plugin-modules", lib+","+filepath.Dir(lib)+"/../"+filepath.Base(filepath.Dir(lib))+"/libacme_ops.so")
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Out, "vendor.acme")
	assert.Contains(t, got.Stderr, "it is the same library as "+lib)
}

// A plugin whose op returns a failure is used: other impls take its calls. One that crashes is used
// in a process of its own.
func TestPluginsWithFailingOps(t *testing.T) {
	t.Parallel()
	row := listPlugins(t, nil, "--plugin-modules", commandtest.BuildPlugin(t, "FAIL"))["acme_ops"]
	assert.Equal(t, "loaded", row.State)
	require.Len(t, row.Ops, 1)
	assert.True(t, row.Ops[0].Available)
	assert.Regexp(t, `^case f32/.*: no memory$`, row.Ops[0].Trial.Failure)
	assert.Equal(t, `impl "vendor.acme" of op "residual_add" failed: `+row.Ops[0].Trial.Failure, row.Reason)

	lib := commandtest.BuildPlugin(t, "CRASH")
	for name, state := range map[string]string{"acme_ops": "isolated", "other.so": "rejected"} {
		row := listPlugins(t, nil, "--plugin-modules", lib, "--isolate-plugins="+name)["acme_ops"]
		assert.Equal(t, state, row.State)
		assert.Equal(t, "1.2.0", row.Version)
		assert.Contains(t, row.Reason, "plugin "+lib+`: it crashed with SIGABRT (abort) in run of impl "vendor.acme" of op "residual_add"`)
	}
}

// A plugin serves calls of a training run, and one that cannot be used does not stop the run unless
// the policy is strict.
func TestTrainWithPlugins(t *testing.T) {
	t.Parallel()
	lib, broken := commandtest.BuildPlugin(t), commandtest.BuildPlugin(t, "CRASH")
	tried := `it crashed with SIGABRT (abort) in run of impl "vendor.acme" of op "residual_add"`
	plain := commandtest.NewLab(t)
	plain.TrainChild("TE_FL_PREFER=reference")
	order := "TE_FL_PER_OP=residual_add=vendor:acme|flagos"
	t.Run("used", func(t *testing.T) {
		l := commandtest.NewLab(t)
		l.InModule("    te_fl_plugin_modules: [" + lib + "]\n")
		got := l.TrainChild(order)
		row := commandtest.RowsOf(got.Out)["residual_add vendor.acme"]
		require.NotNil(t, row, got.Out)
		assert.Contains(t, got.Stderr, "acme runs plugin=acme_ops")
		for i, want := range plain.Records() {
			assert.InEpsilon(t, want.Loss, l.Records()[i].Loss, 1e-3)
		}
		manifest, err := os.ReadFile(l.Path("manifest.json"))
		require.NoError(t, err)
		assert.Contains(t, string(manifest), `"acme_ops"`)
		assert.Contains(t, string(manifest), `"1.2.0"`)
	})
	for name, want := range map[string]string{
		"CRASH": `it crashed with SIGABRT (abort) in impl "vendor.acme" of op "residual_add"`,
		"HANG":  `its process did not answer within 3s in impl "vendor.acme" of op "residual_add" and was killed`,
	} {
		t.Run("isolated "+name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			l.InModule("    dispatch: {plugin_modules: [" + commandtest.BuildPlugin(t, name) + "], isolate_plugins: [acme_ops]}\n")
			got := commandtest.RunChild(t, []string{order}, l.Args("train_iters=20", "--plugin-timeout", "3s")...)
			require.Zero(t, got.Code, got.Stderr)
			rows := commandtest.RowsOf(got.Out)
			assert.Contains(t, rows, "residual_add vendor.acme")
			assert.Contains(t, rows, "residual_add default.flagos", "took over")
			assert.Contains(t, got.Stderr, want)
			assert.Equal(t, 1, strings.Count(got.Stderr, "isolated, so it is used: plugin "), got.Stderr)
			assert.Contains(t, got.Stderr, "acme runs plugin=acme_ops")
			for i, want := range plain.Records() {
				assert.InEpsilon(t, want.Loss, l.Records()[i].Loss, 1e-3)
			}
		})
	}
	t.Run("rejected", func(t *testing.T) {
		l := commandtest.NewLab(t)
		got := l.TrainChild(order, "TE_FL_PLUGIN_MODULES="+broken)
		assert.Contains(t, commandtest.RowsOf(got.Out), "residual_add default.flagos")
		assert.Equal(t, 1, strings.Count(got.Stderr, "not used: plugin "+broken+": "+tried), got.Stderr)
	})
	t.Run("rejected under a strict policy", func(t *testing.T) {
		l := commandtest.NewLab(t)
		got := commandtest.RunChild(t, []string{"TE_FL_STRICT=1", "TE_FL_PLUGIN_MODULES=" + broken}, l.Args()...)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stderr, "the policy is strict (environment TE_FL_STRICT), so every plugin has to load:")
		assert.Contains(t, got.Stderr, tried)
		assert.NoDirExists(t, l.Workspace)
	})
}

// A plugin with one op of a family is named at the start and at the end of a run, and in the list
// of plugins, whatever the policy prefers.
func TestPluginWithHalfAFamily(t *testing.T) {
	t.Parallel()
	lib := loadertest.Library(t, "libhalf.so", "testdata/forward_only.c", "-I../../../../../vendors/abi", "-lm")
	const reason = "no impl vendor.acme of rmsnorm_bwd, which shares saved state with this op"
	rows := listPlugins(t, nil, "--plugin-modules", lib)
	require.Len(t, rows["acme_ops"].Ops, 1)
	assert.True(t, rows["acme_ops"].Ops[0].Available)
	assert.Equal(t, reason, rows["acme_ops"].Ops[0].Unusable)
	table := commandtest.RunChild(t, nil, "plugins", "list", "--plugin-modules", lib)
	assert.Contains(t, table.Out, `impl "vendor.acme" cannot serve op "rmsnorm_fwd": `+reason)

	for _, env := range [][]string{nil, {"TE_FL_PREFER=vendor"}} {
		l := commandtest.NewLab(t)
		got := commandtest.RunChild(t, env, l.Args("--plugin-modules", lib)...)
		require.Zero(t, got.Code, got.Stderr)
		text := "Implementation 'vendor.acme' cannot serve op 'rmsnorm_fwd': " + reason
		assert.Equal(t, 1, strings.Count(got.Stderr, text), got.Stderr)
		assert.Contains(t, got.Stderr, "WARN  "+text)
		assert.Contains(t, got.Out, "not used    "+text)
		assert.Contains(t, commandtest.RowsOf(got.Out), "rmsnorm_fwd default.flagos")
	}
}

// A library that changes how numbers are rounded, when it is loaded or in its calls, changes no
// result but its own, and is named.
func TestTrainWithPluginsThatChangeRounding(t *testing.T) {
	t.Parallel()
	plain := commandtest.NewLab(t)
	plain.TrainChild("TE_FL_PER_OP=residual_add=flagos")
	for macro, want := range map[string]struct{ order, function string }{
		"LOAD_ROUNDS": {"TE_FL_PER_OP=residual_add=flagos", "its constructors"},
		"ROUNDS":      {"TE_FL_PER_OP=residual_add=vendor:acme", `run of impl "vendor.acme" of op "residual_add"`},
	} {
		t.Run(macro, func(t *testing.T) {
			t.Parallel()
			lib := commandtest.BuildPlugin(t, macro)
			said := "plugin " + lib + ": " + want.function + " changed the floating-point environment, which was restored: rounding towards zero"
			l := commandtest.NewLab(t)
			got := l.TrainChild(want.order, "TE_FL_PLUGIN_MODULES="+lib)
			assert.Equal(t, 1, strings.Count(got.Stderr, said), got.Stderr)
			for i, want := range plain.Records() {
				assert.Equal(t, want.Loss, l.Records()[i].Loss, "step %d", i)
			}
		})
	}
}

// The priority that a library gives itself does not put it before what is compiled in; a policy
// that names it does.
func TestPluginPriority(t *testing.T) {
	t.Parallel()
	lib := commandtest.BuildPlugin(t, "PRIORITY=2000000000")
	note := `the priority of impl "vendor.acme" of op "residual_add" is 2000000000, which counts as 100: a policy that names "vendor:acme" prefers it`
	for _, isolate := range []string{"--isolate-plugins=false", "--isolate-plugins"} {
		row := listPlugins(t, nil, "--plugin-modules", lib, isolate)["acme_ops"]
		assert.Contains(t, row.Reason, note)
		got := commandtest.RunChild(t, nil, "ops", "explain", "residual_add", "--plugin-modules", lib, isolate)
		assert.Contains(t, got.Out, "residual_add: served by default.flagos")
		assert.Contains(t, got.Stderr, note)
		assert.NotContains(t, got.Out, "2000000000")
		got = commandtest.RunChild(t, nil, "ops", "explain", "residual_add", "--plugin-modules", lib, isolate, "--per-op", "residual_add=vendor:acme|flagos")
		assert.Contains(t, got.Out, "residual_add: served by vendor.acme")
	}
}

// Texts of a plugin reach no terminal and no log as they are, whichever way they take.
func TestTextsOfPluginsAreEscaped(t *testing.T) {
	t.Parallel()
	lib := commandtest.BuildPlugin(t, "SPOOFS")
	order := "residual_add=vendor:acme|flagos"
	for name, args := range map[string][]string{
		"list":           {"plugins", "list", "--plugin-modules", lib},
		"list isolated":  {"plugins", "list", "--plugin-modules", lib, "--isolate-plugins"},
		"list as JSON":   {"plugins", "list", "--plugin-modules", lib, "-o", "json"},
		"check":          {"plugins", "check", lib},
		"verify":         {"ops", "verify", "residual_add", "--impl", "vendor.acme", "--plugin-modules", lib, "--isolate-plugins"},
		"train isolated": commandtest.NewLab(t).Args("train_iters=3", "--plugin-modules", lib, "--isolate-plugins", "--per-op", order),
		"explain":        {"ops", "explain", "residual_add", "--plugin-modules", lib, "--isolate-plugins", "--per-op", order},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := commandtest.RunChild(t, nil, args...)
			assert.NotContains(t, got.Out+got.Stderr, "\x1b")
			assert.NotContains(t, got.Out+got.Stderr, "\u202e")
			assert.NotRegexp(t, `(?m)(^|\r)primus: error: spoofed`, got.Out+got.Stderr)
		})
	}
	got := commandtest.RunChild(t, nil, commandtest.NewLab(t).Args("train_iters=3", "--plugin-modules", lib, "--isolate-plugins", "--per-op", order)...)
	assert.Contains(t, got.Stderr, `\x1b[2J\x1b[31m\nprimus: error: spoofed\r\u202e`)
}

// A run that a plugin ends is not a success, whatever status the plugin has in mind.
func TestTrainWithPluginsThatExit(t *testing.T) {
	t.Parallel()
	for _, macro := range []string{"EXIT=exit", "EXIT=quick_exit", "EXIT_THREAD", "EXIT_LATER"} {
		t.Run(macro, func(t *testing.T) {
			t.Parallel()
			lib := commandtest.BuildPlugin(t, macro)
			got := commandtest.RunChild(t, []string{"TE_FL_PER_OP=residual_add=vendor:acme", "TE_FL_PLUGIN_MODULES=" + lib}, commandtest.NewLab(t).Args()...)
			assert.Equal(t, 1, got.Code, got.Stderr)
			want := "a plugin in this process called exit, so what was asked for is not finished: acme_ops (" + lib + ")"
			if macro == "EXIT_LATER" {
				want = "is not finished: one that is being loaded"
			}
			assert.Contains(t, got.Stderr, want)
		})
	}
}

// What a policy file says about plugins is read once.
func TestPluginsOfAChangedPolicyFile(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	file := l.Policy("prefer: flagos\n")
	run := commandtest.Start(t, l.Args("train_iters=1000000", "log_interval=100000", "--policy", file)...)
	run.WaitFor("Op 'multi_tensor_adam' using 'default.flagos'")
	l.Write(file, "prefer: flagos\nplugin_modules: [/absent.so]\n")
	run.WaitFor("the policy file now names other plugins, or other settings for them, which take effect at the next start")
	run.WaitFor("policy file is in force")
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
}

func TestPluginsProbe(t *testing.T) {
	t.Parallel()
	got := commandtest.RunChild(t, nil, "plugins", "probe", commandtest.BuildPlugin(t))
	assert.Zero(t, got.Code, got.Stderr)
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	require.Len(t, lines, 3, "before the trial, after it, and the end")
	assert.NotContains(t, lines[0], `"trial"`)
	assert.Contains(t, lines[1], `"trial":{"served":4,`)
	for i, want := range []string{`"name":"acme_ops"`, `"name":"acme_ops"`, `"done":true`} {
		assert.True(t, json.Valid([]byte(lines[i])))
		assert.Contains(t, lines[i], want)
	}
	got = commandtest.RunChild(t, nil, "plugins", "probe", "absent.so")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, "cannot open shared object file")
	got = commandtest.RunChild(t, nil, "plugins", "probe")
	assert.Equal(t, 2, got.Code)
	assert.NotContains(t, commandtest.RunChild(t, nil, "plugins", "--help").Out, "probe")
}

func TestPolicyShowsPlugins(t *testing.T) {
	t.Parallel()
	env := []string{"TE_FL_PLUGIN_MODULES=./liba.so,libb.so"}
	got := commandtest.RunChild(t, env, "policy", "show", "--isolate-plugins")
	assert.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^plugin_modules +\./liba\.so,libb\.so +environment TE_FL_PLUGIN_MODULES$`, got.Out)
	assert.Regexp(t, `(?m)^isolate_plugins +\* +flag --isolate-plugins$`, got.Out)
	assert.NotContains(t, got.Out, "plugin_sha256", "nothing is said")
	var shown struct {
		Prefer  string
		Plugins struct {
			Modules []string          `json:"plugin_modules"`
			Sources map[string]string `json:"sources"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(commandtest.RunChild(t, env, "policy", "show", "-o", "json").Out), &shown))
	assert.Equal(t, "flagos", shown.Prefer)
	assert.Equal(t, []string{"./liba.so", "libb.so"}, shown.Plugins.Modules)
	assert.Equal(t, map[string]string{"plugin_modules": "environment TE_FL_PLUGIN_MODULES"}, shown.Plugins.Sources)
}

// The conformance kit looks at plugins, too, also at one that is isolated.
func TestVerifyPlugin(t *testing.T) {
	t.Parallel()
	lib := commandtest.BuildPlugin(t)
	for _, flag := range []string{"--isolate-plugins=false", "--isolate-plugins"} {
		got := commandtest.RunChild(t, nil, "ops", "verify", "residual_add", "--impl", "vendor.acme", "--dtype", "f32", "--plugin-modules", lib, flag)
		assert.Zero(t, got.Code, got.Stderr)
		assert.Regexp(t, `(?m)^residual_add +vendor\.acme +f32 +pass`, got.Out)
	}
}

func TestPluginErrorsOfCommands(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`flag --plugin-modules=" , ": at 1: no plugin between the commas`: {"--plugin-modules", " , "},
		`flag --isolate-plugins=" ": at 1: given an empty text`:           {"--isolate-plugins= "},
		`--plugin-timeout: given "soon", want a time such as 10s or 1m`:   {"--plugin-timeout", "soon"},
		`flag --plugin-timeout="-1s"`:                                     {"--plugin-timeout=-1s"},
		`environment TE_FL_PLUGIN_MODULES=",": at 1: no plugin between`:   nil,
	} {
		var env []string
		if args == nil {
			env = []string{"TE_FL_PLUGIN_MODULES=,"}
		}
		for _, command := range [][]string{{"ops", "list"}, {"policy", "show"}, {"plugins", "list"}} {
			got := commandtest.RunChild(t, env, append(command, args...)...)
			assert.Equal(t, 2, got.Code, "%v", command)
			assert.Contains(t, commandtest.OnlyError(t, got), want)
		}
	}
}
