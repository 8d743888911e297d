package experiments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/spf13/cobra"
)

// Checkout are the flags of commands that plan with the patches of a checkout of Primus.
type Checkout struct {
	Repo    string
	Version string // of the framework
	Tree    string // its source tree
}

// RepoFlag adds the flag --repo to a command that reads a checkout.
func RepoFlag(cmd *cobra.Command, repo *string) {
	cmd.Flags().StringVar(repo, "repo", "", "`DIR` of a checkout of Primus")
	if err := cmd.MarkFlagDirname("repo"); err != nil {
		panic("BUG: " + err.Error())
	}
}

// OpenCheckout reads the checkout that --repo names, and reports files of it that cannot be read.
func OpenCheckout(ctx context.Context, prog cli.Program, repo string) (*pyreader.Checkout, error) {
	if repo == "" {
		return nil, cli.UsageError{Err: errors.New("--repo is missing: name the folder of a checkout of Primus")}
	}
	c, err := pyreader.Open(ctx, repo)
	if err != nil {
		return nil, err
	}
	for _, fault := range c.Faults {
		if _, err := fmt.Fprintf(prog.Err, "warning: %v\n", fault); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// WithPresets returns the options of an experiment that finds the presets of the checkout after
// those of --configs-dir.
func (o *Checkout) WithPresets(experiment Options) Options {
	presets := filepath.Join(o.Repo, "primus", "configs")
	if info, err := os.Stat(presets); err == nil && info.IsDir() {
		experiment.ConfigsDirs = append(slices.Clip(experiment.ConfigsDirs), presets)
	}
	return experiment
}

// Experiment resolves an experiment and says what a plan has to know about it, with the patches
// that --patches names.
func (o *Checkout) Experiment(ctx context.Context, prog cli.Program, experiment Options, patches, module string, overrides []string) (pyreader.Run, error) {
	e, err := experiment.Load(ctx, module, overrides)
	if err != nil {
		return pyreader.Run{}, err
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	LogReport(log, e.Report)
	m, err := e.Module(module)
	if err != nil {
		return pyreader.Run{}, err
	}
	LogStandIn(log, e, module, m)
	run := pyreader.Run{
		Backend: m.Framework, Version: o.Version, Model: m.Model, Module: m.Name, File: experiment.Config, Params: m.Params.Any(), Env: variablesOf(e),
	}
	if model, ok := run.Params["model"]; ok {
		run.Model = model
	}
	if patches != os.Getenv(patch.EnvFilter) { // it was given as a flag or in primus.yaml, not in the variable, which Primus reads itself
		run.Env[patch.EnvFilter] = patches
	}
	if err := o.readFramework(ctx, &run); err != nil {
		return run, err
	}
	LogDefaults(log, run)
	return run, nil
}

// readFramework completes a run with the version and the defaults that the source tree of the
// framework states: that of --backend-repo, or else one in third_party of the checkout, which may
// be empty.
func (o *Checkout) readFramework(ctx context.Context, run *pyreader.Run) (err error) {
	tree, asked := o.Tree, o.Tree != ""
	if !asked {
		tree = pyreader.FrameworkTree(o.Repo, run.Backend)
	}
	if tree == "" {
		return nil
	}
	version, err := pyreader.FrameworkVersion(tree, run.Backend)
	if !asked && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--backend-repo: version of %s: %w", run.Backend, err)
	}
	if run.Version == "" {
		run.Version = version
	}
	if run.Backend == "megatron" {
		run.Defaults, err = pyreader.MegatronDefaults(ctx, tree)
	}
	return err
}

// LogDefaults logs that parameters which a run does not set have the defaults of another version of
// the framework.
func LogDefaults(log *slog.Logger, run pyreader.Run) {
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

// PlanPatches plans an experiment with the patches of this program.
func PlanPatches(ctx context.Context, prog cli.Program, run *RunOptions, s Stage, experiment *Options, overrides []string) (report.PatchPlan, error) {
	e, err := experiment.Load(ctx, s.Module, overrides)
	if err != nil {
		return report.PatchPlan{}, err
	}
	if m, err := e.Module(s.Module); err == nil {
		LogStandIn(slog.New(prog.Lines(prog.Err, slog.LevelWarn)), e, s.Module, m)
	}
	plan, err := PlanRun(ctx, prog, run, s, e)
	if err != nil {
		return report.PatchPlan{}, err
	}
	var patches report.PatchPlan
	err = graph.WithBackends(ctx, prog, plan.Log, func(p graph.PlanParams) error {
		patches = report.NewPatchPlan(plan, p.Patches)
		return nil
	})
	return patches, err
}
