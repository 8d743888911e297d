package train_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is wrong with the input gives one error with the place, what was given, what was expected
// and what to do, and leaves nothing half written.
func TestBadInput(t *testing.T) {
	tests := []struct {
		name   string
		setUp  func(*commandtest.Lab)
		args   []string
		want   []string
		code   int  // 1 unless set
		clean  bool // nothing at all is written
		unseen bool // by a dry run
	}{
		{name: "missing experiment", setUp: func(l *commandtest.Lab) { require.NoError(l.T, os.Remove(l.Exp)) },
			want: []string{`primus: error: DIR/exp.yaml: file does not exist`, "primus init", "primus examples list"}, clean: true},
		{name: "pipe in place of an experiment", setUp: func(l *commandtest.Lab) {
			require.NoError(l.T, os.Remove(l.Exp))
			if err := exec.Command("mkfifo", l.Exp).Run(); err != nil {
				l.T.Skipf("this system makes no named pipes: %v", err)
			}
		}, want: []string{"is a named pipe, want a regular file", "--config - reads"}},
		{name: "missing example", setUp: func(l *commandtest.Lab) { l.Exp = filepath.Join(l.Dir, "llama_6M-pretrain.yaml") },
			want: []string{`llama_6M-pretrain.yaml: file does not exist`, "--config llama_6M-pretrain"}, clean: true},
		{name: "malformed YAML", setUp: func(l *commandtest.Lab) { l.Edit("modules:", "modules: [") },
			want: []string{"exp.yaml:", "YAML"}, clean: true},
		{name: "experiment without modules", setUp: func(l *commandtest.Lab) { l.Write(l.Exp, "{work_group: g, user_name: u, exp_name: e, workspace: w}\n") },
			want: []string{"exp.yaml", "modules"}, clean: true},
		{name: "unset variable", setUp: func(l *commandtest.Lab) { l.Edit("work_group: group", "work_group: ${PRIMUS_TEST_UNSET}") },
			want: []string{"exp.yaml:1", "work_group", "PRIMUS_TEST_UNSET"}, clean: true},
		{name: "unknown model preset", setUp: func(l *commandtest.Lab) { l.Edit("llama_2M.yaml", "llama_3M.yaml") },
			want: []string{"exp.yaml:9", "modules.pre_trainer.model", `"llama_3M.yaml"`, "did you mean llama_2M"}, clean: true},
		{name: "unknown module preset", setUp: func(l *commandtest.Lab) { l.Edit("pre_trainer.yaml", "pre_training.yaml") },
			want: []string{"exp.yaml:8", "modules.pre_trainer.config", `"pre_training.yaml"`}, clean: true},
		{name: "unknown framework", setUp: func(l *commandtest.Lab) {
			l.Edit("framework: native", "framework: natve")
			l.Edit("    config: pre_trainer.yaml\n    model: llama_2M.yaml\n", "    config: m.yaml\n    model: m.yaml\n")
			l.Write(filepath.Join(l.Dir, "modules", "natve", "m.yaml"), "a: 1\n")
			l.Write(filepath.Join(l.Dir, "models", "natve", "m.yaml"), "b: 1\n")
		}, args: []string{"--configs-dir", "DIR"}, want: []string{`unknown framework "natve"`, "native", `did you mean "native"`}, clean: true},
		{name: "wrong type in the file", setUp: func(l *commandtest.Lab) { l.Edit("num_layers: 1", "num_layers: one") },
			want: []string{"exp.yaml:12", "num_layers", `"one"`, "want a whole number"}, clean: true},
		{name: "wrong type on the command line", args: []string{"num_layers=two"},
			want: []string{`override 1 "num_layers=two"`, "num_layers", "want a whole number"}, clean: true},
		{name: "contradicting overrides", args: []string{"a=1", "a.b=2"}, code: 2, want: []string{"a.b", `"a=1"`}, clean: true},
		{name: "hidden_size not divisible by heads", args: []string{"hidden_size=33"},
			want: []string{`override 1 "hidden_size=33"`, "modules.pre_trainer.hidden_size", "33", "multiple of num_attention_heads"}, clean: true},
		{name: "heads not divisible by groups", args: []string{"num_query_groups=3"},
			want: []string{"num_query_groups", "3"}, clean: true},
		{name: "unknown decay style", args: []string{"lr_decay_style=cosin"}, want: []string{"lr_decay_style", "cosin", "cosine"}, clean: true},
		{name: "stage that the backend does not have", setUp: func(l *commandtest.Lab) { l.Edit("pre_trainer:", "post_trainer:") },
			args: []string{"POSTTRAIN"}, want: []string{"posttrain", "pretrain"}, clean: true},
		{name: "sequence longer than the data", args: []string{"seq_length=1000000"},
			want: []string{"seq_length", "longer than the data", "1000001", "train_data_path"}},
		{name: "missing data", args: []string{"train_data_path=/nonexistent/text"},
			want: []string{"train_data_path", "/nonexistent/text", "existing file"}},
		{name: "data without text", setUp: func(l *commandtest.Lab) { l.Write(filepath.Join(l.Dir, "empty", "x"), "") },
			args: []string{"train_data_path=DIR/empty"}, want: []string{"train_data_path", "empty"}},
		{name: "data that matches nothing", args: []string{"train_data_path=DIR/*.none"}, want: []string{"train_data_path", "*.none"}},
		{name: "run directory is a file", setUp: func(l *commandtest.Lab) { l.Write(filepath.Join(l.Workspace, "group"), "in the way") },
			want: []string{"run directory", "ws/group", "a part of the path is a file"}},
		{name: "checkpoint that does not exist", args: []string{"load=/nonexistent/checkpoint"}, want: []string{"/nonexistent/checkpoint"}},
		{name: "checkpoints below a file", setUp: func(l *commandtest.Lab) { l.Write(filepath.Join(l.Dir, "file"), "in the way") },
			args: []string{"save=DIR/file/checkpoints"}, want: []string{"DIR/file/checkpoints", "a part of the path is a file"}},
		{name: "batch larger than memory", args: []string{"global_batch_size=1000000000000"},
			want: []string{"memory: training takes at least", "the batch 120 TiB", "this process can have", "lower global_batch_size"}},
		{name: "model larger than memory", args: []string{"num_layers=1000000000000"}, want: []string{"memory: training takes at least", "lower num_layers"}},
		{name: "experts larger than memory", args: []string{"num_experts=1000000000000"}, want: []string{"memory: training takes at least", "num_experts"}},
		{name: "vocabulary larger than memory", args: []string{"vocab_size=1000000000000"}, want: []string{"memory: training takes at least", "vocab_size"}},
		{name: "activations larger than memory", args: []string{"micro_batch_size=20000000", "global_batch_size=20000000"},
			want: []string{"memory: training takes at least", "this process can have"}},
		{name: "missing policy file", args: []string{"--policy", "/nonexistent/policy.yaml"}, want: []string{"--policy", "/nonexistent/policy.yaml"}, clean: true},
		{name: "missing manifest", args: []string{"--require-manifest", "/nonexistent/manifest.json"},
			want: []string{"--require-manifest", "/nonexistent/manifest.json"}, clean: true},
		{name: "metrics address that is not ours", unseen: true, args: []string{"--metrics-addr", "192.0.2.1:9400"},
			want: []string{"192.0.2.1:9400", "HOST:PORT"}, clean: true},
		{name: "metrics file in no directory", unseen: true, args: []string{"--metrics-textfile", "/nonexistent/run.prom"},
			want: []string{"/nonexistent/run.prom", "directory must exist"}, clean: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := commandtest.NewLab(t)
			if tt.setUp != nil {
				tt.setUp(l)
			}
			stage := "pretrain"
			var more []string
			for _, arg := range tt.args {
				if arg == "POSTTRAIN" {
					stage = "posttrain"
					continue
				}
				more = append(more, strings.ReplaceAll(arg, "DIR", l.Dir))
			}
			args := append([]string{"train", stage, "--config", l.Exp}, more...)
			check := func(args []string) {
				t.Helper()
				got := commandtest.Run(t, args...)
				assert.Equal(t, max(tt.code, 1), got.Code)
				assert.Empty(t, got.Out)
				line := commandtest.OnlyError(t, got)
				for _, part := range tt.want {
					assert.Contains(t, line, strings.ReplaceAll(part, "DIR", l.Dir))
				}
			}
			if !tt.unseen {
				before := filesBelow(t, l.Dir)
				check(append(args, "--dry-run"))
				assert.Equal(t, before, filesBelow(t, l.Dir), "a dry run changes nothing")
			}
			check(args)
			if tt.clean {
				assert.NoDirExists(t, l.Workspace)
			}
			assert.Empty(t, commandtest.Leftovers(t, l.Dir))
			assert.Empty(t, l.Checkpoints())
		})
	}
}

