package metrics_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// all returns a registry in which every metric of the package has a sample.
func all(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := dispatched(t, 1, nil, errors.New("device lost"))
	train, err := metrics.NewTraining(reg)
	require.NoError(t, err)
	t.Cleanup(train.Close)
	return reg
}

// names describes every metric that g gathers: name, type, labels and help.
func names(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, family := range families {
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
	text, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	require.NoError(t, err)
	families, err := all(t).Gather()
	require.NoError(t, err)
	for _, family := range families {
		row := fmt.Sprintf("| `%s` | %s", family.GetName(), strings.ToLower(family.GetType().String()))
		assert.Contains(t, string(text), row)
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(all(t))
	require.NoError(t, err)
	assert.Empty(t, problems)
}
