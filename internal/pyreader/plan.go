package pyreader

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
	"github.com/primus-fl/primus/runtime/patch"
)

// Run describes the run that a plan is made for: a resolved experiment and its environment.
type Run struct {
	Backend string         // the framework
	Version string         // of the framework; empty if it is not known
	Model   any            // the name of the model preset
	Module  string         // pre_trainer, post_trainer
	File    string         // of the experiment
	Params  map[string]any // of the module

	// Defaults are those of the framework, nil for those of Megatron-LM 0.16.
	Defaults *Defaults

	Env map[string]string // including PRIMUS_PATCHES
}

// Verdict says whether a patch applies.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Depends Verdict = "depends" // it depends on what Reason says
)

// Decision says whether a patch applies to a run, and why.
type Decision struct {
	ID       string  `json:"id"`
	Phase    string  `json:"phase"`
	Order    int     `json:"order"` // in its phase, from 1; 0 if it does not apply
	Priority int     `json:"priority"`
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason"`
}

// phases are those of a run of training, in order.
var phases = []string{"build_args", "setup", "before_train", "after_train"}

// Plan says of every patch whether it applies to a run. Decisions are sorted by phase; in each,
// those that may apply come first, in the order in which they run.
func (c *Checkout) Plan(run Run) []Decision {
	c.machine.Env = run.Env
	if c.machine.Env == nil {
		c.machine.Env = map[string]string{}
	}
	defer func() { c.machine.Env = nil }()
	filter := patch.ParseFilter(run.Env[patch.EnvFilter])
	var plan []Decision
	planned := map[int]bool{}
	for _, phase := range phases {
		var may, not []Decision
		for _, i := range c.candidates(run.Backend, phase) {
			planned[i] = true
			if d := c.decide(i, phase, run, filter); d.Verdict == No {
				not = append(not, d)
			} else {
				may = append(may, d)
			}
		}
		slices.SortStableFunc(may, func(a, b Decision) int { return cmp.Compare(a.Priority, b.Priority) })
		for i := range may {
			may[i].Order = i + 1
		}
		plan = slices.Concat(plan, may, not)
	}
	for i := range c.Records {
		if r := &c.Records[i]; r.Effective && !planned[i] {
			reason := "training has no phase " + r.Phase
			if r.Backend != "" && r.Backend != run.Backend {
				reason = fmt.Sprintf("it is for backend %s, not for %s", r.Backend, run.Backend)
			}
			plan = append(plan, Decision{ID: r.ID, Phase: r.Phase, Priority: r.Priority, Verdict: No, Reason: reason})
		}
	}
	return plan
}

// candidates returns the records for a backend and a phase: those for exactly these, then for any
// backend, for any phase, and for both.
func (c *Checkout) candidates(backend, phase string) []int {
	var found []int
	for _, bucket := range [][2]string{{backend, phase}, {"", phase}, {backend, ""}, {"", ""}} {
		for i := range c.Records {
			if r := &c.Records[i]; r.Effective && r.Backend == bucket[0] && r.Phase == bucket[1] {
				found = append(found, i)
			}
		}
	}
	return found
}

func (c *Checkout) decide(i int, phase string, run Run, filter patch.Filter) Decision {
	r := &c.Records[i]
	run.Params = withDefaults(run, phase)
	d := Decision{ID: r.ID, Phase: phase, Priority: r.Priority, Verdict: Yes, Reason: "it has no condition"}
	if ids, given := filter.IDs(); given && !slices.Contains(ids, r.ID) {
		d.Verdict, d.Reason = No, "not listed in "+patch.EnvFilter
		return d
	}
	if len(r.BackendVersions) > 0 {
		verdict, reason := matches(run.Version, r.BackendVersions)
		if verdict != Yes {
			d.Verdict, d.Reason = verdict, reason
			if verdict == No {
				return d
			}
		}
	}
	if len(r.PrimusVersions) > 0 {
		d.Verdict, d.Reason = No, "primus_versions is "+strings.Join(r.PrimusVersions, ", ")+", and Primus never states its version"
		return d
	}
	condition := c.handlers[i].condition
	if condition == nil {
		return d
	}
	v := c.machine.Run(condition, c.runContext(r, phase, run))
	switch c.machine.Truth(v) {
	case eval.False:
		d.Verdict, d.Reason = No, "condition not met: "+r.Condition.Words+given(r.Condition, run)
	case eval.Unknown:
		d.Verdict, d.Reason = Depends, "depends on "+c.open(r.Condition, v)
	default:
		if d.Verdict == Yes {
			d.Reason = r.Condition.Words + given(r.Condition, run)
		}
	}
	return d
}

// matches compares the version of the backend with the patterns of a patch.
func matches(version string, patterns []string) (Verdict, string) {
	wanted := strings.Join(patterns, " or ")
	if version == "" {
		return Depends, "depends on the version of the backend, which should be " + wanted + ": give --backend-version"
	}
	for _, pattern := range patterns {
		if ok, err := patch.MatchVersion(version, pattern); err == nil && ok {
			return Yes, ""
		}
	}
	return No, fmt.Sprintf("the version of the backend is %s, not %s", version, wanted)
}