// filesBelow returns the paths of all files and directories below dir.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}

// B15, B24: a wrong value is named with the variable, the place in it and what to write, wherever
// it stands; no command goes on with a part of the policy.
func TestBadPolicyValues(t *testing.T) {
	tests := []struct {
		variable, value, at, want string
	}{
		{"TE_FL_PREFER", "  vendro", "3", `unknown kind "vendro", want flagos, vendor, reference or tuned; did you mean "vendor"?`},
		{"TE_FL_PREFER", "default", "1", `unknown kind "default", want flagos, vendor, reference or tuned`},
		{"TE_FL_PREFER", "vendor:acme", "1", "want flagos, vendor, reference or tuned"},
		{"TE_FL_PREFER", "vendor,flagos", "1", "want flagos, vendor, reference or tuned"},
		{"TE_FL_STRICT", "2", "1", `"2" is not a switch, want 1, true, yes or on, or 0, false, no or off`},
		{"TE_FL_STRICT", "-1", "1", "is not a switch"},
		{"TE_FL_STRICT", "\ttru", "2", `"tru" is not a switch`},
		{"TE_FL_ALLOW_VENDORS", " , ", "1", "no vendor between the commas"},
		{"TE_FL_ALLOW_VENDORS", "acme, nvidia amd", "7", `vendor "nvidia amd" contains a space; separate names with commas`},
		{"TE_FL_ALLOW_VENDORS", "acme|nvidia", "1", "separate names with commas"},
		{"TE_FL_ALLOW_VENDORS", "acme,vendor:nvidia", "6", "name a single impl in a per-op order as impl:ID"},
		{"TE_FL_ALLOW_VENDORS", "acme,vendor.nvidia", "6", "give the name alone"},
		{"TE_FL_ALLOW_VENDORS", "nv*", "1", "* cannot be part of a name"},
		{"TE_FL_DENY_VENDORS", "acme;nvidia", "1", `vendor "acme;nvidia" contains ';'`},
		{"TE_FL_DENY_VENDORS", "acme,Reference", "6", `"Reference" is a kind of impl, not a vendor; name kinds in the preference or in a per-op order`},
		{"TE_FL_DENY_VENDORS", "acme,default", "6", `"default" is a kind of impl`},
		{"TE_FL_PER_OP", "generic_gemm", "1", `entry "generic_gemm" has no =, want op=token|token`},
		{"TE_FL_PER_OP", "a=flagos; =vendor", "11", `"" is not the name of an op`},
		{"TE_FL_PER_OP", "a b=flagos", "1", `"a b" is not the name of an op`},
		{"TE_FL_PER_OP", "a=flagos;b=", "10", `op "b" has no token`},
		{"TE_FL_PER_OP", "a=flagos;b=|", "10", `op "b" has no token`},
		{"TE_FL_PER_OP", "a=flagos;b=vendor;a=vendor", "19", `op "a" is given twice, first at 1; keep one`},
		{"TE_FL_PER_OP", "a=flagos|vendro", "10", `unknown token "vendro": want flagos, vendor, vendor:NAME, reference, tuned or impl:ID; did you mean "vendor"?`},
		{"TE_FL_PER_OP", "a=flagos,vendor", "3", "separate tokens with |"},
		{"TE_FL_PER_OP", "a=flagos|vendor: ", "10", "the vendor's name is missing"},
		{"TE_FL_PER_OP", "a=vendor:a b", "3", "contains a space"},
		{"TE_FL_PER_OP", "a=impl:", "3", "want impl:ID with the id of one impl"},
		{"TE_FL_PER_OP", "a=vendor.acme", "3", `did you mean "impl:vendor.acme"?`},
		{"TE_FL_PER_OP", "a=nvidia", "3", `did you mean "vendor:nvidia"?`},
		{"TE_FL_PER_OP", "a==flagos", "3", `unknown token "=flagos"`},
		{"TE_FL_PREFER_VENDOR", "vendor", "1", "is not a switch"},
		{"TE_FL_SKIP_CUDA", "maybe", "1", "is not a switch"},
	}
	for _, tt := range tests {
		t.Run(tt.variable+"="+tt.value, func(t *testing.T) {
			check := func(source string, got commandtest.Outcome) {
				t.Helper()
				assert.Equal(t, 2, got.Code)
				assert.Empty(t, got.Out)
				line := commandtest.OnlyError(t, got)
				assert.Contains(t, line, source+"="+strconv.Quote(tt.value)+": at "+tt.at+": ")
				assert.Contains(t, line, tt.want)
			}
			name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(tt.variable, "TE_FL_"), "_", "-"))
			if name != "prefer-vendor" && name != "skip-cuda" {
				check("flag --"+name, commandtest.Run(t, "policy", "show", "--"+name+"="+tt.value))
			}
			t.Setenv(tt.variable, tt.value)
			check("environment "+tt.variable, commandtest.Run(t, "policy", "show"))
			check("environment "+tt.variable, commandtest.Run(t, "ops", "list", "-o", "json"))
		})
	}
}

