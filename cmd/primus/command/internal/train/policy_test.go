package train_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// W6, W8: later sources win, value by value, and each value knows where it came from.
func TestPolicyPrecedence(t *testing.T) {
	l := commandtest.NewLab(t)
	module := func(text string) *commandtest.Lab {
		l := commandtest.NewLab(t)
		l.InModule(text)
		return l
	}
	file := l.Policy("prefer: reference\nstrict: yes\ndeny_vendors: [filed]\nper_op: {'*_bwd': reference}\n")
	rules := filepath.Join(l.Dir, "rules.yaml")
	l.Write(rules, "rules:\n- {layers: 7, deny_vendors: acme}\n- {phase: backward, prefer: vendor}\nquarantine: {failures: 5}\nverify: 1\n")
	tests := []struct {
		name string
		lab  *commandtest.Lab
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
				"quarantine": "for 30s after 5 failures within 1m RULES:4", "verify": "always RULES:5"}},
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
			p, err := train.PolicyOf(append([]string{"--config", tt.lab.Exp}, tt.args...))
			require.NoError(t, err)
			have := map[string]string{}
			names := strings.NewReplacer(file, "FILE", rules, "RULES", tt.lab.Exp, "EXP")
			for key := range tt.want {
				have[key] = names.Replace(p[key])
			}
			assert.Equal(t, tt.want, have)
		})
	}
}
