package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/opmanager"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// policyIn writes a policy file.
func policyIn(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestOpsDiff(t *testing.T) {
	dir := t.TempDir()
	today := policyIn(t, dir, "today.yaml", "prefer: flagos\n")
	tomorrow := policyIn(t, dir, "tomorrow.yaml", "per_op:\n  swiglu: reference\n  rmsnorm_*: reference|flagos\n")

	got := primus(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "-o", "json")
	require.Zero(t, got.code, got.stderr)
	var changes []struct{ Op, Layers, Phase, From, To, Reason string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &changes))
	ops := map[string]string{}
	for _, c := range changes {
		ops[c.Op] = c.Reason
		assert.Equal(t, "default.flagos", c.From)
		assert.Equal(t, "reference.go", c.To)
	}
	assert.Contains(t, ops, "rmsnorm_fwd")
	assert.Contains(t, ops, "rmsnorm_bwd")
	assert.Equal(t, "not in the per-op order reference ("+tomorrow+":2)", ops["swiglu"])

	got = primus(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "--exit-code", "residual_add", "swiglu")
	assert.Equal(t, 1, got.code)
	assert.Empty(t, got.stderr)
	assert.Contains(t, rowsOf(got.out), "swiglu -")

	got = primus(t, "ops", "diff", "--policy", today, "--policy", today, "--exit-code")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "no op changes its impl\n", got.out)

	// What both have in common is laid over both.
	got = primus(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "--per-op", "*=reference")
	assert.Equal(t, "no op changes its impl\n", got.out)
}

// Flags and variables make up both policies, and flags of a side one of them.
func TestOpsDiffOfFlags(t *testing.T) {
	t.Setenv("TE_FL_PREFER", "reference")
	got := primus(t, "ops", "diff", "--from-prefer", "flagos", "--per-op", "swiglu=flagos", "swiglu", "residual_add")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, rowsOf(got.out), "residual_add -")
	assert.Contains(t, got.out, "later in the order reference|flagos|vendor (environment TE_FL_PREFER)")
	assert.NotContains(t, got.out, "swiglu")
	got = primus(t, "ops", "diff", "--prefer", "flagos", "--to-per-op", "swiglu=reference", "--exit-code")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "(flag --to-per-op at 1)")
	assert.Equal(t, 1, strings.Count(got.out, "reference.go"), got.out)
}

// Each side has its plugins, as explain has them.
func TestOpsDiffLoadsPlugins(t *testing.T) {
	t.Parallel()
	library := buildPlugin(t)
	named := []string{"TE_FL_PLUGIN_MODULES=" + library}
	for name, got := range map[string]outcome{
		"of both": runChild(t, named, "ops", "diff", "--from-prefer", "flagos", "--to-prefer", "vendor", "residual_add", "--exit-code"),
		"of B":    runChild(t, nil, "ops", "diff", "--prefer", "vendor", "--to-plugin-modules", library, "residual_add", "--exit-code"),
	} {
		assert.Equal(t, 1, got.code, "%s: %s", name, got.stderr)
		assert.Contains(t, rowsOf(got.out), "residual_add -", name)
		assert.Contains(t, got.out, "vendor.acme", name)
	}
}

// Rules are compared where they differ from what holds elsewhere.
func TestOpsDiffOfRules(t *testing.T) {
	dir := t.TempDir()
	a := policyIn(t, dir, "a.yaml", "rules:\n  - {layers: 0-3, prefer: reference}\n  - {phase: backward, per_op: {swiglu: reference}}\n")
	b := policyIn(t, dir, "b.yaml", "per_op: {swiglu: 'vendor:none'}\nrules:\n  - {layers: '2,5', per_op: {residual_add: reference}}\n")
	diff := func(from, to string) []string {
		got := primus(t, "ops", "diff", "--policy", from, "--policy", to, "-o", "json", "swiglu", "residual_add")
		require.Zero(t, got.code, got.stderr)
		var changes []struct{ Op, Layers, Phase, From, To, Reason string }
		require.NoError(t, json.Unmarshal([]byte(got.out), &changes))
		var lines []string
		for _, c := range changes {
			lines = append(lines, fmt.Sprintf("%s %q %q %s>%s", c.Op, c.Layers, c.Phase, c.From, c.To))
			if c.From == "" {
				assert.Regexp(t, `^order \S+ \(.+\)$`, c.Reason)
			}
		}
		return lines
	}
	assert.Equal(t, []string{
		`swiglu "" "" default.flagos>`,
		`swiglu "" "backward" reference.go>`,
		`swiglu "0-1" "" reference.go>`,
		`residual_add "0-1" "" reference.go>default.flagos`,
		`swiglu "2" "" reference.go>`,
		`swiglu "3" "" reference.go>`,
		`residual_add "3" "" reference.go>default.flagos`,
		`swiglu "4" "backward" reference.go>`,
		`residual_add "5" "" default.flagos>reference.go`,
		`swiglu "5" "backward" reference.go>`,
	}, diff(a, b))
	assert.Contains(t, diff(b, a), `swiglu "" "" >default.flagos`)
}

