package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		give string
		want []string
	}{
		{"trian", []string{`unknown command "trian"`, `did you mean "train"`, "primus --help"}},
		{"trian --config x", []string{`unknown command "trian"`, `did you mean "train"`}},
		{"pretrain --config x", []string{`did you mean "primus train pretrain"`}},
		{"train pretrian", []string{`unknown command "pretrian" for "primus train"`, `did you mean "pretrain"`}},
		{"train pretrian --config x", []string{`unknown command "pretrian"`, `did you mean "pretrain"`}},
		{"train --config x pretrian", []string{`unknown command "pretrian"`}},
		{"train exp.yaml", []string{`did you mean --config exp.yaml?`}},
		{"train foo --config x", []string{`no file or folder "foo" here`, "key=value"}},
		{"train posttrain", []string{"no experiment given", "--config FILE"}},
		{"train posttrain lr=1", []string{"no experiment given", "primus train posttrain --help"}},
		{"train config=x.yaml", []string{"no experiment given", "did you mean --config x.yaml?"}},
		{"train --confg x", []string{"unknown flag --confg", "did you mean --config?"}},
		{"train --config x --metric-addr=y", []string{"unknown flag --metric-addr", "did you mean --metrics-addr?"}},
		{"train -config x", []string{"unknown flag -config", "did you mean --config?"}},
		{"train --config", []string{"--config needs a value"}},
		{"train --config --threads 2", []string{"--config needs a value"}},
		{"train --config x --metrics-addr", []string{"--metrics-addr needs a value", "127.0.0.1:9400"}},
		{"train --config x --metrics-addr 9400", []string{`--metrics-addr: given "9400"`, "HOST:PORT"}},
		{"train --config x --metrics-textfile run.txt", []string{`--metrics-textfile: given "run.txt"`, "ends with .prom"}},
		{"train --config x --peak-tflops=-1", []string{"--peak-tflops: given -1", "TFLOP/s"}},
		{"train --config x --peak-tflops NaN", []string{"--peak-tflops: given NaN", "TFLOP/s"}},
		{"train --config x --peak-tflops fast", []string{`--peak-tflops: given "fast"`, "TFLOP/s"}},
		{"train --config x --threads two", []string{`--threads: given "two"`, "number"}},
		{"train --config x --threads=-1", []string{`--threads: given "-1"`, "number"}},
		{"ops lst", []string{`unknown command "lst" for "primus ops"`, `did you mean "list"`}},
		{"ops list genric_gemm", []string{`"genric_gemm"`, `did you mean "generic_gemm"`}},
		{"ops list nonexistent", []string{`op "nonexistent"`, "not registered"}},
		{"ops list -o yaml", []string{`--output: given "yaml"`, "table or json"}},
		{"ops list --outptu json", []string{"unknown flag --outptu", "did you mean --output?"}},
		{"ops explian", []string{`unknown command "explian" for "primus ops"`, `did you mean "explain"`}},
		{"ops explain rmsnorm_fdw", []string{`op "rmsnorm_fdw"`, `did you mean "rmsnorm_fwd"`}},
		{"ops explain swiglu swigul", []string{`op "swigul"`, `did you mean "swiglu"`}},
		{"ops verify swiglu --impl vendor.nobody", []string{`no impl that runs on this machine matches swiglu --impl "vendor.nobody"`}},
		{"ops resolve --catalog x", []string{"given 0 ops, want one"}},
		{"ops resolve a b --catalog x", []string{"given 2 ops, want one"}},
		{"ops resolve a", []string{"no catalogue given", "--catalog FILE"}},
		{"ops resolve a --catalog", []string{"--catalog needs a value", "JSON"}},
		{"ops resolve a --catalgo x", []string{"unknown flag --catalgo", "did you mean --catalog?"}},
		{"config shwo", []string{`unknown command "shwo" for "primus config"`, `did you mean "show"`}},
		{"config show", []string{"no experiment given", "--config FILE"}},
		{"config show exp.yaml", []string{`did you mean --config exp.yaml?`}},
		{"config show --config x -o xml", []string{`--output: given "xml"`, "yaml, json or toml"}},
		{"config show --config x -o", []string{"--output needs a value: yaml, json or toml"}},
		{"config show --config x --orgin", []string{"unknown flag --orgin", "did you mean --origin?"}},
		{"config show --config x --origin=maybe", []string{`--origin: given "maybe"`, "true or false"}},
		{"config show --config x --module", []string{"--module needs a value", "pre_trainer"}},
		{"config show --config x --configs-dir /nonexistent", []string{`--configs-dir: "/nonexistent" is not a directory`}},
		{"config show --config x --export-config x.ini", []string{`--export-config: given "x.ini"`, ".toml"}},
		{"config show --config x a=1 a.b=2", []string{"a.b cannot be set"}},
		{"config diff a.yaml", []string{"given 1 experiments, want two"}},
		{"config diff a b --strict", []string{"unknown flag --strict"}},
		{"config validate", []string{"no experiment given: want FILE…"}},
		{"train --config x --export_config", []string{"--export-config needs a value"}},
		{"train --config x --strict-config=si", []string{`--strict-config: given "si"`, "true or false"}},
		{"policy shwo", []string{`unknown command "shwo" for "primus policy"`, `did you mean "show"`}},
		{"policy show x", []string{`unexpected argument "x"`}},
		{"version now", []string{`unexpected argument "now"`}},
		{"help trian", []string{`unknown command "trian"`, `did you mean "train"`}},
		{"help train pretrian", []string{`unknown command "pretrian" for "primus train"`}},
		{"completion tcsh", []string{`unknown command "tcsh"`}},
		{"-x", []string{"unknown flag -x"}},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			got := commandtest.Run(t, strings.Fields(tt.give)...)
			assert.Equal(t, 2, got.Code)
			assert.Empty(t, got.Out)
			for _, part := range tt.want {
				assert.Contains(t, got.Stderr, part)
			}
			assert.Equal(t, 1, strings.Count(got.Stderr, "\n"), "one line: %s", got.Stderr)
			assert.LessOrEqual(t, strings.Count(got.Stderr, "; see primus"), 1, got.Stderr)
		})
	}
}

