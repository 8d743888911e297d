package command_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/native/divergence"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slightlyWrong has an impl of residual_add of which one sum in four is too large by a share.
func slightlyWrong(share float32) opregistry.Source {
	return opregistry.Source{Name: "slight", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.slight", Kind: opregistry.KindVendor, Vendor: "slight",
		Run: opregistry.Func[norm.ResidualAddArgs](func(_ *opregistry.Exec, args norm.ResidualAddArgs) error {
			a, b, sum := tensor.Data[float32](args.A), tensor.Data[float32](args.B), tensor.Data[float32](args.Output)
			for i := range sum {
				sum[i] = a[i] + b[i]
				if i%4 == 0 { // a norm takes out what is in all elements
					sum[i] *= 1 + share
				}
			}
			return nil
		}),
	}}}
}

// An impl whose error is within the tolerance of its op is ranked first, among all others that are
// right.
func TestByLossRanksAPlantedImplFirst(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := commandtest.NewLab(t)
	policy := l.Policy("prefer: flagos\nrules:\n  - layers: 1\n    per_op:\n      residual_add: [vendor:slight]\n")
	args := append([]string{"ops", "bisect", "--by-loss", "--policy", policy}, l.Args("num_layers=3")[2:]...)
	got := primusWith(t, grouped(command.OpSources, slightlyWrong(1e-4)), append(args, "-o", "json")...)
	require.Equal(t, 1, got.Code, got.Out+got.Stderr)
	var r divergence.Ranking
	require.NoError(t, json.Unmarshal([]byte(got.Out), &r), got.Out)
	assert.False(t, r.Explained)
	assert.Greater(t, len(r.Differ), 10)
	require.NotEmpty(t, r.Ranked)
	assert.Equal(t, []string{"residual_add"}, r.Ranked[0].Ops)
	assert.Contains(t, r.Ranked[0].Impls, "vendor.slight")
	assert.Greater(t, r.Ranked[0].Confidence, 0.999)
	assert.Len(t, r.Ranked, 1, "all others are right")
	require.NotEmpty(t, r.Layers)
	assert.Equal(t, 1, *r.Layers[0].Layer)
	assert.Less(t, r.Runs, 30, "groups are swapped, not each op alone")

	text := primusWith(t, grouped(command.OpSources, slightlyWrong(1e-4)), args...)
	assert.Equal(t, 1, text.Code, text.Stderr)
	assert.Regexp(t, `(?m)^residual_add +\S.*vendor\.slight .* 100 %$`, text.Out)
	assert.Regexp(t, `(?m)^layer 1 .* 100 %$`, text.Out)
}

// Rounding explains the effect of impls that are right, and nothing more is measured.
func TestByLossStopsWhenRoundingExplains(t *testing.T) {
	l := commandtest.NewLab(t)
	args := append([]string{"ops", "bisect", "--by-loss"}, l.Args()[2:]...)
	got := commandtest.Run(t, args...)
	require.Zero(t, got.Code, got.Out+got.Stderr)
	assert.Regexp(t, `rounding explains the effect of all \d+ ops together after 3 steps, in 8 runs`, got.Out)
	for want, more := range map[string][]string{
		"--nan is not for --by-loss":                     {"--nan"},
		"--replay-file is not for --by-loss":             {"--replay-file", "x"},
		"both policies choose the same impl of every op": {"--good", "flagos", "--bad", "flagos"},
		`--good: token "vendor:nobody" matches no impl`:  {"--good", "vendor:nobody"},
		"--steps: given 0, want at least one step":       {"--steps", "0"},
	} {
		got := commandtest.Run(t, append(args, more...)...)
		assert.NotZero(t, got.Code, more)
		assert.Contains(t, got.Stderr, want)
	}
}