// What is blank in the environment is as if it were not there, and names that are not known are
// warnings.
func TestDoubtfulPolicyValues(t *testing.T) {
	for _, name := range []string{"TE_FL_PREFER", "TE_FL_PREFER_VENDOR", "TE_FL_STRICT", "TE_FL_ALLOW_VENDORS", "TE_FL_DENY_VENDORS", "TE_FL_PER_OP", "TE_FL_SKIP_CUDA", "TE_FL_CROSS_DEVICE", "TEFL_LOG_LEVEL"} {
		t.Setenv(name, " \t")
	}
	blank := commandtest.Run(t, "ops", "explain", "generic_gemm")
	assert.Zero(t, blank.Code, blank.Stderr)
	assert.Contains(t, blank.Out, "(default)")
	assert.NotContains(t, blank.Stderr, "policy: ")

	t.Setenv("TE_FL_DENY_VENDORS", "onednnn,*")
	t.Setenv("TE_FL_PER_OP", "generic_gem=vendor:openblsa|impl:default.flagso|flagos")
	got := commandtest.Run(t, "ops", "explain", "generic_gemm")
	assert.Zero(t, got.Code)
	for _, part := range []string{
		`environment TE_FL_DENY_VENDORS names vendor "onednnn", which no loaded source registers; did you mean "onednn"?`,
		`environment TE_FL_PER_OP at 1 names op "generic_gem", which no loaded source registers; did you mean "generic_gemm"?`,
		`names vendor "openblsa", which no loaded source registers; did you mean "openblas"?`,
		`names impl "default.flagso", which no loaded source registers; did you mean "default.flagos"?`,
	} {
		assert.Contains(t, got.Stderr, part)
	}
	assert.Equal(t, 4, strings.Count(got.Stderr, "WARN"), got.Stderr)
}

