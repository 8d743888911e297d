package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPolicyParametersAreNoUnknownParameters(t *testing.T) {
	l := commandtest.NewLab(t)
	l.InModule("    te_fl_prefer: reference\n    te_fl_per_op: {'*_bwd': flagos|reference}\n    dispatch: {strict: false}\n")
	got := l.Train("train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.NotContains(t, got.Stderr, "te_fl_", got.Stderr)
	assert.NotContains(t, got.Stderr, "dispatch.", got.Stderr)
	assert.Contains(t, commandtest.RowsOf(got.Out), "generic_gemm reference.go")
	assert.Contains(t, commandtest.RowsOf(got.Out), "embedding_bwd default.flagos")
}

func TestPolicyErrorsOfTrain(t *testing.T) {
	tests := []struct {
		name, module, file string
		args               []string
		code               int
		want               []string
	}{
		{name: "file", file: "prefer: vendro\n", code: 1, want: []string{"policy.yaml:1:9: prefer", `did you mean "vendor"`}},
		{name: "missing file", args: []string{"--policy", "/nonexistent.yaml"}, code: 1, want: []string{"flag --policy: ", "/nonexistent.yaml", "no such file", "want a YAML file"}},
		{name: "no file", args: []string{"--policy"}, code: 2, want: []string{"--policy needs a value: a policy file"}},
		{name: "parameter", module: "    te_fl_prefer: vendro\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.te_fl_prefer", `did you mean "vendor"`}},
		{name: "unknown parameter", module: "    te_fl_prefr: vendor\n", code: 1, want: []string{"exp.yaml:8", `unknown key "prefr"`, `did you mean "prefer"`}},
		{name: "text of orders", args: []string{"te_fl_per_op=generic_gemm"}, code: 1, want: []string{"override 1", "has no ="}},
		{name: "block", module: "    dispatch:\n      prefer: 3\n", code: 1, want: []string{"exp.yaml:9:15", "modules.pre_trainer.dispatch.prefer", "given int 3"}},
		{name: "no block", module: "    dispatch: vendor\n", code: 1, want: []string{"exp.yaml:8", `given string "vendor", want a mapping`}},
		{name: "both", module: "    te_fl_prefer: vendor\n    dispatch: {prefer: vendor}\n", code: 1, want: []string{"given twice", "te_fl_prefer", "dispatch.prefer"}},
		{name: "orders in both", module: "    te_fl_per_op: a=vendor\n    dispatch: {per_op: {a: vendor}}\n", code: 1, want: []string{"given twice"}},
		{name: "rule of a block", module: "    dispatch:\n      rules:\n        - layers: 0-x\n          prefer: vendor\n", code: 1,
			want: []string{"exp.yaml:10:19", "modules.pre_trainer.dispatch.rules[0].layers", `"0-x" is not a layer`}},
		{name: "quarantine of a block", module: "    dispatch: {quarantine: {backof: 3}}\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.dispatch.quarantine", `did you mean "backoff"`}},
		{name: "override of a block", args: []string{"dispatch.verify=2"}, code: 1, want: []string{`override 1 "dispatch.verify=2"`, "modules.pre_trainer.dispatch.verify", "a number from 0 to 1"}},
		{name: "rules beside the block", module: "    te_fl_rules: []\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.te_fl_rules", "want rules in the dispatch block"}},
		{name: "flag", args: []string{"--prefer", "vendro"}, code: 2, want: []string{`flag --prefer="vendro"`, `did you mean "vendor"`}},
		{name: "switch", args: []string{"--strict=maybe"}, code: 2, want: []string{`flag --strict="maybe"`}},
		{name: "blank orders", args: []string{"--per-op", " ; "}, code: 2, want: []string{`flag --per-op=" ; "`, "given an empty text"}},
		{name: "flag without value", args: []string{"--per-op"}, code: 2, want: []string{"--per-op needs a value: orders such as"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := commandtest.NewLab(t)
			if tt.module != "" {
				l.InModule(tt.module)
			}
			if tt.file != "" {
				tt.args = append(tt.args, "--policy", l.Policy(tt.file))
			}
			got := l.Train(tt.args...)
			assert.Equal(t, tt.code, got.Code)
			line := commandtest.OnlyError(t, got)
			for _, part := range tt.want {
				assert.Contains(t, line, part)
			}
			assert.NoDirExists(t, l.Workspace)
		})
	}
}

