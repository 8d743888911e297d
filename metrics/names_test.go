package metrics_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// all returns a registry in which every metric of the package has a sample.
func all(t *testing.T) *prometheus.Registry {
	t.Helper()
	plan := make([]error, 8)
	plan[7] = errors.New("device lost")
	reg, m := dispatchedBy(t, 1, plan...)
	far, err := tensor.New(fardevice.New(0), tensor.F32, 3)
	require.NoError(t, err)
	require.NoError(t, opmanager.MustBind(m, norm.ResidualAdd).Call(norm.ResidualAddArgs{A: vector(t), B: vector(t), Output: far}))
	putPolicyBack(t, m)
	train, err := metrics.NewTraining(reg, metrics.TrainingSettings{})
	require.NoError(t, err)
	t.Cleanup(train.Close)
	train.RunStarted(backend.Run{Model: "tiny", FirstStep: 1, Steps: 1})
	train.PatchesApplied("setup", []string{"native.z_loss"})
	train.StepDone(backend.Step{Step: 1, Ranks: &backend.RankTimes{Computed: []time.Duration{1, 1}, Traffic: []backend.Traffic{{Op: "all_reduce"}}}})
	n, err := metrics.NewInference(reg, func() (running, waiting int) { return 1, 2 })
	require.NoError(t, err)
	t.Cleanup(n.Close)
	n.Answered("completions", 200, time.Second)
	n.Began(3)
	n.Token(true, time.Second)
	n.Token(false, time.Second)
	n.Ended("stop")
	process, err := metrics.NewProcess(reg, metrics.Build{Version: "1.0.0"})
	require.NoError(t, err)
	t.Cleanup(process.Close)
	process.WatchPlugins(plugins{{Name: "acme", Version: "1", State: metrics.PluginLoaded, Usable: true}})
	return reg
}

// putPolicyBack makes a call that the policy of m does not serve, and an earlier one does.
func putPolicyBack(t *testing.T, m *opmanager.Manager) {
	t.Helper()
	require.NoError(t, m.Expect(nil))
	p := oppolicy.Default()
	require.NoError(t, p.SetPerOp("gelu=vendor:nobody", "test"))
	_, err := m.PolicyStack().Set(opmanager.LayerService, opmanager.PolicyLayer{Policy: p})
	require.NoError(t, err)
	require.NoError(t, opmanager.MustBind(m, activation.GELU).Call(activation.ActivationArgs{Input: vector(t), Output: vector(t)}))
}

type plugins []metrics.Plugin

func (p plugins) Plugins() []metrics.Plugin { return p }

// ours reports whether a metric is one of this project, and not of the Go runtime or the process.
func ours(family *dto.MetricFamily) bool { return strings.HasPrefix(family.GetName(), "primus_") }

// names describes every metric of ours that g gathers: name, type, labels and help.
func names(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, family := range families {
		if !ours(family) {
			continue
		}
		fmt.Fprintf(&b, "%s %s", family.GetName(), strings.ToLower(family.GetType().String()))
		for _, pair := range family.GetMetric()[0].GetLabel() {
			b.WriteString(" " + pair.GetName())
		}
		fmt.Fprintf(&b, ": %s\n", family.GetHelp())
	}
	return b.String()
}

func TestNames(t *testing.T) {
	golden := filepath.Join("testdata", "metrics.txt")
	got := names(t, all(t))
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "dashboards use these names; go test ./metrics -update accepts a change")
}

func TestNamesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	families, err := all(t).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if !ours(family) {
			continue
		}
		row := fmt.Sprintf("| `%s` | %s", family.GetName(), strings.ToLower(family.GetType().String()))
		assert.True(t, strings.Contains(string(text), row), "docs/reference/metrics.md has no row that begins with %s", row)
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(all(t))
	require.NoError(t, err)
	assert.Empty(t, problems)
}
