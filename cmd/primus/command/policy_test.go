package command_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// policy writes a policy file and returns its name.
func (l *lab) policy(text string) string {
	l.t.Helper()
	file := filepath.Join(l.dir, "policy.yaml")
	l.write(file, text)
	return file
}

// inModule adds keys beside framework and overrides.
func (l *lab) inModule(text string) {
	l.edit("    framework: native\n", "    framework: native\n"+text)
}

// W6, W8: later sources win, value by value, and each value knows where it came from.
func TestPolicyPrecedence(t *testing.T) {
	l := newLab(t)
	module := func(text string) *lab {
		l := newLab(t)
		l.inModule(text)
		return l
	}
	file := l.policy("prefer: reference\nstrict: yes\ndeny_vendors: [filed]\nper_op: {'*_bwd': reference}\n")
	rules := filepath.Join(l.dir, "rules.yaml")
	l.write(rules, "rules:\n- {layers: 7, deny_vendors: acme}\n- {phase: backward, prefer: vendor}\nquarantine: {failures: 5}\nverify: 1\n")
	tests := []struct {
		name string
		lab  *lab
		env  map[string]string
		args []string
		want map[string]string // values and sources
	}{
		{name: "defaults", lab: l, want: map[string]string{"prefer": "flagos default", "strict": "false default"}},
		{name: "file", lab: l, args: []string{"--policy", file},
			want: map[string]string{"prefer": "reference FILE:1", "strict": "true FILE:2", "deny_vendors": "filed FILE:3", "per_op": "*_bwd FILE:4"}},
		{name: "file of the environment", lab: l, env: map[string]string{"PRIMUS_POLICY": file},
			want: map[string]string{"prefer": "reference FILE:1"}},
		{name: "experiment over file", lab: module("    te_fl_prefer: vendor\n    te_fl_strict: 0\n    te_fl_deny_vendors: a,b\n"), args: []string{"--policy", file},
			want: map[string]string{"prefer": "vendor EXP:8", "strict": "false EXP:9", "deny_vendors": "a,b EXP:10", "per_op": "*_bwd FILE:4"}},
		{name: "block over file", lab: module("    dispatch:\n      prefer: vendor\n      strict:\n      per_op: {generic_gemm: [flagos]}\n"), args: []string{"--policy", file},
			want: map[string]string{"prefer": "vendor EXP:9", "strict": "true FILE:2", "per_op": "generic_gemm EXP:11"}},
		{name: "rules and settings of a block over a file", lab: module("    dispatch:\n      rules: [{layers: 0-3, prefer: reference}]\n      quarantine: off\n"),
			args: []string{"--policy", rules, "dispatch.verify.fraction=0.5"},
			want: map[string]string{"rules": "layers 0-3: prefer reference EXP:9", "quarantine": "off EXP:10",
				"verify": `0.5 of all calls override 1 "dispatch.verify.fraction=0.5"`}},
		{name: "rules and settings of a file", lab: l, args: []string{"--policy", rules},
			want: map[string]string{"rules": "layers 7: deny acme; phase backward: prefer vendor RULES:1",
				"quarantine": "for 30s after 5 failures within 1m RULES:4", "verify": "1 of all calls RULES:5"}},
		{name: "overrides belong to the experiment", lab: module("    te_fl_allow_vendors: [x]\n"),
			args: []string{"te_fl_prefer=vendor", "te_fl_per_op=rmsnorm_fwd=vendor:acme|flagos", "dispatch.strict=on"}, env: map[string]string{"TE_FL_STRICT": "no"},
			want: map[string]string{"prefer": `vendor override 1 "te_fl_prefer=vendor"`, "strict": "false environment TE_FL_STRICT",
				"allow_vendors": "x EXP:8", "per_op": `rmsnorm_fwd override 2 "te_fl_per_op=rmsnorm_fwd=vendor:acme|flagos"`}},
		{name: "deterministic_mode", lab: l, args: []string{"--policy", file, "deterministic_mode=true"},
			want: map[string]string{"deterministic": `true override 1 "deterministic_mode=true"`}},
		{name: "deterministic_mode that is off says nothing", lab: l, args: []string{"deterministic_mode=false"}, want: map[string]string{"deterministic": "false default"}},
		{name: "environment over experiment", lab: module("    te_fl_prefer: vendor\n    te_fl_strict: true\n"),
			env:  map[string]string{"TE_FL_PREFER": "flagos", "TE_FL_DENY_VENDORS": "e"},
			want: map[string]string{"prefer": "flagos environment TE_FL_PREFER", "strict": "true EXP:9", "deny_vendors": "e environment TE_FL_DENY_VENDORS"}},
		{name: "flags over everything", lab: module("    te_fl_prefer: vendor\n    te_fl_strict: true\n"),
			env: map[string]string{"TE_FL_PREFER": "vendor", "TE_FL_PER_OP": "*=flagos", "PRIMUS_PREFER": "vendor"},
			args: []string{"--policy", file, "--prefer", "flagos", "--strict", "0", "--allow_vendors=p,q", "--deny-vendors", "r",
				"--per-op", "generic_gemm=flagos", "--per-op", "swiglu=flagos"},
			want: map[string]string{"prefer": "flagos flag --prefer", "strict": "false flag --strict", "allow_vendors": "p,q flag --allow-vendors",
				"deny_vendors": "r flag --deny-vendors", "per_op": "generic_gemm,swiglu flag --per-op"}},
		{name: "no second way into the environment", lab: l, env: map[string]string{"PRIMUS_PREFER": "vendor", "PRIMUS_STRICT": "1"},
			want: map[string]string{"prefer": "flagos default", "strict": "false default"}},
		{name: "a switch alone", lab: l, args: []string{"--strict", "--prefer=Reference"},
			want: map[string]string{"prefer": "reference flag --prefer", "strict": "true flag --strict"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			p, err := command.PolicyOf(append([]string{"--config", tt.lab.exp}, tt.args...))
			require.NoError(t, err)
			have := map[string]string{}
			names := strings.NewReplacer(file, "FILE", rules, "RULES", tt.lab.exp, "EXP")
			for key := range tt.want {
				have[key] = names.Replace(p[key])
			}
			assert.Equal(t, tt.want, have)
		})
	}
}