// W7: what a command answers is alone on standard output, whatever there is to warn of.
func TestW7WarningsAreNotOutput(t *testing.T) {
	t.Setenv("TE_FL_DENY_VENDORS", "nobody")
	t.Setenv("TEFL_LOG_LEVEL", "DEBUG")
	for _, args := range [][]string{{"ops", "explain"}, {"ops", "list"}, {"policy", "show"}} {
		got := commandtest.Run(t, append(args, "-o", "json")...)
		assert.Zero(t, got.Code, got.Stderr)
		assert.True(t, json.Valid([]byte(got.Out)), got.Out)
	}
	assert.Contains(t, commandtest.Run(t, "ops", "explain", "-o", "json").Stderr, `names vendor "nobody"`)
}

func TestUnreadableData(t *testing.T) {
	l := commandtest.NewLab(t)
	require.NoError(t, os.Chmod(l.Text, 0))
	got := asNobody(l)
	assert.Equal(t, 1, got.Code)
	line := commandtest.OnlyError(t, got)
	assert.Contains(t, line, l.Text)
	assert.Contains(t, line, "permission denied")
	assert.Empty(t, commandtest.Leftovers(t, l.Workspace))
}

func TestUnwritableRunDirectory(t *testing.T) {
	l := commandtest.NewLab(t)
	require.NoError(t, os.MkdirAll(l.Workspace, 0o555))
	got := asNobody(l)
	assert.Equal(t, 1, got.Code)
	line := commandtest.OnlyError(t, got)
	for _, part := range []string{"run directory", l.Path(), "permission denied"} {
		assert.Contains(t, line, part)
	}
	entries, err := os.ReadDir(l.Workspace)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestSecondRunInOneDirectory(t *testing.T) {
	l := commandtest.NewLab(t)
	l.Start(nil, "train_iters=1000000").WaitFor("step 1/")
	got := l.Train()
	assert.Equal(t, 1, got.Code)
	line := commandtest.OnlyError(t, got)
	assert.Contains(t, line, "in use by process")
	assert.Contains(t, line, "exp_name")
}

// trained returns a lab with checkpoints of steps 2 and 4.
func trained(t *testing.T) *commandtest.Lab {
	t.Helper()
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=4", "save_interval=2")
	require.Zero(t, got.Code, got.Stderr)
	require.Len(t, l.Checkpoints(), 2)
	return l
}

func TestBadCheckpoint(t *testing.T) {
	damage := map[string]func(t *testing.T, file string){
		"truncated": func(t *testing.T, file string) {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(file, info.Size()/2))
		},
		"corrupt": func(t *testing.T, file string) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			content[len(content)-1] ^= 1
			require.NoError(t, os.WriteFile(file, content, 0o644))
		},
		"missing": func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
	}
	for name, spoil := range damage {
		for _, file := range []string{"model.safetensors", "optimizer.safetensors", "trainer_state.json"} {
			t.Run(name+" "+file, func(t *testing.T) {
				t.Parallel()
				l := trained(t)
				bad := l.Checkpoints()[1]
				spoil(t, filepath.Join(bad, file))

				got := l.Train("load="+bad, "train_iters=6")
				assert.Equal(t, 1, got.Code, "a checkpoint that was asked for is an error")
				line := commandtest.OnlyError(t, got)
				assert.Contains(t, line, bad)
				assert.Contains(t, line, file)
				assert.Len(t, l.Checkpoints(), 2)

				got = l.Train("train_iters=6")
				assert.Zero(t, got.Code, "going on falls back to the one before: %s", got.Stderr)
				assert.Contains(t, got.Stderr, "WARN")
				assert.Regexp(t, `resuming from checkpoint step=2\b`, got.Stderr)
				assert.Len(t, l.Records(), 6)
			})
		}
	}
}

func TestCheckpointOfAnotherShape(t *testing.T) {
	t.Parallel()
	l := trained(t)
	before := l.Checkpoints()
	for _, change := range []string{"hidden_size=64", "num_layers=2", "ffn_hidden_size=96"} {
		for _, load := range [][]string{nil, {"load=" + before[1]}} {
			got := l.Train(append(load, change, "train_iters=6")...)
			assert.Equal(t, 1, got.Code)
			assert.Contains(t, got.Stderr, filepath.Base(before[1]))
			assert.Contains(t, got.Stderr, strings.Split(change, "=")[0])
			assert.Equal(t, before, l.Checkpoints(), "the checkpoints are untouched")
		}
	}
}