func TestHelp(t *testing.T) {
	tests := []struct {
		give string
		want []string
	}{
		{"", []string{"primus train pretrain --config", "Available Commands", "ops", "version", "completion"}},
		{"--help", []string{"Available Commands"}},
		{"ops", []string{"list", "explain", "resolve"}},
		{"policy", []string{"show"}},
		{"config", []string{"show", "diff", "validate"}},
		{"config show --help", []string{"primus config show --config exp.yaml --origin lr=1e-4", "--module NAME", "--configs-dir DIR", "yaml, json or toml"}},
		{"config diff -h", []string{"primus config diff bf16.yaml fp8.yaml"}},
		{"config validate --help", []string{"primus config validate exp.yaml", "--strict-config"}},
		{"ops resolve --help", []string{"--catalog FILE", "impl_id", "no_candidate"}},
		{"train --help", []string{"--config FILE", "--metrics-addr HOST:PORT", "pretrain", "posttrain", "key=value"}},
		{"train -h", []string{"--config FILE"}},
		{"train pretrain lr=1 --config x -h", []string{"--config FILE"}},
		{"train pretrain --config -h", []string{"--config FILE"}},
		{"help train pretrain", []string{"--config FILE"}},
		{"completion", []string{"bash", "zsh", "fish"}},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			got := commandtest.Run(t, strings.Fields(tt.give)...)
			assert.Zero(t, got.Code)
			assert.Empty(t, got.Stderr)
			for _, part := range tt.want {
				assert.Contains(t, got.Out, part)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for _, give := range []string{"version", "--version"} {
		got := commandtest.Run(t, give)
		assert.Zero(t, got.Code)
		assert.Regexp(t, `^primus (\S+ )+go1\.\S+ \w+/\w+\n$`, got.Out)
		assert.NotContains(t, got.Out, "  ")
	}
	got := commandtest.Run(t, "version", "-o", "json")
	var v struct{ Version, Go, Platform string }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &v))
	assert.NotEmpty(t, v.Version)
	assert.Contains(t, v.Platform, "/")
}

// B15: every command that reads a variable refuses a wrong value of it.
func TestEnvironmentErrors(t *testing.T) {
	l := commandtest.NewLab(t)
	tests := []struct {
		variable, value string
		want            []string
		args            []string
	}{
		{"TE_FL_PREFER", "vendro", []string{`environment TE_FL_PREFER="vendro"`, "at 1", `did you mean "vendor"`}, l.Args()},
		{"TE_FL_PREFER", "vendro", []string{`did you mean "vendor"`}, []string{"ops", "list"}},
		{"TE_FL_STRICT", "maybe", []string{"TE_FL_STRICT", `"maybe"`, "true"}, l.Args()},
		{"TE_FL_PER_OP", "generic_gemm=vendor|flags", []string{"TE_FL_PER_OP", "at 21", `did you mean "flagos"`}, l.Args()},
		{"TE_FL_DENY_VENDORS", "a;b", []string{"TE_FL_DENY_VENDORS", "commas"}, l.Args()},
		{"TEFL_LOG_LEVEL", "INF", []string{"TEFL_LOG_LEVEL", `did you mean "INFO"`}, l.Args()},
		{"TEFL_LOG_LEVEL", "foo", []string{`environment TEFL_LOG_LEVEL="foo"`, "want DEBUG, INFO, WARNING or ERROR"}, []string{"ops", "list"}},
		{"TEFL_LOG_LEVEL", "foo", []string{`environment TEFL_LOG_LEVEL="foo"`}, []string{"policy", "show"}},
		{"TEFL_LOG_LEVEL", "foo", []string{`environment TEFL_LOG_LEVEL="foo"`}, []string{"plugins", "list"}},
		{"TEFL_LOG_FORMAT", "upstrem", []string{`did you mean "upstream"?`}, l.Args()},
		{"TEFL_LOG_FORMAT", "upstrem", []string{`did you mean "upstream"?`}, l.Args("--dry-run")},
		{"STEPMESH_BACKEND", "CPO", []string{`STEPMESH_BACKEND="CPO"`, `did you mean "CPU"`}, l.Args()},
		{"PRIMUS_THREADS", "many", []string{`PRIMUS_THREADS: given "many"`, "number"}, l.Args()},
		{"PRIMUS_METRICS_ADDR", "9400", []string{`"9400"`, "HOST:PORT"}, l.Args()},
	}
	for _, tt := range tests {
		t.Run(tt.variable+"="+tt.value, func(t *testing.T) {
			t.Setenv(tt.variable, tt.value)
			got := commandtest.Run(t, tt.args...)
			assert.Equal(t, 2, got.Code)
			for _, part := range tt.want {
				assert.Contains(t, got.Stderr, part)
			}
			assert.Equal(t, 1, strings.Count(got.Stderr, "primus: error: "), got.Stderr)
			assert.NoDirExists(t, l.Workspace)
		})
	}
}