// The text names where a file was looked for, and who asked for it.
func TestMissingPolicyFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tried := "open policy.yml: no such file or directory (tried " + filepath.Join(dir, "policy.yml") + "); want a YAML file"
	got := commandtest.Run(t, "policy", "show", "--policy", "policy.yml")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "flag --policy: policy: read policy file: "+tried)
	got = commandtest.Run(t, "policy", "check", "policy.yml")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "primus: error: policy: read policy file: "+tried)
	t.Setenv("PRIMUS_POLICY", "policy.yml")
	got = commandtest.Run(t, "ops", "list")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "environment PRIMUS_POLICY: policy: read policy file: "+tried)
}

func TestPolicyErrorsOfAllSourcesAreReportedTogether(t *testing.T) {
	l := commandtest.NewLab(t)
	t.Setenv("TE_FL_STRICT", "maybe")
	l.InModule("    te_fl_prefer: x\n")
	got := l.Train("--policy", l.Policy("prefer: x\nstrict: x\n"), "--deny-vendors", "a;b")
	assert.Equal(t, 2, got.Code)
	assert.Equal(t, 5, strings.Count(got.Stderr, "primus: error: "), got.Stderr)
}

// W8: a change of the file takes effect while training runs, and one that cannot be used does not.
func TestPolicyFileIsFollowed(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	file := l.Policy("prefer: flagos\n")
	run := commandtest.Start(t, l.Args("train_iters=1000000", "log_interval=100000", "--policy", file, "--deny-vendors", "acme")...)
	stderr := run.Stderr
	run.WaitFor("Op 'multi_tensor_adam' using 'default.flagos'")
	l.Write(file, "prefer: vendro\n")
	run.WaitFor("policy file is not used; the previous policy stays in force")
	assert.Contains(t, stderr.String(), "policy.yaml:1:9: prefer: given")
	assert.NotContains(t, stderr.String(), "switched")
	next := file + ".new"
	l.Write(next, "per_op: {swiglu: reference}\ndeny_vendors: [other]\n")
	require.NoError(t, os.Rename(next, file))
	run.WaitFor("policy file is in force")
	run.WaitFor("Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
	assert.Regexp(t, `policy file is in force file=\S+ generation=\d+`, stderr.String())
	assert.NotContains(t, stderr.String(), `"other"`, "the flag is above the file in the new policy, too")
}

func TestPolicyCheck(t *testing.T) {
	l := commandtest.NewLab(t)
	t.Setenv("TE_FL_PREFER", "vendro") // says nothing about a file
	good, foreign, bad := filepath.Join(l.Dir, "good.yaml"), filepath.Join(l.Dir, "foreign.yaml"), filepath.Join(l.Dir, "bad.yaml")
	l.Write(good, "prefer: vendor\nper_op: {generic_gemm: vendor:openblas|flagos}\n")
	l.Write(foreign, "deny_vendors: [openblsa]\nper_op:\n  genric_gemm: vendor\n"+
		"rules:\n- phase: backward\n  allow_vendors: [onednnn]\n  per_op: {swigul: impl:default.flagso}\nverify: {fraction: 1, ops: rmsnorm_fdw}\n")
	l.Write(bad, "prefr: vendor\nstrict: 7\n")

	got := commandtest.Run(t, "policy", "check", good, foreign)
	assert.Zero(t, got.Code)
	assert.Equal(t, good+": valid\n"+foreign+": valid\n", got.Out)
	assert.Equal(t, 6, strings.Count(got.Stderr, "WARN"), got.Stderr)
	for _, part := range []string{foreign + `:1 names vendor "openblsa"`, foreign + `:3 names op "genric_gemm"`, `did you mean "openblas"?`, `did you mean "generic_gemm"?`,
		foreign + `:5 names vendor "onednnn"`, foreign + `:7 names op "swigul"`, foreign + `:7 names impl "default.flagso"`, foreign + `:8 names op "rmsnorm_fdw"`} {
		assert.Contains(t, got.Stderr, part)
	}

	got = commandtest.Run(t, "policy", "check", "--strict", good, foreign, bad)
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, good+": valid\n", got.Out)
	assert.Equal(t, 8, strings.Count(got.Stderr, "primus: error: "), got.Stderr)
	for _, part := range []string{bad + ":1:1", bad + ":2:9", foreign + ":1", foreign + ":3"} {
		assert.Contains(t, got.Stderr, part)
	}

	got = commandtest.Run(t, "policy", "check")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "no policy file given")
}

