package train

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"go.uber.org/fx"
)

// dryParams are what a dry run needs of the graph: what the run itself makes its decisions with.
type dryParams struct {
	fx.In
	Policy   oppolicy.Policy
	Device   device.Backend
	Manager  *opmanager.Manager
	Backends *backend.Registry
	Patches  *patch.Set
}

// DryRun prints what training the module of a stage would do. What would make it fail is the error
// that the run itself would end with, as far as it can be seen without training.
func dryRun(ctx context.Context, prog cli.Program, s experiments.Stage, opts Options, e *config.Experiment) error {
	module, err := e.Module(s.Module)
	if err != nil {
		return err
	}
	if _, err := opts.fleet.Member(e, module); err != nil {
		return err
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, e.Report)
	set := graph.Config{Log: log, Threads: int(opts.Threads), Policy: opts.PolicySources(module), Extras: prog.Extras}
	var p dryParams
	var plan *train.Plan
	err = graph.Run(ctx, func() error {
		if err := checkManifest(opts.manifest, p.Manager); err != nil {
			return err
		}
		settings := opts.run.Settings(e, s, log)
		settings.Manager, settings.Device, settings.Backends, settings.Patches = p.Manager, p.Device, p.Backends, p.Patches
		plan, err = train.NewPlan(ctx, settings)
		return err
	}, graph.Core(set), fx.Invoke(func(built dryParams) { p = built }))
	if err != nil {
		return err
	}
	text, err := describePlan(plan)
	if err != nil {
		return err
	}
	_, err = io.WriteString(prog.Out, text)
	return err
}

// describePlan writes a plan for people.
func describePlan(p *train.Plan) (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("dry run: nothing of this is done\n")
	line("experiment  %s", p.Experiment.File)
	line("module      %s (%s)", p.Module.Name, p.ModuleName)
	line("directory   %s", p.Experiment.RootPath())
	line("framework   %s, version %s", p.Framework, cli.OrUnknown(p.Version))
	if p.Paths.Dir != "" {
		line("source      %s (by %s)", p.Paths.Dir, p.Paths.Source)
		line("PYTHONPATH  %s", strings.Join(p.Paths.PythonPath, ":"))
	}
	line("trainer     %s, stage %s", p.Trainer, p.Stage)
	line("process     rank %d of %d, local rank %d, master %s:%d", p.Rank, p.WorldSize, p.LocalRank, p.MasterAddr, p.MasterPort)

	resolved, err := formats.YAML{}.Render(p.Experiment.Export(), false)
	if err != nil {
		return "", fmt.Errorf("resolved configuration: %w", err)
	}
	line("\nresolved configuration\n\n%s", cli.Indent(hideSecrets(string(resolved))))
	section := func(title string, t table.Writer) {
		if t.Length() == 0 {
			line("\n%s: none", title)
			return
		}
		line("\n%s\n\n%s", title, cli.Render(t))
	}
	section("environment", environmentTable(p.Environment))
	args := cli.NewTable(table.Row{"argument", "value", "from"})
	for _, l := range p.Leaves() {
		args.AppendRow(table.Row{l.Path, l.Value, l.Source})
	}
	section("arguments of the framework, after patches and merge", args)
	if len(p.Added) > 0 {
		line("\nparameters that the framework does not know: %s", strings.Join(p.Added, ", "))
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
	if p.Launch != nil {
		b.WriteString(describeLaunch(p.Launch))
	}
	section("patches", patchesTable(p.Phases))
	if p.UnknownPatches != "" {
		line("\n%s", experiments.UnknownPatches(p.UnknownPatches))
	}
	line("%s", experiments.Contended(p.Phases))
	line("steps\n\n  %s", strings.Join(planSteps(p), " -> "))
	for _, problem := range p.Problems {
		line("\nproblem: %s", problem)
	}
	return b.String(), nil
}

func environmentTable(changes []backend.EnvChange) table.Writer {
	t := cli.NewTable(table.Row{"variable", "value", "before", "set by"})
	for _, c := range changes {
		before := "-"
		if c.WasSet {
			before = backend.Shown(c.Name, c.Before)
		}
		t.AppendRow(table.Row{c.Name, backend.Shown(c.Name, c.Value), before, c.Source})
	}
	return t
}

// patchesTable shows the patches of each phase in the order in which they run, those that do not
// run behind them.
func patchesTable(phases []train.PhasePlan) table.Writer {
	t := cli.NewTable(table.Row{"phase", "order", "patch", "priority", "why not"}, 2, 4)
	for _, phase := range phases {
		for i, d := range phase.Decisions {
			order := "-"
			if d.Run {
				order = strconv.Itoa(i + 1)
			}
			t.AppendRow(table.Row{phase.Phase, order, d.Patch.ID, d.Patch.Priority.Int(), d.Reason})
		}
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

// hideSecrets puts stars in the place of values that their keys call secrets.
func hideSecrets(yamlText string) string {
	var b strings.Builder
	for line := range strings.Lines(yamlText) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ": "); ok && backend.Shown(strings.TrimSpace(key), value) != value {
			line = key + ": ***\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
