package patches

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/patch/explore"
	"github.com/spf13/cobra"
)

// RepoPlanOptions are the flags of `primus patches plan` about a checkout of Primus.
type RepoPlanOptions struct {
	Repo        string
	Version     string
	diff        string
	diffVersion string
}

func (o *RepoPlanOptions) addFlags(cmd *cobra.Command) {
	RepoFlag(cmd, &o.Repo)
	flags := cmd.Flags()
	flags.StringVar(&o.Version, "backend-version", "", "with --repo: the `VERSION` of the framework; without it, that of the source tree in third_party")
	flags.StringVar(&o.diff, "diff", "", "with --repo: say what another experiment `FILE` changes")
	flags.StringVar(&o.diffVersion, "diff-version", "", "with --repo: say what another `VERSION` of the framework changes")
	cli.WithoutVariable(flags, "repo", "backend-version", "diff", "diff-version")
}

// check returns an error for flags that need --repo.
func (o *RepoPlanOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"backend-version", "diff", "diff-version"} {
		if o.Repo == "" && cmd.Flags().Changed(name) {
			return cli.Usagef(cmd, "--%s is about a checkout of Primus: want --repo DIR with it", name)
		}
	}
	return nil
}

// run plans an experiment with the patches of a checkout.
func (o *RepoPlanOptions) run(prog cli.Program, opts *planOptions, module string, overrides []string, format cli.OutputFormat) error {
	c, err := OpenCheckout(prog, o.Repo)
	if err != nil {
		return err
	}
	experiment := o.WithPresets(opts.Options)
	run, err := o.Experiment(prog, experiment, opts.run.Patches, module, overrides)
	if err != nil {
		return err
	}
	plan := c.Plan(run)
	if o.diff == "" && o.diffVersion == "" {
		view := NewRepoPlanView(c, run, plan)
		if format == cli.OutputJSON {
			return cli.WriteJSON(prog.Out, view)
		}
		return view.printRepo(prog)
	}
	other := run
	if o.diff != "" {
		experiment.Config = o.diff
		if other, err = o.Experiment(prog, experiment, opts.run.Patches, module, overrides); err != nil {
			return err
		}
	}
	if o.diffVersion != "" {
		other.Version = o.diffVersion
		logDefaults(slog.New(prog.Lines(prog.Err, slog.LevelWarn)), other)
	}
	changes := explore.Diff(plan, c.Plan(other))
	if format == cli.OutputJSON {
		return cli.WriteJSON(prog.Out, changes)
	}
	return printPlanDiff(prog, run, other, changes)
}

// WithPresets returns the options of an experiment that finds the presets of the checkout behind
// those of --configs-dir.
func (o *RepoPlanOptions) WithPresets(experiment experiments.Options) experiments.Options {
	presets := filepath.Join(o.Repo, "primus", "configs")
	if info, err := os.Stat(presets); err == nil && info.IsDir() {
		experiment.ConfigsDirs = append(slices.Clip(experiment.ConfigsDirs), presets)
	}
	return experiment
}

// Experiment resolves an experiment and says what a plan has to know about it, with the patches
// that --patches names.
func (o *RepoPlanOptions) Experiment(prog cli.Program, experiment experiments.Options, patches, module string, overrides []string) (explore.Run, error) {
	e, err := experiment.Load(module, overrides)
	if err != nil {
		return explore.Run{}, err
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, e.Report)
	m, err := e.Module(module)
	if err != nil {
		return explore.Run{}, err
	}
	experiments.LogStandIn(log, e, module, m)
	run := explore.Run{
		Backend: m.Framework, Version: o.Version, Model: m.Model, Module: m.Name, File: experiment.Config, Params: m.Params.Any(), Env: variablesOf(e),
	}
	if model, ok := run.Params["model"]; ok {
		run.Model = model
	}
	if patches != os.Getenv(patch.EnvFilter) { // it was given as a flag or in primus.yaml, not in the variable, which Primus reads itself
		run.Env[patch.EnvFilter] = patches
	}
	if run.Version == "" {
		run.Version, err = explore.FrameworkVersion(filepath.Join(o.Repo, "third_party"), m.Framework)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	logDefaults(log, run)
	return run, err
}

// logDefaults says that the defaults of another version of the framework stand for the parameters
// that a run does not set.
func logDefaults(log *slog.Logger, run explore.Run) {
	if known, same := run.DefaultsOf(); !same {
		log.Warn("parameters that the experiment does not set are taken to have the defaults of another version of the framework",
			"framework", run.Backend, "version", run.Version, "defaults", known)
	}
}

// variablesOf returns the variables of the process with those that an experiment sets.
func variablesOf(e *config.Experiment) map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, v, _ := strings.Cut(entry, "=")
		env[name] = v
	}
	for name, v := range e.Env.All() {
		env[name] = v.Text()
	}
	return env
}

// NewRepoPlanView returns a plan in the form of those for the patches of this program.
func NewRepoPlanView(c *explore.Checkout, run explore.Run, plan []explore.Decision) PlanView {
	view := PlanView{Framework: run.Backend, Version: run.Version, Patches: []planRow{}, Contended: []planShared{}, Problems: []string{}}
	for _, d := range plan {
		view.Patches = append(view.Patches, planRow{
			Patch: d.ID, Phase: patch.Phase(d.Phase), Order: d.Order, Priority: d.Priority, Reason: d.Reason, Verdict: string(d.Verdict),
		})
	}
	contended := c.Contended(plan)
	for _, phase := range slices.Sorted(maps.Keys(contended)) {
		for _, symbol := range slices.Sorted(maps.Keys(contended[phase])) {
			view.Contended = append(view.Contended, planShared{patch.Phase(phase), symbol, contended[phase][symbol]})
		}
	}
	return view
}

// printRepo prints the patches of a checkout that an experiment gets, and those that it does not
// get.
func (v PlanView) printRepo(prog cli.Program) error {
	t := plaintext.NewTable(table.Row{"phase", "order", "patch", "priority", "applies", "why"}, 2, 4)
	counts := map[string]int{}
	for _, r := range v.Patches {
		order := "-"
		if r.Order > 0 {
			order = fmt.Sprint(r.Order)
		}
		counts[r.Verdict]++
		t.AppendRow(table.Row{r.Phase, order, r.Patch, r.Priority, r.Verdict, r.Reason})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "framework %s, version %s\n\n%s\n", v.Framework, plaintext.OrUnknown(v.Version), plaintext.Render(t))
	fmt.Fprintf(&b, "%d patches apply, %d depend on the machine or the version, %d do not apply\n",
		counts[string(explore.Yes)], counts[string(explore.Depends)], counts[string(explore.No)])
	for _, shared := range v.Contended {
		fmt.Fprintf(&b, "%s changes %s in this order: %s\n", shared.Phase, shared.Symbol, strings.Join(shared.Patches, ", "))
	}
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}

func printPlanDiff(prog cli.Program, from, to explore.Run, changes []explore.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s, %s %s\n  to %s, %s %s\n\n", from.File, from.Backend, plaintext.OrUnknown(from.Version), to.File, to.Backend, plaintext.OrUnknown(to.Version))
	if len(changes) == 0 {
		fmt.Fprintln(&b, "the same patches apply")
	} else {
		t := plaintext.NewTable(table.Row{"phase", "patch", "before", "after", "why"})
		for _, change := range changes {
			t.AppendRow(table.Row{change.Phase, change.ID, change.From, change.To, change.Reason})
		}
		fmt.Fprintln(&b, plaintext.Render(t))
	}
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}