// The plugins that a file names are loaded, so the vendors that they bring are known.
func TestPolicyCheckLoadsPlugins(t *testing.T) {
	t.Parallel()
	lib := commandtest.BuildPlugin(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	with := write("with.yaml", "plugin_modules: ["+lib+"]\nper_op: {residual_add: vendor:acme|flagos}\n")
	without := write("without.yaml", "per_op: {residual_add: vendor:acme|flagos}\n")
	absent := write("absent.yaml", "plugin_modules: [/absent/libacme.so]\nallow_vendors: [acme]\n")

	got := commandtest.RunChild(t, nil, "policy", "check", "--strict", with)
	assert.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, with+": valid\n", got.Out)
	assert.Empty(t, got.Stderr)
	got = commandtest.RunChild(t, nil, "policy", "check", "--strict", with, without, absent)
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, with+": valid\n", got.Out)
	assert.Contains(t, got.Stderr, without+`:1 names vendor "acme"`, "what another file names does not count")
	assert.Contains(t, got.Stderr, "primus: error: not used: plugin /absent/libacme.so: ")
	got = commandtest.RunChild(t, nil, "policy", "check", absent)
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, "WARN  not used: plugin /absent/libacme.so: ")
	assert.Contains(t, got.Stderr, absent+`:2 names vendor "acme"`)

	name := write("name.yaml", "plugin_modules: ["+filepath.Base(lib)+"]\nper_op: {residual_add: vendor:acme|flagos}\n")
	got = commandtest.RunChild(t, nil, "policy", "check", "--strict", "--plugin-dir", filepath.Dir(lib), name)
	assert.Zero(t, got.Code, got.Stderr)
}

