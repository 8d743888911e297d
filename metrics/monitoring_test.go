package metrics_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/dashboards"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rule is a rule of Prometheus.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

// rules returns the rules of the project.
func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("rules", "primus.yaml"))
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// expressions returns those of dashboards and rules. Variables have a value.
func expressions(t *testing.T) []string {
	t.Helper()
	values := strings.NewReplacer("$run", ".+", "$rank", ".+", "$vendor", ".*", "$__rate_interval", "1m", "$__interval", "15s")
	var all []string
	for _, d := range dashboards.All() {
		for _, q := range d.Queries() {
			all = append(all, values.Replace(q.Expr))
		}
	}
	for _, r := range rules(t) {
		all = append(all, r.Expr)
	}
	return all
}

// promtool runs the tool, or skips the test.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; scripts/install-test-deps.sh installs it")
	}
	out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestExpressionsUseNamesThatExist(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(primus_[a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[row[1]+suffix] = true
			}
		}
	}
	for _, r := range rules(t) {
		known[r.Record] = true
	}
	names := regexp.MustCompile(`[a-z_:]*primus_[a-z0-9_:]+`)
	for _, expr := range expressions(t) {
		for _, name := range names.FindAllString(expr, -1) {
			assert.True(t, known[name], "no metric %s: %s", name, expr)
		}
	}
}

func TestExpressionsParse(t *testing.T) {
	var file strings.Builder
	file.WriteString("groups:\n- name: all\n  rules:\n")
	for i, expr := range expressions(t) {
		fmt.Fprintf(&file, "  - {record: %q, expr: %q}\n", fmt.Sprintf("expression_%d", i), expr)
	}
	name := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(name, []byte(file.String()), 0o644))
	promtool(t, "check", "rules", name)
}

func TestExampleConfiguration(t *testing.T) {
	promtool(t, "check", "config", filepath.Join("..", "examples", "monitoring", "prometheus.yml"))
}

func TestRules(t *testing.T) {
	promtool(t, "check", "rules", filepath.Join("rules", "primus.yaml"))
	promtool(t, "test", "rules", filepath.Join("rules", "primus_test.yaml"))
}

func TestEveryAlertIsTestedAndDocumented(t *testing.T) {
	tests, err := os.ReadFile(filepath.Join("rules", "primus_test.yaml"))
	require.NoError(t, err)
	runbook, err := os.ReadFile(filepath.Join("..", "docs", "howto", "operations.md"))
	require.NoError(t, err)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:(?: &\w+)?\n`)
		assert.True(t, fires.Match(tests), "no test in which %s fires", r.Alert)
		assert.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.NotEmpty(t, r.Annotations["description"], r.Alert)
		_, page, _ := strings.Cut(r.Annotations["runbook_url"], "/blob/main/")
		assert.Equal(t, "docs/howto/operations.md#"+strings.ToLower(r.Alert), page)
		assert.Contains(t, string(runbook), "\n### "+r.Alert+"\n", "what to do about it")
	}
}
