package metrics_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

var update = flag.Bool("update", false, "rewrite the tables of docs/reference/metrics.md")

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

// page is the page that lists every metric. Each of its tables stands below a mark that says what the
// names in it begin with.
var page = filepath.Join("..", "docs", "reference", "metrics.md")

var mark = regexp.MustCompile(`(?s)<!-- generated: go test ./metrics -run TestPage -update, (\S+) -->\n\n(.*?)\n<!-- end -->\n`)

// table returns the rows of the metrics of ours whose names begin with one of some prefixes.
func table(families []*dto.MetricFamily, prefixes []string) string {
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, family := range families {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(family.GetName(), prefix) }) {
			continue
		}
		var labels []string
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+pair.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, " "), family.GetHelp())
	}
	return b.String()
}

// The page lists every metric once, with the type, labels and help that a scrape shows.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	families, err := all(t).Gather()
	require.NoError(t, err)
	listed := map[string]int{}
	got := mark.ReplaceAllStringFunc(string(text), func(section string) string {
		parts := mark.FindStringSubmatch(section)
		rows := table(families, strings.Split(parts[1], ","))
		for _, family := range families {
			listed[family.GetName()] += strings.Count(rows, "\n| `"+family.GetName()+"` |")
		}
		return strings.Replace(section, parts[2], rows, 1)
	})
	for _, family := range families {
		if ours(family) {
			assert.Equal(t, 1, listed[family.GetName()], "tables of the page with %s", family.GetName())
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
		return
	}
	assert.Equal(t, got, string(text), "dashboards use these names; go test ./metrics -run TestPage -update accepts a change")
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(all(t))
	require.NoError(t, err)
	assert.Empty(t, problems)
}
