package serve

import (
	"context"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/report"
	"github.com/spf13/cobra"
)

// patchesServed are the flags of the service about patches.
type patchesServed struct {
	experiments.Options
	checkout experiments.Checkout
	run      experiments.RunOptions
	post     bool
}

func (o *patchesServed) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.PresetOptions.AddFlags(flags)
	experiments.RepoFlag(cmd, &o.checkout.Repo)
	flags.StringVar(&o.Config, "config", "", "show which patches the experiment in a YAML, TOML or JSON `FILE` gets; --exp is the same")
	flags.StringVar(&o.checkout.Version, "backend-version", "", "with --repo and --config: the `VERSION` of the framework; without it, that of the source tree in third_party")
	flags.BoolVar(&o.post, "posttrain", false, "plan the stage posttrain, with the post_trainer module")
	o.run.AddPlanFlags(flags)
}

// check returns an error for flags that need others.
func (o *patchesServed) check(cmd *cobra.Command) error {
	if o.checkout.Version != "" && (o.checkout.Repo == "" || o.Config == "") {
		return cli.Usagef(cmd, "--backend-version is about the plan of a checkout of Primus: want --repo DIR and --config FILE with it")
	}
	return nil
}

// servedPlan is a plan in the answer of the service.
type servedPlan struct {
	Source service.PatchSource `json:"source"` // of its patches
	Config string              `json:"config"`
	report.PatchPlan
}

// open reads the checkout and plans the experiment, if they are given.
func (o *patchesServed) open(ctx context.Context, prog cli.Program) (shown service.ServedPatches, err error) {
	s := experiments.Pretrain
	if o.post {
		s = experiments.Posttrain
	}
	if o.checkout.Repo == "" {
		if o.Config == "" {
			return shown, nil
		}
		view, err := experiments.PlanPatches(ctx, prog, &o.run, s, &o.Options, nil)
		if err == nil {
			shown.Plan = &servedPlan{service.FromProgram, o.Config, view}
		}
		return shown, err
	}
	c, err := experiments.OpenCheckout(ctx, prog, o.checkout.Repo)
	if err != nil {
		return shown, err
	}
	shown.Records = c.Records
	if o.Config == "" {
		return shown, nil
	}
	run, err := o.checkout.Experiment(ctx, prog, o.checkout.WithPresets(o.Options), o.run.Patches, s.Module, nil)
	if err != nil {
		return shown, err
	}
	shown.Plan = &servedPlan{service.FromCheckout, o.Config, report.NewCheckoutPatchPlan(c, run, c.Plan(run))}
	return shown, nil
}
