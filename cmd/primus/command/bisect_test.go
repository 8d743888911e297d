package command_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/native/divergence"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brokenSource has an impl of residual_add whose result is wrong in one element.
func brokenSource() opregistry.Source {
	return opregistry.Source{Name: "broken", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.broken", Kind: opregistry.KindVendor, Vendor: "broken",
		Run: opregistry.Func[norm.ResidualAddArgs](func(_ *opregistry.Exec, args norm.ResidualAddArgs) error {
			a, b, sum := tensor.Data[float32](args.A), tensor.Data[float32](args.B), tensor.Data[float32](args.Output)
			for i := range sum {
				sum[i] = a[i] + b[i]
			}
			sum[5] += 0.5
			return nil
		}),
	}}}
}

// A fault that is planted in one op of one layer is found, among all other ops that run on other
// impls, and the call that is kept shows it.
func TestBisectFindsAPlantedFault(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	primustest.Long(t, "it trains again and again")
	l := commandtest.NewLab(t)
	policy := l.Policy("prefer: reference\nrules:\n  - layers: 1\n    phase: forward\n    per_op:\n      residual_add: [vendor:broken]\n")
	file := filepath.Join(t.TempDir(), "fault.safetensors")
	args := append([]string{"ops", "bisect", "--good", "flagos", "--bad", policy, "--replay-file", file, "-o", "json"}, l.Args("num_layers=3")[2:]...)
	broken := grouped(command.OpSources, brokenSource())
	got := primusWith(t, broken, args...)
	require.Equal(t, 1, got.Code, got.Stderr)
	var report divergence.Report
	require.NoError(t, json.Unmarshal([]byte(got.Out), &report), got.Out)
	assert.Equal(t, 1, report.Diverges)
	assert.Greater(t, len(report.Differ), 10)
	assert.Equal(t, []string{"residual_add"}, report.Ops)
	assert.Equal(t, []int{1}, report.Layers)
	require.NotNil(t, report.Call)
	assert.Equal(t, recording.Site{Step: 1, Number: 1, Layer: 1, Phase: oppolicy.PhaseForward}, report.Call.Site)
	assert.Equal(t, "vendor.broken", report.Call.Bad)
	assert.Equal(t, "default.flagos", report.Call.Good)
	assert.Equal(t, 1, report.Call.Match.Beyond)

	replayed := primusWith(t, broken, "ops", "replay", file, "-o", "json")
	assert.Equal(t, 1, replayed.Code, replayed.Stderr)
	var results []recording.Result
	require.NoError(t, json.Unmarshal([]byte(replayed.Out), &results))
	require.Len(t, results, 3)
	for _, r := range results {
		assert.Equal(t, r.Impl == "vendor.broken", r.Wrong(), r.Impl)
	}

	args[7] = filepath.Join(t.TempDir(), strings.Repeat("x", 250)) // longer with the end of a temporary name than a name may be
	unwritten := primusWith(t, broken, args...)
	assert.Equal(t, 1, unwritten.Code)
	assert.Contains(t, unwritten.Out, `"residual_add"`, "the search was not in vain")
	assert.Contains(t, unwritten.Stderr, "name too long")

	elsewhere := commandtest.Run(t, "ops", "replay", file) // without the source
	assert.Equal(t, 1, elsewhere.Code, elsewhere.Stderr)
	assert.Contains(t, elsewhere.Out, "fault.safetensors: the recorded result, of vendor.broken: 1 element is beyond the tolerance of the reference: operand \"output\", element 5: got 0.5")

	text := primusWith(t, broken, append([]string{"ops", "bisect", "--good", "flagos", "--bad", policy, "--replay-file", ""}, l.Args("num_layers=3")[2:]...)...)
	assert.Contains(t, text.Out, "at fault    residual_add")
	assert.Contains(t, text.Out, "in          layer 1\n")
	assert.Regexp(t, `element 5: got 0.5.*, where want is the result of default.flagos\n`, text.Out)
}

// Of several layers with a fault, the first is named.
func TestBisectFindsTheFirstNaN(t *testing.T) {
	l := commandtest.NewLab(t)
	source := opregistry.Source{Name: "nans", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.nans", Kind: opregistry.KindVendor, Vendor: "nans",
		Run: opregistry.Func[norm.ResidualAddArgs](func(_ *opregistry.Exec, args norm.ResidualAddArgs) error {
			tensor.Data[float32](args.Output)[0] = float32(math.NaN())
			return nil
		}),
	}}}
	args := append([]string{"ops", "bisect", "--good", "flagos", "--bad", "impl:vendor.nans", "--nan", "--replay-file", "", "-o", "json"}, l.Args()[2:]...)
	got := primusWith(t, grouped(command.OpSources, source), args...)
	require.Equal(t, 1, got.Code, got.Stderr)
	var report divergence.Report
	require.NoError(t, json.Unmarshal([]byte(got.Out), &report), got.Out)
	assert.Equal(t, 1, report.Diverges)
	assert.Equal(t, []float64{}, report.Bad)
	assert.Equal(t, []int{0}, report.Layers, "later layers and sums of gradients are at fault as well")
	require.NotNil(t, report.Call)
	assert.Equal(t, oppolicy.PhaseForward, report.Call.Phase)
}

func TestBisectWithoutDifference(t *testing.T) {
	l := commandtest.NewLab(t)
	got := commandtest.Run(t, append([]string{"ops", "bisect", "--bad", "flagos"}, l.Args()[2:]...)...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "no difference in 3 steps beyond 0.0001")
	assert.Regexp(t, `the losses differ by at most \S+e-\d+ of the good one`, got.Out)
	for want, args := range map[string][]string{
		"want --bad POLICY":                                        {},
		"--metric: given \"time\", want loss":                      {"--bad", "vendor", "--metric", "time"},
		"--steps: given 0":                                         {"--bad", "vendor", "--steps", "0"},
		"--bad: token \"vendor:nobody\" matches no impl of any op": {"--bad", "vendor:nobody"},
		"--bad: unknown token \"fast\"":                            {"--bad", "fast"},
		"--bad: there is no file none.yaml; want a policy file":    {"--bad", "none.yaml"},
		"both policies choose the same impl":                       {"--bad", "reference"},
		"--tolerance: given NaN, want a number >= 0":               {"--bad", "vendor", "--tolerance", "NaN"},
	} {
		got := commandtest.Run(t, append(append([]string{"ops", "bisect"}, args...), l.Args()[2:]...)...)
		assert.NotZero(t, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
}
