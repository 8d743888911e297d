package ops_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpsDiff(t *testing.T) {
	dir := t.TempDir()
	today := commandtest.PolicyIn(t, dir, "today.yaml", "prefer: flagos\n")
	tomorrow := commandtest.PolicyIn(t, dir, "tomorrow.yaml", "per_op:\n  swiglu: reference\n  rmsnorm_*: reference|flagos\n")

	got := commandtest.Run(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var changes []struct{ Op, Layers, Phase, From, To, Reason string }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &changes))
	ops := map[string]string{}
	for _, c := range changes {
		ops[c.Op] = c.Reason
		assert.Equal(t, "default.flagos", c.From)
		assert.Equal(t, "reference.go", c.To)
	}
	assert.Contains(t, ops, "rmsnorm_fwd")
	assert.Contains(t, ops, "rmsnorm_bwd")
	assert.Equal(t, "not in the per-op order reference ("+tomorrow+":2)", ops["swiglu"])

	got = commandtest.Run(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "--exit-code", "residual_add", "swiglu")
	assert.Equal(t, 1, got.Code)
	assert.Empty(t, got.Stderr)
	assert.Contains(t, commandtest.RowsOf(got.Out), "swiglu -")

	got = commandtest.Run(t, "ops", "diff", "--policy", today, "--policy", today, "--exit-code")
	assert.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, "no op changes its impl\n", got.Out)

	// What both have in common is laid over both.
	got = commandtest.Run(t, "ops", "diff", "--policy", today, "--policy", tomorrow, "--per-op", "*=reference")
	assert.Equal(t, "no op changes its impl\n", got.Out)
}

// Flags and variables make up both policies, and flags of a side one of them.
func TestOpsDiffOfFlags(t *testing.T) {
	t.Setenv("TE_FL_PREFER", "reference")
	got := commandtest.Run(t, "ops", "diff", "--from-prefer", "flagos", "--per-op", "swiglu=flagos", "swiglu", "residual_add")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, commandtest.RowsOf(got.Out), "residual_add -")
	assert.Contains(t, got.Out, "later in the order reference|flagos|vendor (environment TE_FL_PREFER)")
	assert.NotContains(t, got.Out, "swiglu")
	got = commandtest.Run(t, "ops", "diff", "--prefer", "flagos", "--to-per-op", "swiglu=reference", "--exit-code")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, "(flag --to-per-op at 1)")
	assert.Equal(t, 1, strings.Count(got.Out, "reference.go"), got.Out)
}

// Each side has its plugins, as explain has them.
func TestOpsDiffLoadsPlugins(t *testing.T) {
	t.Parallel()
	library := commandtest.BuildPlugin(t)
	named := []string{"TE_FL_PLUGIN_MODULES=" + library}
	for name, got := range map[string]commandtest.Outcome{
		"of both": commandtest.RunChild(t, named, "ops", "diff", "--from-prefer", "flagos", "--to-prefer", "vendor", "residual_add", "--exit-code"),
		"of B":    commandtest.RunChild(t, nil, "ops", "diff", "--prefer", "vendor", "--to-plugin-modules", library, "residual_add", "--exit-code"),
	} {
		assert.Equal(t, 1, got.Code, "%s: %s", name, got.Stderr)
		assert.Contains(t, commandtest.RowsOf(got.Out), "residual_add -", name)
		assert.Contains(t, got.Out, "vendor.acme", name)
	}
}

// Rules are compared where they differ from what holds elsewhere.
func TestOpsDiffOfRules(t *testing.T) {
	dir := t.TempDir()
	a := commandtest.PolicyIn(t, dir, "a.yaml", "rules:\n  - {layers: 0-3, prefer: reference}\n  - {phase: backward, per_op: {swiglu: reference}}\n")
	b := commandtest.PolicyIn(t, dir, "b.yaml", "per_op: {swiglu: 'vendor:none'}\nrules:\n  - {layers: '2,5', per_op: {residual_add: reference}}\n")
	diff := func(from, to string) []string {
		got := commandtest.Run(t, "ops", "diff", "--policy", from, "--policy", to, "-o", "json", "swiglu", "residual_add")
		require.Zero(t, got.Code, got.Stderr)
		var changes []struct{ Op, Layers, Phase, From, To, Reason string }
		require.NoError(t, json.Unmarshal([]byte(got.Out), &changes))
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
	fine := commandtest.PolicyIn(t, dir, "fine.yaml", "prefer: flagos\n")
	for want, args := range map[string][]string{
		"both policies are the same, want two: --policy A --policy B": {"--policy", fine},
		"given 3 policy files":                                     {"--policy", fine, "--policy", fine, "--policy", fine},
		`flag --to-prefer="vendro"`:                                {"--to-prefer", "vendro"},
		"--from-prefer needs a value: flagos, vendor or reference": {"--from-prefer"},
		`unknown kind "vender"`:                                    {"--policy", fine, "--policy", commandtest.PolicyIn(t, dir, "bad.yaml", "prefer: vender\n")},
		"primus: error: flag --policy: policy: ":                   {"--policy", fine, "--policy", filepath.Join(dir, "none.yaml")},
		`op "swigul"`:                                              {"--policy", fine, "--policy", fine, "swigul"},
	} {
		got := commandtest.Run(t, append([]string{"ops", "diff"}, args...)...)
		assert.NotZero(t, got.Code)
		assert.Contains(t, got.Stderr, want)
		assert.Empty(t, got.Out)
	}
}