func TestPolicyParametersAreNoUnknownParameters(t *testing.T) {
	l := newLab(t)
	l.inModule("    te_fl_prefer: reference\n    te_fl_per_op: {'*_bwd': flagos|reference}\n    dispatch: {strict: false}\n")
	got := l.train("train_iters=1")
	require.Zero(t, got.code, got.stderr)
	assert.NotContains(t, got.stderr, "te_fl_", got.stderr)
	assert.NotContains(t, got.stderr, "dispatch.", got.stderr)
	assert.Contains(t, rowsOf(got.out), "generic_gemm reference.go")
	assert.Contains(t, rowsOf(got.out), "embedding_bwd default.flagos")
}

func TestPolicyErrorsOfTrain(t *testing.T) {
	tests := []struct {
		name, module, file string
		args               []string
		code               int
		want               []string
	}{
		{name: "file", file: "prefer: vendro\n", code: 1, want: []string{"policy.yaml:1:9: prefer", `did you mean "vendor"`}},
		{name: "missing file", args: []string{"--policy", "/nonexistent.yaml"}, code: 1, want: []string{"flag --policy: ", "/nonexistent.yaml", "no such file", "expected a YAML file"}},
		{name: "no file", args: []string{"--policy"}, code: 2, want: []string{"--policy needs a value: a policy file"}},
		{name: "parameter", module: "    te_fl_prefer: vendro\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.te_fl_prefer", `did you mean "vendor"`}},
		{name: "unknown parameter", module: "    te_fl_prefr: vendor\n", code: 1, want: []string{"exp.yaml:8", `unknown key "prefr"`, `did you mean "prefer"`}},
		{name: "text of orders", args: []string{"te_fl_per_op=generic_gemm"}, code: 1, want: []string{"override 1", "has no ="}},
		{name: "block", module: "    dispatch:\n      prefer: 3\n", code: 1, want: []string{"exp.yaml:9:15", "modules.pre_trainer.dispatch.prefer", "given int 3"}},
		{name: "no block", module: "    dispatch: vendor\n", code: 1, want: []string{"exp.yaml:8", `given string "vendor", expected a mapping`}},
		{name: "both", module: "    te_fl_prefer: vendor\n    dispatch: {prefer: vendor}\n", code: 1, want: []string{"given twice", "te_fl_prefer", "dispatch.prefer"}},
		{name: "orders in both", module: "    te_fl_per_op: a=vendor\n    dispatch: {per_op: {a: vendor}}\n", code: 1, want: []string{"given twice"}},
		{name: "rule of a block", module: "    dispatch:\n      rules:\n        - layers: 0-x\n          prefer: vendor\n", code: 1,
			want: []string{"exp.yaml:10:19", "modules.pre_trainer.dispatch.rules[0].layers", `"0-x" is not a layer`}},
		{name: "quarantine of a block", module: "    dispatch: {quarantine: {backof: 3}}\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.dispatch.quarantine", `did you mean "backoff"`}},
		{name: "override of a block", args: []string{"dispatch.verify=2"}, code: 1, want: []string{`override 1 "dispatch.verify=2"`, "modules.pre_trainer.dispatch.verify", "a number from 0 to 1"}},
		{name: "rules beside the block", module: "    te_fl_rules: []\n", code: 1, want: []string{"exp.yaml:8", "modules.pre_trainer.te_fl_rules", "expected rules in the dispatch block"}},
		{name: "flag", args: []string{"--prefer", "vendro"}, code: 2, want: []string{`flag --prefer="vendro"`, `did you mean "vendor"`}},
		{name: "switch", args: []string{"--strict=maybe"}, code: 2, want: []string{`flag --strict="maybe"`}},
		{name: "blank orders", args: []string{"--per-op", " ; "}, code: 2, want: []string{`flag --per-op=" ; "`, "given a blank text"}},
		{name: "flag without value", args: []string{"--per-op"}, code: 2, want: []string{"--per-op needs a value: orders such as"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			if tt.module != "" {
				l.inModule(tt.module)
			}
			if tt.file != "" {
				tt.args = append(tt.args, "--policy", l.policy(tt.file))
			}
			got := l.train(tt.args...)
			assert.Equal(t, tt.code, got.code)
			line := onlyError(t, got)
			for _, part := range tt.want {
				assert.Contains(t, line, part)
			}
			assert.NoDirExists(t, l.workspace)
		})
	}
}

