package runs

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/suggest"
)

// Find returns the run that a name means: an id, or the last elements of the path of exactly one
// run, such as the name of its experiment.
func (a *Archive) Find(name string) (Run, error) {
	var found []Run
	var ids []string
	for _, r := range a.Runs() {
		if r.ID == name {
			return r, nil
		}
		if strings.HasSuffix("/"+r.ID, "/"+strings.Trim(name, "/")) {
			found = append(found, r)
		}
		ids = append(ids, r.ID, path.Base(r.ID))
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Run{}, fmt.Errorf("runs: %s has no run %q%s", a.root, name, suggest.Hint(name, ids))
	}
	ids = ids[:0]
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return Run{}, fmt.Errorf("runs: %q means several runs, want one of %s", name, strings.Join(ids, ", "))
}

// Dir returns the directory of a run of the archive.
func (a *Archive) Dir(r Run) string {
	if found, ok := a.find(r.ID); ok {
		return found.dir
	}
	return ""
}

// Comparison is how several runs differ.
type Comparison struct {
	Runs       []string              `json:"runs"`
	Parameters []ParameterDifference `json:"parameters"`
	Figures    []Figure              `json:"figures"`
}

// ParameterDifference is a parameter whose value is not the same in all runs.
type ParameterDifference struct {
	Key    string    `json:"key"`
	Values []*string `json:"values"` // one per run as text, nil for a run without the parameter
}

// Figure is a result of the runs.
type Figure struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"` // one per run, nil where it is not known
	// Differences are those from the first run, nil where one of the two is not known.
	Differences []*float64 `json:"differences"`
}

// Compare returns the parameters that are not the same in all runs and the figures of the runs. A
// run whose resolved configuration cannot be read is an error.
func Compare(ctx context.Context, all []Run) (Comparison, error) {
	c := Comparison{Parameters: []ParameterDifference{}, Figures: figures(all)}
	flat := make([]map[string]document.Value, len(all))
	var keys []string
	for i, r := range all {
		c.Runs = append(c.Runs, r.ID)
		m, err := parameters(ctx, r.Dir)
		if err != nil {
			return Comparison{}, err
		}
		flat[i] = map[string]document.Value{}
		for key, v := range m.Leaves() {
			flat[i][key] = v
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		d := ParameterDifference{Key: key}
		first, same := flat[0][key]
		for i := range all {
			v, ok := flat[i][key]
			same = same && ok && v.Equal(first)
			var text *string
			if ok {
				shown := v.Text()
				if v.Kind() == document.KindList || v.Kind() == document.KindMap {
					shown = v.String()
				}
				text = &shown
			}
			d.Values = append(d.Values, text)
		}
		if !same {
			c.Parameters = append(c.Parameters, d)
		}
	}
	return c, nil
}

// parameters returns what a run was configured with: the keys of the experiment, and those of its
// module, which are at the top if it has only one.
func parameters(ctx context.Context, dir string) (*document.Map, error) {
	file := filepath.Join(dir, rundir.ConfigName)
	text, err := document.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("runs: the parameters of %s: %w", dir, err)
	}
	root, _, err := document.Parse(ctx, formats.YAML{}, file, text)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	whole, ok := root.Map()
	if !ok {
		return nil, fmt.Errorf("runs: %s: given %s, want the configuration of a run", file, root.Describe())
	}
	flat := whole.Without("modules", "exp_name", "user_name", "work_group", "workspace")
	listed, _ := whole.Lookup("modules")
	modules, _ := listed.Map()
	for name, v := range modules.All() {
		m, _ := v.Map()
		params, _ := m.Lookup("params")
		inner, _ := params.Map()
		module := document.Merge(m.Without("params"), inner)
		if modules.Len() > 1 {
			var b document.Builder
			b.Set(name, document.MapValue(module))
			module = b.Map()
		}
		flat = document.Merge(flat, module)
	}
	return flat, nil
}

// figures returns the results of runs.
func figures(all []Run) []Figure {
	integer := func(v int) *float64 { return finite(float64(v)) }
	rows := []struct {
		name string
		of   func(Run) *float64
	}{
		{"step", func(r Run) *float64 { return integer(r.Step) }},
		{"loss", func(r Run) *float64 { return r.Loss }},
		{"valid_loss", func(r Run) *float64 { return r.ValidLoss }},
		{"grad_norm", func(r Run) *float64 { return r.GradNorm }},
		{"tokens_per_second", func(r Run) *float64 { return r.TokensPerSecond }},
		{"parameters", func(r Run) *float64 { return integer(r.Parameters) }},
		{"elapsed_seconds", func(r Run) *float64 { return finite(r.ElapsedSeconds) }},
		{"fallbacks", func(r Run) *float64 { return finite(float64(r.Fallbacks)) }},
	}
	var result []Figure
	for _, row := range rows {
		f := Figure{Name: row.name}
		for _, r := range all {
			v := row.of(r)
			f.Values = append(f.Values, v)
			var difference *float64
			if first := f.Values[0]; first != nil && v != nil {
				difference = finite(*v - *first)
			}
			f.Differences = append(f.Differences, difference)
		}
		result = append(result, f)
	}
	return result
}

// orders are the orders of Sort.
var orders = []struct {
	name    string
	compare func(a, b Run) int
}{
	{"started", func(a, b Run) int { return b.Started.Compare(a.Started) }},
	{"name", func(a, b Run) int { return strings.Compare(a.ID, b.ID) }},
	{"loss", func(a, b Run) int { return compareKnown(a.Loss, b.Loss) }},
	{"valid_loss", func(a, b Run) int { return compareKnown(a.ValidLoss, b.ValidLoss) }},
}

// Orders returns the names of the orders of Sort.
func Orders() []string {
	var names []string
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// Sort orders runs: started from the newest, loss and valid_loss from the smallest, name by id.
func Sort(all []Run, order string) error {
	for _, o := range orders {
		if o.name == order {
			slices.SortStableFunc(all, o.compare)
			return nil
		}
	}
	return fmt.Errorf("runs: given the order %q, want one of %s", order, strings.Join(Orders(), ", "))
}

// compareKnown orders numbers from the smallest, those that are not known last.
func compareKnown(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}
