package dashboards_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/dashboards"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesAreGenerated(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, dashboards.Write(dir))
	files, err := filepath.Glob("../../metrics/dashboards/*.json")
	require.NoError(t, err)
	assert.Len(t, files, len(dashboards.All()), "no dashboard is left from before")
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
		require.NoError(t, err)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: run go generate ./internal/dashboards", file)
		assert.True(t, json.Valid(got))
	}
}

func TestPanelsAreInPlace(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range dashboards.All() {
		t.Run(d.Title, func(t *testing.T) {
			assert.Equal(t, "Alerts", d.Panels[0].Title, "what an operator looks at first")
			assert.False(t, uids[d.UID], "the uid is taken")
			uids[d.UID] = true
			ids, taken := map[int]bool{}, map[[2]int]string{}
			for _, p := range d.Panels {
				assert.False(t, ids[p.ID], "%s: the id is taken", p.Title)
				ids[p.ID] = true
				if p.Type != "row" {
					assert.Regexp(t, `^[A-Z].*\.$`, p.Description, "%s: what it shows", p.Title)
				}
				assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
				for x := range p.GridPos.W {
					for y := range p.GridPos.H {
						at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
						assert.Empty(t, taken[at], "%s lies over it", p.Title)
						taken[at] = p.Title
					}
				}
			}
		})
	}
}

func TestEveryQueryIsFiltered(t *testing.T) {
	selector := regexp.MustCompile(`\b(?:(?:primus|go|process)_[a-z_]+|ALERTS)(\{[^}]*\})?`)
	variable := regexp.MustCompile(`\$[a-z_]+`)
	for _, d := range dashboards.All() {
		known := map[string]bool{"$__rate_interval": true, "$__interval": true}
		for _, v := range d.Templating.List {
			known["$"+v.Name] = true
		}
		for _, q := range d.Queries() {
			found := selector.FindAllStringSubmatch(q.Expr, -1)
			assert.NotEmpty(t, found, q.Expr)
			for _, m := range found {
				if strings.HasPrefix(m[0], "ALERTS") { // some belong to no run
					assert.Contains(t, m[1], `run=~"$run|",rank=~"$rank|"`)
					continue
				}
				assert.Regexp(t, `^\{run=~"\$run",rank=~"\$rank"`, m[1], q.Expr)
			}
			for _, name := range variable.FindAllString(q.Expr, -1) {
				assert.True(t, known[name], "%s: %s has no such variable", q.Expr, d.Title)
			}
			assert.Equal(t, "prometheus", q.Datasource.Type)
		}
	}
}

// The dashboards lead to each other and keep what was chosen, because they have the same choices.
func TestLinks(t *testing.T) {
	for _, d := range dashboards.All() {
		require.Len(t, d.Links, 1)
		assert.Equal(t, "dashboards", d.Links[0].Type)
		assert.True(t, d.Links[0].IncludeVars && d.Links[0].KeepTime)
		for _, other := range dashboards.All() {
			assert.Subset(t, other.Tags, d.Links[0].Tags, "%s is found from %s", other.Title, d.Title)
			for i, name := range []string{"datasource", "run", "rank"} {
				assert.Equal(t, name, other.Templating.List[i].Name)
			}
		}
	}
}