// The text names where a file was looked for, and who asked for it.
func TestMissingPolicyFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	tried := "stat policy.yml: no such file or directory (tried " + filepath.Join(dir, "policy.yml") + "); expected a YAML file"
	got := primus(t, "policy", "show", "--policy", "policy.yml")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "flag --policy: policy: read policy file: "+tried)
	got = primus(t, "policy", "check", "policy.yml")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "primus: error: policy: read policy file: "+tried)
	t.Setenv("PRIMUS_POLICY", "policy.yml")
	got = primus(t, "ops", "list")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "environment PRIMUS_POLICY: policy: read policy file: "+tried)
}

func TestPolicyErrorsOfAllSourcesAreReportedTogether(t *testing.T) {
	l := newLab(t)
	t.Setenv("TE_FL_STRICT", "maybe")
	l.inModule("    te_fl_prefer: x\n")
	got := l.train("--policy", l.policy("prefer: x\nstrict: x\n"), "--deny-vendors", "a;b")
	assert.Equal(t, 2, got.code)
	assert.Equal(t, 5, strings.Count(got.stderr, "primus: error: "), got.stderr)
}

// W8: a change of the file takes effect while training runs, and one that cannot be used does not.
func TestPolicyFileIsFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	file := l.policy("prefer: flagos\n")
	stderr, out := &primustest.Buffer{}, &primustest.Buffer{}
	root := command.NewRoot(command.Streams{Out: out, Err: stderr})
	root.SetArgs(l.args("train_iters=1000000", "log_interval=100000", "--policy", file, "--deny-vendors", "acme"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	waitFor(t, stderr, "Op 'multi_tensor_adam' using 'default.flagos'")
	l.write(file, "prefer: vendro\n")
	waitFor(t, stderr, "policy file is not used, the policy before it stays in force")
	assert.Contains(t, stderr.String(), "policy.yaml:1:9: prefer: given")
	assert.NotContains(t, stderr.String(), "switched")
	next := file + ".new"
	l.write(next, "per_op: {swiglu: reference}\ndeny_vendors: [other]\n")
	require.NoError(t, os.Rename(next, file))
	waitFor(t, stderr, "policy file is in force")
	waitFor(t, stderr, "Op 'swiglu' switched from 'default.flagos' to 'reference.go'")
	cancel()
	require.ErrorIs(t, <-ended, backend.ErrInterrupted)
	assert.Regexp(t, `policy file is in force file=\S+ generation=\d+`, stderr.String())
	assert.NotContains(t, stderr.String(), `"other"`, "the flag is above the file in the new policy, too")
}

func TestPolicyCheck(t *testing.T) {
	l := newLab(t)
	t.Setenv("TE_FL_PREFER", "vendro") // says nothing about a file
	good, foreign, bad := filepath.Join(l.dir, "good.yaml"), filepath.Join(l.dir, "foreign.yaml"), filepath.Join(l.dir, "bad.yaml")
	l.write(good, "prefer: vendor\nper_op: {generic_gemm: vendor:openblas|flagos}\n")
	l.write(foreign, "deny_vendors: [openblsa]\nper_op:\n  genric_gemm: vendor\n"+
		"rules:\n- phase: backward\n  allow_vendors: [onednnn]\n  per_op: {swigul: impl:default.flagso}\nverify: {fraction: 1, ops: rmsnorm_fdw}\n")
	l.write(bad, "prefr: vendor\nstrict: 7\n")

	got := primus(t, "policy", "check", good, foreign)
	assert.Zero(t, got.code)
	assert.Equal(t, good+": valid\n"+foreign+": valid\n", got.out)
	assert.Equal(t, 6, strings.Count(got.stderr, "WARN"), got.stderr)
	for _, part := range []string{foreign + `:1 names vendor "openblsa"`, foreign + `:3 names op "genric_gemm"`, `did you mean "openblas"?`, `did you mean "generic_gemm"?`,
		foreign + `:5 names vendor "onednnn"`, foreign + `:7 names op "swigul"`, foreign + `:7 names impl "default.flagso"`, foreign + `:8 names op "rmsnorm_fdw"`} {
		assert.Contains(t, got.stderr, part)
	}

	got = primus(t, "policy", "check", "--strict", good, foreign, bad)
	assert.Equal(t, 1, got.code)
	assert.Equal(t, good+": valid\n", got.out)
	assert.Equal(t, 8, strings.Count(got.stderr, "primus: error: "), got.stderr)
	for _, part := range []string{bad + ":1:1", bad + ":2:9", foreign + ":1", foreign + ":3"} {
		assert.Contains(t, got.stderr, part)
	}

	got = primus(t, "policy", "check")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "no policy file given")
}

