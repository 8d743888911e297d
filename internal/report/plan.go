package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/train"
)

// Plan returns the text of a plan: what is wrong and what is unusual first, and with details all
// that is known, too.
func Plan(out io.Writer, p *train.Plan, details bool) (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("dry run: none of this is done\n")
	for _, problem := range p.Problems {
		line("problem: %s\n", problem)
	}
	if len(p.WithoutImpl) > 0 {
		line("ops that the policy leaves without an implementation; training that calls one fails\n")
		for _, c := range p.WithoutImpl {
			line("  %s%s: %s: %s", c.Op, c.Where(), c.From, c.Reason)
		}
		line("")
	}
	line("experiment  %s", p.Experiment.File)
	line("module      %s (%s)", p.Module.Name, p.ModuleName)
	line("directory   %s", p.Experiment.RootPath())
	line("framework   %s, version %s", p.Framework, plaintext.OrUnknown(p.Version))
	if derived := derived(p); derived != "" {
		line("derived     %s", derived)
	}
	if p.Paths.Dir != "" {
		line("source      %s (by %s)", p.Paths.Dir, p.Paths.Source)
		line("PYTHONPATH  %s", strings.Join(p.Paths.PythonPath, ":"))
	}
	line("trainer     %s, stage %s", p.Trainer, p.Stage)
	if p.Ranks != "" {
		line("ranks       %s", p.Ranks)
	} else {
		line("process     rank %d of %d, local rank %d, master %s:%d", p.Rank, p.WorldSize, p.LocalRank, p.MasterAddr, p.MasterPort)
	}
	for _, c := range p.Conflicts {
		line("\n%s", c)
	}
	if len(p.Findings) > 0 {
		line("\nwhat the run would find\n")
		for _, f := range p.Findings {
			line("  %-11s  %s", f.Name, f.Text)
		}
	}
	patches := NewPatchPlan(p, nil)
	if !details {
		b.WriteString(summary(p, patches))
		return b.String(), nil
	}
	err := writeDetails(out, &b, p, patches)
	return b.String(), err
}

// derived lists the keys of the experiment that were not given.
func derived(p *train.Plan) string {
	var keys []string
	for _, key := range []string{"work_group", "user_name", "exp_name", "workspace"} {
		if v, ok := p.Experiment.Document.Lookup(key); ok && v.Origin() == (document.Origin{}) {
			keys = append(keys, key+" "+v.Text())
		}
	}
	return strings.Join(keys, ", ")
}

// mostGiven is how many parameters a summary lists.
const mostGiven = 12

// summary says in a few lines what the details are about.
func summary(p *train.Plan, patches PatchPlan) string {
	var b strings.Builder
	leaves := p.Leaves()
	given := slices.DeleteFunc(slices.Clone(leaves), func(l train.Leaf) bool { return !strings.HasPrefix(l.Source, "override ") })
	if len(given) > 0 {
		b.WriteString("\nparameters of the command line\n\n")
		for _, l := range given[:min(len(given), mostGiven)] {
			fmt.Fprintf(&b, "  %s: %s\n", l.Path, l.Value)
		}
		if more := len(given) - mostGiven; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	if p.Launch != nil {
		fmt.Fprintf(&b, "\nprocesses: %d of %d run on this node, node %d of %d, by launcher %s\n\n",
			p.Launch.WorldSize/p.Launch.Nodes, p.Launch.WorldSize, p.Launch.NodeRank, p.Launch.Nodes, p.Launch.Launcher)
		if len(p.Launch.Processes) > 0 {
			fmt.Fprintf(&b, "  %s\n", p.Launch.Shell(p.Launch.Processes[0]))
		}
		for _, note := range p.Launch.Notes {
			fmt.Fprintf(&b, "\nnote: %s\n", note)
		}
	}
	if applied := patches.applied(); len(applied) > 0 {
		fmt.Fprintf(&b, "\npatches: %s\n", strings.Join(applied, ", "))
	}
	if unknown := patches.unknown(); unknown != "" {
		b.WriteString("\n" + unknown)
	}
	fmt.Fprintf(&b, "\n--verbose adds the resolved configuration, %s with the place where each was written,\nthe environment, the files and all patches\n",
		plaintext.Quantity(len(leaves), "argument", "arguments"))
	return b.String()
}

// writeDetails writes the resolved configuration and all tables.
func writeDetails(out io.Writer, b *strings.Builder, p *train.Plan, patches PatchPlan) error {
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	resolved, err := formats.YAML{}.Render(backend.WithoutSecrets(p.Experiment.Export()), false)
	if err != nil {
		return fmt.Errorf("resolved configuration: %w", err)
	}
	line("\nresolved configuration\n\n%s", plaintext.Indent(string(resolved)))
	section := func(title string, t *plaintext.Table) {
		if t.Length() == 0 {
			line("\n%s: none", title)
			return
		}
		line("\n%s\n\n%s", title, plaintext.Render(out, t))
	}
	section("environment", environmentTable(p.Environment))
	args := plaintext.NewTable(table.Row{"argument", "value", "from"})
	for _, l := range p.Leaves() {
		args.AppendRow(table.Row{l.Path, l.Value, l.Source})
	}
	section("arguments of the framework, after patches and merge", args)
	if len(p.Added) > 0 {
		line("\nparameters that the framework does not know: %s", strings.Join(p.Added, ", "))
	}
	if p.Launch != nil {
		b.WriteString(describeLaunch(p.Launch))
	}
	section("patches", patches.table("why not"))
	if unknown := patches.unknown(); unknown != "" {
		b.WriteString("\n" + unknown)
	}
	line("%s", patches.contended())
	line("steps\n\n  %s", strings.Join(planSteps(p), " -> "))
	return nil
}

func environmentTable(changes []backend.EnvChange) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"variable", "value", "before", "set by"})
	for _, c := range changes {
		before := "-"
		if c.WasSet {
			before = secret.Shown(c.Name, c.Before)
		}
		t.AppendRow(table.Row{c.Name, secret.Shown(c.Name, c.Value), before, c.Source})
	}
	return t
}

// planSteps lists what a run does, in order.
func planSteps(p *train.Plan) []string {
	steps := []string{}
	for _, hook := range p.Hooks {
		steps = append(steps, "setup hook "+hook)
	}
	return append(steps, "prepare", "convert config", "build_args patches", "merge", "new "+p.Trainer, "setup patches", "Setup", "Init",
		"before_train patches", "Train", "after_train patches", "Cleanup")
}
