package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
)

// PatchPlan lists the patches of a program and says which of them an experiment runs.
type PatchPlan struct {
	Framework string            `json:"framework"`
	Version   string            `json:"version"`
	Patches   []PlannedPatch    `json:"patches"`
	Unknown   string            `json:"unknown"` // which patches are not listed because they are not known; "" for none
	Contended []ContendedTarget `json:"contended"`
	Problems  []string          `json:"problems"`
}

// PlannedPatch is a patch of a PatchPlan.
type PlannedPatch struct {
	Patch    string      `json:"patch"`
	Phase    patch.Phase `json:"phase"`
	Order    int         `json:"order"` // in its phase, from 1; 0 when it does not run
	Priority int         `json:"priority"`
	Reason   string      `json:"reason"` // why it does not run; of patches of a checkout also why it does
	Verdict  string      `json:"verdict"`
}

// ContendedTarget is a target that several patches change, in this order.
type ContendedTarget struct {
	Phase   patch.Phase `json:"phase"`
	Symbol  string      `json:"symbol"`
	Patches []string    `json:"patches"`
}

// NewPatchPlan returns the patches of a plan, followed by the others of a set, which may be nil.
func NewPatchPlan(p *train.Plan, set *patch.Set) PatchPlan {
	plan := PatchPlan{Framework: p.Framework, Version: p.Version, Patches: []PlannedPatch{}, Unknown: p.UnknownPatches, Contended: []ContendedTarget{}, Problems: append([]string{}, p.Problems...)}
	seen := map[string]bool{}
	for _, phase := range p.Phases {
		for i, d := range phase.Decisions {
			row := PlannedPatch{Patch: d.Patch.ID, Phase: phase.Phase, Priority: d.Patch.Priority.Int(), Reason: d.Reason}
			row.Verdict = string(pyreader.No)
			if d.Run {
				row.Order, row.Verdict = i+1, string(pyreader.Yes)
			}
			seen[d.Patch.ID] = true
			plan.Patches = append(plan.Patches, row)
		}
		for symbol, ids := range phase.Contended {
			plan.Contended = append(plan.Contended, ContendedTarget{phase.Phase, symbol, ids})
		}
	}
	slices.SortFunc(plan.Contended, func(a, b ContendedTarget) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Symbol, b.Symbol))
	})
	if set == nil {
		return plan
	}
	for _, other := range set.All() {
		if seen[other.ID] {
			continue
		}
		reason := fmt.Sprintf("training has no phase %s", other.Phase)
		if other.Backend != "" && other.Backend != p.Framework {
			reason = fmt.Sprintf("it is for backend %s, not for %s", other.Backend, p.Framework)
		}
		plan.Patches = append(plan.Patches, PlannedPatch{Patch: other.ID, Phase: other.Phase, Priority: other.Priority.Int(), Reason: reason, Verdict: string(pyreader.No)})
	}
	return plan
}

// NewCheckoutPatchPlan returns the patches of a checkout of Primus, with what is decided about
// each.
func NewCheckoutPatchPlan(c *pyreader.Checkout, run pyreader.Run, decisions []pyreader.Decision) PatchPlan {
	plan := PatchPlan{Framework: run.Backend, Version: run.Version, Patches: []PlannedPatch{}, Contended: []ContendedTarget{}, Problems: []string{}}
	for _, d := range decisions {
		plan.Patches = append(plan.Patches, PlannedPatch{
			Patch: d.ID, Phase: patch.Phase(d.Phase), Order: d.Order, Priority: d.Priority, Reason: d.Reason, Verdict: string(d.Verdict),
		})
	}
	contended := c.Contended(decisions)
	for _, phase := range slices.Sorted(maps.Keys(contended)) {
		for _, symbol := range slices.Sorted(maps.Keys(contended[phase])) {
			plan.Contended = append(plan.Contended, ContendedTarget{patch.Phase(phase), symbol, contended[phase][symbol]})
		}
	}
	return plan
}

// table returns the patches in the order in which they run, with one more column for those of a
// checkout.
func (p PatchPlan) table(columns ...any) *plaintext.Table {
	t := plaintext.NewTable(append(table.Row{"phase", "order", "patch", "priority"}, columns...), 2, 4).Optional("priority", "order")
	for _, r := range p.Patches {
		order := "-"
		if r.Order > 0 {
			order = strconv.Itoa(r.Order)
		}
		row := table.Row{r.Phase, order, r.Patch, r.Priority}
		if len(columns) > 1 {
			row = append(row, r.Verdict)
		}
		t.AppendRow(append(row, r.Reason))
	}
	return t
}

// applied returns the ids of the patches that run, in order.
func (p PatchPlan) applied() []string {
	var ids []string
	for _, r := range p.Patches {
		if r.Order > 0 {
			ids = append(ids, r.Patch)
		}
	}
	return ids
}

// contended describes the targets that several patches change.
func (p PatchPlan) contended() string {
	var b strings.Builder
	for _, c := range p.Contended {
		fmt.Fprintf(&b, "\n%s is changed by %s, in this order\n", c.Symbol, strings.Join(c.Patches, ", "))
	}
	return b.String()
}

// unknown describes the patches that are not listed, and how to list them.
func (p PatchPlan) unknown() string {
	if p.Unknown == "" {
		return ""
	}
	return p.Unknown + ": primus patches plan --repo DIR --config FILE says which of them a checkout of Primus makes\n"
}

// Text returns the plan for out with the reason why a patch does not run.
func (p PatchPlan) Text(out io.Writer) string {
	text := fmt.Sprintf("framework %s, version %s\n\n%s\n%s%s", p.Framework, plaintext.OrUnknown(p.Version), plaintext.Render(out, p.table("why not")), p.contended(), p.unknown())
	for _, problem := range p.Problems {
		text += "\nproblem: " + problem + "\n"
	}
	return text
}

// CheckoutText returns for out the plan of a checkout with the verdict and the reason for each
// patch.
func (p PatchPlan) CheckoutText(out io.Writer) string {
	counts := map[string]int{}
	for _, r := range p.Patches {
		counts[r.Verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "framework %s, version %s\n\n%s\n", p.Framework, plaintext.OrUnknown(p.Version), plaintext.Render(out, p.table("applies", "why")))
	fmt.Fprintf(&b, "%d patches apply, %d depend on the machine or the version, %d do not apply\n",
		counts[string(pyreader.Yes)], counts[string(pyreader.Depends)], counts[string(pyreader.No)])
	for _, c := range p.Contended {
		fmt.Fprintf(&b, "%s changes %s in this order: %s\n", c.Phase, c.Symbol, strings.Join(c.Patches, ", "))
	}
	return b.String()
}