func TestOpsDiffUsage(t *testing.T) {
	dir := t.TempDir()
	fine := policyIn(t, dir, "fine.yaml", "prefer: flagos\n")
	for want, args := range map[string][]string{
		"both policies are the same, want two: --policy A --policy B": {"--policy", fine},
		"got 3 policy files":                                       {"--policy", fine, "--policy", fine, "--policy", fine},
		`flag --to-prefer="vendro"`:                                {"--to-prefer", "vendro"},
		"--from-prefer needs a value: flagos, vendor or reference": {"--from-prefer"},
		`unknown kind "vender"`:                                    {"--policy", fine, "--policy", policyIn(t, dir, "bad.yaml", "prefer: vender\n")},
		"primus: error: flag --policy: policy: ":                   {"--policy", fine, "--policy", filepath.Join(dir, "none.yaml")},
		`op "swigul"`:                                              {"--policy", fine, "--policy", fine, "swigul"},
	} {
		got := primus(t, append([]string{"ops", "diff"}, args...)...)
		assert.NotZero(t, got.code)
		assert.Contains(t, got.stderr, want)
		assert.Empty(t, got.out)
	}
}

func TestOpsVerify(t *testing.T) {
	got := primus(t, "ops", "verify", "residual_add", "swiglu", "--dtype", "f32,f16", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	var results []struct {
		Op, Impl_id, DType string
		Served, Declined   int
		Failures           []any
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &results))
	require.Len(t, results, 4)
	for _, r := range results {
		assert.Equal(t, "default.flagos", r.Impl_id)
		assert.Empty(t, r.Failures)
		assert.Positive(t, r.Served+r.Declined)
	}

	got = primus(t, "ops", "verify", "--op", "residual_*", "--impl", "reference.*", "--dtype", "f32")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "pass")

	for want, args := range map[string][]string{
		"primus ops list shows no impl that runs on this machine and fits": {"--impl", "vendor.none"},
		`--dtype: got "f33", want one of f64, f32`:                         {"--dtype", "f33"},
		`op "swigul"`: {"swigul"},
		"--failures: got -1, want a number from 0":       {"--failures", "-1"},
		`--impl: got "[", want a name in which * stands`: {"--impl", "["},
	} {
		got := primus(t, append([]string{"ops", "verify"}, args...)...)
		assert.Equal(t, 2, got.code, want)
		assert.Contains(t, got.stderr, want)
	}
}

func TestExplainCalls(t *testing.T) {
	got := primus(t, "ops", "explain", "swiglu", "--dtype", "bf16", "--shape", "4x8")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "calls: first operand bf16[4 8]\n")
	for want, args := range map[string][]string{
		`; did you mean "bf16"?`:         {"--dtype", "bf61"},
		`--shape: got "4x", want the`:    {"--shape", "4x"},
		"--layer: got -2, want a number": {"--layer", "-2"},
		`did you mean "forward"`:         {"--phase", "forwards"},
	} {
		got := primus(t, append([]string{"ops", "explain", "swiglu"}, args...)...)
		assert.Equal(t, 2, got.code, want)
		assert.Contains(t, got.stderr, want)
	}
}

// Impls that are part of this module have the version of the build, by which a manifest tells builds apart.
func TestManifestHasTheVersionOfTheBuild(t *testing.T) {
	l := newLab(t)
	t.Setenv("TE_FL_PER_OP", "residual_add=reference")
	require.Zero(t, l.train("train_iters=1").code)
	text, err := os.ReadFile(l.path("manifest.json"))
	require.NoError(t, err)
	var manifest opmanager.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	sources := map[string]int{}
	for _, op := range manifest.Ops {
		if op.Source == "flagos" || op.Source == "reference" {
			sources[op.Source]++
			assert.Equal(t, buildinfo.Version(), op.Version, op.Op)
		}
	}
	assert.Len(t, sources, 2)
}

func TestRequireManifest(t *testing.T) {
	l := newLab(t)
	require.Zero(t, l.train().code)
	manifest := l.path("manifest.json")

	got := l.train("--require-manifest", manifest, "load=none")
	require.Zero(t, got.code, got.stderr)
	got = l.train("--require-manifest", manifest, "--per-op", "swiglu=reference", "load=none")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "dispatch differs, so nothing was trained")
	assert.Contains(t, got.stderr, `op "swiglu" is served by reference.go, want default.flagos`)
	got = l.train("--require-manifest", "none.json")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "want the manifest.json of another run")
}

func TestOpsCoverage(t *testing.T) {
	got := primus(t, "ops", "coverage", "residual_add", "get_cudnn_version", "--dtype", "f32")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "| op | default.flagos | reference.go |\n|---|---|---|\n| `residual_add` | f32 ")
	assert.Contains(t, got.out, "Declared without an implementation: ")

	got = primus(t, "ops", "coverage", "--op", "residual_add", "--impl", "reference.*", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	var c struct {
		Results  []map[string]any
		Declared []string
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &c))
	assert.Len(t, c.Results, 4, "one a dtype")
	assert.Contains(t, c.Declared, "get_cudnn_version")
	assert.Equal(t, 2, primus(t, "ops", "coverage", "-o", "yaml").code)
}