// runContext returns the context that a condition gets in a run.
func (c *Checkout) runContext(r *Record, phase string, run Run) *eval.Object {
	ctx := c.context(r, value(run.Params))
	ctx.Attrs["phase"], ctx.Attrs["backend"] = phase, run.Backend
	ctx.Attrs["model_name"], ctx.Attrs["module_name"] = value(run.Model), run.Module
	if run.Version != "" {
		ctx.Attrs["backend_version"] = run.Version
	}
	config := ctx.Attrs["extra"].(*eval.Mapping).Values[3].(*eval.Object)
	config.Attrs["config_file"] = run.File
	return ctx
}

// Contended returns the symbols that several patches of a plan change in one phase, with the
// patches in the order in which they run.
func (c *Checkout) Contended(plan []Decision) map[string]map[string][]string {
	contended := map[string]map[string][]string{}
	for _, d := range plan {
		r, ok := c.Find(d.ID)
		if !ok || d.Verdict == No {
			continue
		}
		if contended[d.Phase] == nil {
			contended[d.Phase] = map[string][]string{}
		}
		for _, symbol := range r.Symbols {
			contended[d.Phase][symbol] = append(contended[d.Phase][symbol], d.ID)
		}
	}
	for _, symbols := range contended {
		maps.DeleteFunc(symbols, func(_ string, ids []string) bool { return len(ids) < 2 })
	}
	return contended
}

// Change is a patch on which two plans differ.
type Change struct {
	ID     string  `json:"id"`
	Phase  string  `json:"phase"`
	From   Verdict `json:"from"`
	To     Verdict `json:"to"`
	Reason string  `json:"reason"` // reason of the second verdict
}

// Diff returns the patches on which another plan differs.
func Diff(from, to []Decision) []Change {
	type key struct{ id, phase string }
	verdicts := map[key]Decision{}
	for _, d := range from {
		verdicts[key{d.ID, d.Phase}] = d
	}
	changes := []Change{}
	for _, d := range to {
		k := key{d.ID, d.Phase}
		before, ok := verdicts[k]
		if !ok {
			before.Verdict = No
		}
		delete(verdicts, k)
		if before.Verdict != d.Verdict {
			changes = append(changes, Change{d.ID, d.Phase, before.Verdict, d.Verdict, d.Reason})
		}
	}
	for _, d := range from {
		if _, left := verdicts[key{d.ID, d.Phase}]; left && d.Verdict != No {
			changes = append(changes, Change{d.ID, d.Phase, d.Verdict, No, "the other plan has no such patch in this phase"})
		}
	}
	return changes
}

// value returns a value of a configuration as Python has it: mappings are namespaces.
func value(v any) eval.Value {
	switch v := v.(type) {
	case nil:
		return eval.None
	case map[string]any:
		o := &eval.Object{Attrs: map[string]eval.Value{}}
		for name, item := range v {
			o.Attrs[name] = value(item)
		}
		return o
	case []any:
		s := &eval.Sequence{Kind: "list"}
		for _, item := range v {
			s.Items = append(s.Items, value(item))
		}
		return s
	case int:
		return big.NewInt(int64(v))
	case int64:
		return big.NewInt(v)
	case []byte:
		return syntax.Bytes(v)
	}
	return v // a bool, *big.Int, float64 or string
}

// given lists the parameters and variables that a condition reads, with their values.
func given(cond *Condition, run Run) string {
	var parts []string
	for _, key := range cond.Keys {
		if strings.HasPrefix(key, "<") {
			continue
		}
		parts = append(parts, key+" is "+lookup(run.Params, key))
	}
	for _, name := range cond.Env {
		v, ok := run.Env[name]
		if !ok {
			v = "not set"
		}
		parts = append(parts, "$"+name+" is "+v)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// lookup returns the text of a parameter.
func lookup(params map[string]any, key string) string {
	var at any = params
	for name := range strings.SplitSeq(key, ".") {
		below, ok := at.(map[string]any)
		if !ok {
			return "not given"
		}
		if at, ok = below[name]; !ok {
			return "not given"
		}
	}
	switch at.(type) {
	case map[string]any:
		return "given"
	case nil:
		return "null"
	}
	return fmt.Sprint(at)
}

// open says why a condition cannot be decided.
func (c *Checkout) open(cond *Condition, v eval.Value) string {
	if len(cond.Probes) > 0 {
		return strings.Join(cond.Probes, ", ") + " of the machine: " + cond.Words
	}
	var sources []string
	c.machine.Inside(v, func(v eval.Value) {
		if o, ok := v.(*eval.Opaque); ok {
			sources = addTo(sources, o.Source)
		}
	})
	return strings.Join(sources[:min(len(sources), 3)], ", ")
}