// A policy that a run could not use is noticed here, and by the run itself, which goes on.
func TestPolicyCheckForARun(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	dead := l.Policy("per_op: {generic_gemm: vendor:nvidia}\n")
	got := commandtest.Run(t, "policy", "check", dead)
	assert.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, `op "generic_gemm" would have no impl`)
	got = commandtest.Run(t, "policy", "check", "--strict", dead)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, `not in the per-op order vendor:nvidia (`+dead+`:1)`)

	file := filepath.Join(l.Dir, "run.yaml")
	l.Write(file, "prefer: flagos\n")
	run := commandtest.Start(t, l.Args("train_iters=1000000", "log_interval=1", "--policy", file, "--serve", "127.0.0.1:0")...)
	stderr := run.Stderr
	run.WaitFor("Op 'multi_tensor_adam' using")
	address := regexp.MustCompile(`service on http://(\S+)/`).FindStringSubmatch(stderr.String())[1]

	got = commandtest.Run(t, "policy", "check", "--for", address, dead)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, onlyErrorOf(t, got), `would refuse it: policy: it leaves calls without an impl: op "generic_gemm" is in use, served by default.flagos`)
	got = commandtest.Run(t, "policy", "check", "--for", "http://"+address, l.Policy("per_op: {swiglu: reference}\n"))
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "where 1 ops change")
	got = commandtest.Run(t, "policy", "check", "--for", address, l.Policy("per_op: {rmsnorm_fwd: impl:default.flagos}\ndeny_vendors: [acne]\n"))
	assert.Contains(t, got.Stderr, `names vendor "acne"`)

	l.Write(file, "per_op: {generic_gemm: vendor:nvidia}\n")
	run.WaitFor("policy file is not used; the previous policy stays in force")
	assert.Contains(t, stderr.String(), `op \"generic_gemm\" is in use`)
	before := strings.Count(stderr.String(), " step ")
	require.Eventually(t, func() bool { return strings.Count(stderr.String(), " step ") > before }, 2*time.Minute, 10*time.Millisecond, "training goes on")
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)

	got = commandtest.Run(t, "policy", "check", "--for", address, file)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "ask the run at http://"+address)
	for _, wrong := range []string{"run", "ftp://h:1", "h:1?x=1", "http://:9400"} {
		got = commandtest.Run(t, "policy", "check", "--for", wrong, file)
		assert.Equal(t, 2, got.Code, wrong)
		assert.Contains(t, got.Stderr, "want the address of the service of a run")
	}
}

// An impl that is fast for large products only declines small ones, which a run has for the text at
// its end: a policy that leaves no other impl for them is refused before the first step, and by a
// run that trains.
func TestPolicyThatDeclinesSmallProducts(t *testing.T) {
	if reason := commandtest.Unavailable(t, "vendor.onednn", nil); reason != "" {
		t.Skip(reason)
	}
	l := commandtest.NewLab(t)
	env := []string{"PRIMUS_ONEDNN="} // which is found
	dead := []string{"per_op: {generic_gemm: vendor:onednn}\n", "prefer: vendor\nstrict: true\n"}
	for _, text := range dead {
		file := l.Policy(text)
		got := commandtest.RunChild(t, env, l.Args("--policy", file, "train_iters=2")...)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, onlyErrorOf(t, got), `policy: it leaves calls without an impl: op "generic_gemm" is called`)
		assert.Contains(t, got.Stderr, `impl "vendor.onednn": given a `)
		assert.NotContains(t, got.Stderr, " step 1", "no step was computed")
		got = commandtest.RunChild(t, env, "policy", "check", "--config", l.Exp, file)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stderr, `op "generic_gemm" is called`)
	}
	file := filepath.Join(l.Dir, "live.yaml")
	l.Write(file, "prefer: flagos\n")
	run := l.Start(nil, "train_iters=1000000", "log_interval=1", "--policy", file)
	run.WaitFor("step 1/")
	for i, text := range dead {
		l.Write(file, text)
		require.Eventually(t, func() bool {
			return strings.Count(run.Log.String(), "policy file is not used; the previous policy stays in force") == i+1
		}, 2*time.Minute, 10*time.Millisecond)
	}
	before := strings.Count(run.Log.String(), " step ")
	require.Eventually(t, func() bool { return strings.Count(run.Log.String(), " step ") > before }, 2*time.Minute, 10*time.Millisecond, "training goes on")
	require.NoError(t, run.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()), run.Log.String())
}

// onlyErrorOf returns the error of a command that may warn, too.
func onlyErrorOf(t *testing.T, got commandtest.Outcome) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(got.Stderr, "primus: error: "), got.Stderr)
	return got.Stderr[strings.Index(got.Stderr, "primus: error: "):]
}

func TestPolicySchema(t *testing.T) {
	got := commandtest.Run(t, "policy", "schema")
	assert.Zero(t, got.Code)
	assert.Equal(t, policyfile.Schema(), got.Out)
	assert.True(t, json.Valid([]byte(got.Out)))
	assert.ErrorContains(t, commandtest.Fails("policy", "schema"), "write the schema")
}
