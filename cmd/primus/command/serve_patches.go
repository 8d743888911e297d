package command

import (
	"context"

	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/patch/explore"
	"github.com/primus-fl/primus/serve"
	"github.com/spf13/cobra"
)

// patchesServed are the flags of the service about patches.
type patchesServed struct {
	experimentOptions
	checkout repoPlanOptions
	run      runOptions
	post     bool
}

func (o *patchesServed) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.presetOptions.addFlags(flags)
	repoFlag(cmd, &o.checkout.repo)
	flags.StringVar(&o.config, "config", "", "show which patches the experiment in a YAML, TOML or JSON `FILE` gets; --exp is the same")
	flags.StringVar(&o.checkout.version, "backend-version", "", "with --repo and --config: the `VERSION` of the framework; without it, that of the source tree in third_party")
	flags.BoolVar(&o.post, "posttrain", false, "plan the stage posttrain, with the post_trainer module")
	o.run.addPlanFlags(flags)
}

// check returns an error for flags that need others.
func (o *patchesServed) check(cmd *cobra.Command) error {
	if o.checkout.version != "" && (o.checkout.repo == "" || o.config == "") {
		return usagef(cmd, "--backend-version is about the plan of a checkout of Primus: want --repo DIR and --config FILE with it")
	}
	return nil
}

// patchSource is where a patch comes from.
type patchSource string

const (
	fromProgram  patchSource = "program"  // it is one of this program
	fromCheckout patchSource = "checkout" // it is one of the checkout of --repo
)

// servedPatch is a patch in the answer of the service.
type servedPatch struct {
	Source patchSource `json:"source"`
	explore.Record
}

// servedPlan is a plan in the answer of the service.
type servedPlan struct {
	Source patchSource `json:"source"` // of its patches
	Config string      `json:"config"`
	planView
}

// servedPatches are what the service shows beside the patches of this program.
type servedPatches struct {
	records []explore.Record // of the checkout
	plan    any              // nil without an experiment
}

// open reads the checkout and plans the experiment, each where it is given.
func (o *patchesServed) open(ctx context.Context, prog program) (shown servedPatches, err error) {
	s := pretrain
	if o.post {
		s = posttrain
	}
	if o.checkout.repo == "" {
		if o.config == "" {
			return shown, nil
		}
		_, view, err := planOwn(ctx, prog, &o.run, s, &o.experimentOptions, nil)
		if err == nil {
			shown.plan = &servedPlan{fromProgram, o.config, view}
		}
		return shown, err
	}
	c, err := openCheckout(prog, o.checkout.repo)
	if err != nil {
		return shown, err
	}
	shown.records = c.Records
	if o.config == "" {
		return shown, nil
	}
	run, err := o.checkout.experiment(prog, o.checkout.withPresets(o.experimentOptions), o.run.patches, s.module, nil)
	if err != nil {
		return shown, err
	}
	shown.plan = &servedPlan{fromCheckout, o.config, newRepoPlanView(c, run, c.Plan(run))}
	return shown, nil
}

// lists returns what the service answers: the patches of the checkout with those of a set, and the plan if there is one.
func (p servedPatches) lists(own *patch.Set) (patches, plan serve.Lister) {
	all := make([]servedPatch, 0, len(p.records))
	for _, r := range p.records {
		all = append(all, servedPatch{fromCheckout, r})
	}
	for _, r := range explore.Own(own) {
		all = append(all, servedPatch{fromProgram, r})
	}
	patches = func(context.Context) (any, error) { return all, nil }
	if p.plan != nil {
		plan = func(context.Context) (any, error) { return p.plan, nil }
	}
	return patches, plan
}