// A policy that a run could not use is noticed here, and by the run itself, which goes on.
func TestPolicyCheckForARun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dead := l.policy("per_op: {generic_gemm: vendor:nvidia}\n")
	got := primus(t, "policy", "check", dead)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, `op "generic_gemm" would have no impl`)
	got = primus(t, "policy", "check", "--strict", dead)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, `not in the per-op order vendor:nvidia (`+dead+`:1)`)

	stderr, out := &primustest.Buffer{}, &primustest.Buffer{}
	root := command.NewRoot(command.Streams{Out: out, Err: stderr})
	file := filepath.Join(l.dir, "run.yaml")
	l.write(file, "prefer: flagos\n")
	root.SetArgs(l.args("train_iters=1000000", "log_interval=1", "--policy", file, "--serve", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	waitFor(t, stderr, "Op 'multi_tensor_adam' using")
	address := regexp.MustCompile(`service on http://(\S+)/`).FindStringSubmatch(stderr.String())[1]

	got = primus(t, "policy", "check", "--for", address, dead)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyErrorOf(t, got), `would refuse it: policy: refused, the previous policy stays in force: op "generic_gemm" is in use, served by default.flagos`)
	got = primus(t, "policy", "check", "--for", "http://"+address, l.policy("per_op: {swiglu: reference}\n"))
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "where 1 ops change")
	got = primus(t, "policy", "check", "--for", address, l.policy("per_op: {rmsnorm_fwd: impl:default.flagos}\ndeny_vendors: [acne]\n"))
	assert.Contains(t, got.stderr, `names vendor "acne"`)

	l.write(file, "per_op: {generic_gemm: vendor:nvidia}\n")
	waitFor(t, stderr, "policy file is not used, the policy before it stays in force")
	assert.Contains(t, stderr.String(), `op \"generic_gemm\" is in use`)
	before := strings.Count(stderr.String(), " step ")
	require.Eventually(t, func() bool { return strings.Count(stderr.String(), " step ") > before }, time.Minute, 10*time.Millisecond, "training goes on")
	cancel()
	require.ErrorIs(t, <-ended, backend.ErrInterrupted)

	got = primus(t, "policy", "check", "--for", address, file)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "ask the run at http://"+address)
	for _, wrong := range []string{"run", "ftp://h:1", "h:1?x=1", "http://:9400"} {
		got = primus(t, "policy", "check", "--for", wrong, file)
		assert.Equal(t, 2, got.code, wrong)
		assert.Contains(t, got.stderr, "want the address of the service of a run")
	}
}

// onlyErrorOf returns the error of a command that may warn, too.
func onlyErrorOf(t *testing.T, got outcome) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(got.stderr, "primus: error: "), got.stderr)
	return got.stderr[strings.Index(got.stderr, "primus: error: "):]
}

func TestPolicySchema(t *testing.T) {
	got := primus(t, "policy", "schema")
	assert.Zero(t, got.code)
	assert.Equal(t, policyfile.Schema(), got.out)
	assert.True(t, json.Valid([]byte(got.out)))
	assert.ErrorContains(t, writeSchema(), "write the schema")
}

func writeSchema() error {
	root := command.NewRoot(command.Streams{Out: fullDisk{}, Err: io.Discard})
	root.SetArgs([]string{"policy", "schema"})
	return root.Execute()
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
