package metrics_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/goldentest"
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
	fleet, err := metrics.NewFleet(reg, func() metrics.FleetState { return metrics.FleetState{} })
	require.NoError(t, err)
	t.Cleanup(fleet.Close)
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

// page lists every metric.
var page = filepath.Join("..", "docs", "reference", "metrics.md")

// The page lists every metric once, with the type, labels and help that a scrape shows.
func TestPage(t *testing.T) {
	families, err := all(t).Gather()
	require.NoError(t, err)
	listed := map[string]int{}
	for _, section := range []struct {
		name     string
		prefixes []string
	}{
		{"dispatch", []string{"primus_op_", "primus_policy_", "primus_reference_", "primus_dispatch_"}},
		{"training", []string{"primus_train_", "primus_collective_", "primus_checkpoint_", "primus_patch_"}},
		{"texts", []string{"primus_inference_"}},
		{"process", []string{"primus_build_", "primus_plugin_", "primus_fleet_"}},
	} {
		var b strings.Builder
		b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
		for _, family := range families {
			if !slices.ContainsFunc(section.prefixes, func(prefix string) bool { return strings.HasPrefix(family.GetName(), prefix) }) {
				continue
			}
			listed[family.GetName()]++
			var labels []string
			for _, pair := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, "`"+pair.GetName()+"`")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, " "), family.GetHelp())
		}
		goldentest.Section(t, page, "go test ./metrics -run TestPage -update ("+section.name+")", b.String())
	}
	for _, family := range families {
		if ours(family) {
			assert.Equal(t, 1, listed[family.GetName()], "tables of the page with %s", family.GetName())
		}
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(all(t))
	require.NoError(t, err)
	assert.Empty(t, problems)
}