// A variable of dispatch that means nothing is a warning with the nearest name, once, in every
// command that reads the policy; with --strict-config it is an error before anything is written.
func TestUnknownVariables(t *testing.T) {
	l := commandtest.NewLab(t)
	t.Setenv("TE_FL_PREFR", "vendor")
	t.Setenv("TEFL_STRICT", "1")
	t.Setenv("TE_FL_BACKEND_PATH", "x")
	warnings := []string{
		"environment TE_FL_PREFR has no effect, there is no such variable; did you mean TE_FL_PREFER?",
		"environment TEFL_STRICT has no effect, there is no such variable; did you mean TE_FL_STRICT?",
		"environment TE_FL_BACKEND_PATH has no effect, there is no such variable; want one of TE_FL_PREFER, ",
	}
	catalog := filepath.Join(t.TempDir(), "impls.json")
	l.Write(catalog, `[{"op": "gemm", "impl_id": "default.flagos", "kind": "flagos"}]`)
	for _, args := range [][]string{
		l.Args("train_iters=1"), l.Args("--dry-run"), {"ops", "list"}, {"policy", "show"}, {"plugins", "list"},
		{"ops", "resolve", "gemm", "--catalog", catalog}, {"ops", "diff", "--to-prefer", "vendor"},
	} {
		got := commandtest.Run(t, args...)
		assert.Zero(t, got.Code, got.Stderr)
		for _, text := range warnings {
			assert.Equal(t, 1, strings.Count(got.Stderr, "WARN  "+text), "%v: %s", args, got.Stderr)
		}
	}
	strict := commandtest.NewLab(t)
	got := commandtest.Run(t, strict.Args("--strict-config")...)
	assert.Equal(t, 2, got.Code)
	for _, text := range warnings {
		assert.Equal(t, 1, strings.Count(got.Stderr, "--strict-config: "+text), got.Stderr)
	}
	assert.NoDirExists(t, strict.Workspace)
}

// The lines of the op manager begin as in TransformerEngine-FL where that is asked for.
func TestUpstreamLogFormat(t *testing.T) {
	t.Setenv("TEFL_LOG_FORMAT", "upstream")
	t.Setenv("TEFL_LOG_LEVEL", "INFO")
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	file, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	for _, text := range []string{got.Stderr, string(file)} {
		assert.Regexp(t, `(?m)^\[TE-FL \w+\.go:\d+ INFO\] Registered impl_ids: \['default\.flagos', `, text)
		assert.Regexp(t, `(?m)^\[TE-FL \w+\.go:\d+ INFO\] Op 'rmsnorm_fwd' using 'default\.flagos' \(kind=flagos, vendor=`, text)
	}
	assert.Regexp(t, `(?m)^\d\d:\d\d:\d\d INFO  step 1/1 `, got.Stderr)
}

func TestAllPolicyErrorsAreReportedTogether(t *testing.T) {
	t.Setenv("TE_FL_PREFER", "vendro")
	t.Setenv("TE_FL_STRICT", "maybe")
	got := commandtest.Run(t, "ops", "list")
	assert.Equal(t, 2, got.Code)
	assert.Equal(t, 2, strings.Count(got.Stderr, "primus: error: "), got.Stderr)
}

// A wrong value of a flag is answered with what is wanted, not with a type of Go.
func TestFlagsSayWhatTheyWant(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch want := cli.Wants(f); want {
			case "uint", "int", "int64", "float64", "duration", "stringArray", "stringSlice":
				assert.Fail(t, "a type of Go", "%s --%s: want %s", cmd.CommandPath(), f.Name, want)
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(command.NewRoot(command.Streams{}))
}
