package patches

import (
	"errors"
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/report"
	"github.com/spf13/cobra"
)

// planOptions are the flags that say what is planned.
type planOptions struct {
	experiments.Options
	run experiments.RunOptions
}

// check returns the first mistake in the options.
func (o *planOptions) check(cmd *cobra.Command, overrides []string) error {
	if err := o.Options.Check(cmd, overrides); err != nil {
		return err
	}
	return experiments.CheckLogging()
}

func newPatchesPlanCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts planOptions
	opts.Program = prog
	var checkout checkoutPlan
	var post bool
	var past string
	cmd := &cobra.Command{
		Use:   "plan --config FILE [key=value…]",
		Short: "Say which patches an experiment would run, in order, and why the others would not run",
		Long: `Say which patches an experiment would run, in order, and why the others would not run.

With --run DIR it says what happened to them in a run that has ended: applied, failed or
skipped, by primus or by the Python processes of a framework, and why.`,
		Example: `  primus patches plan --config exp.yaml
  primus patches plan --config exp.yaml z_loss_coeff=1e-4 -o json
  primus patches plan --config exp.yaml --repo ~/Primus --backend-version 0.16.0
  primus patches plan --config exp.yaml --repo ~/Primus --diff other.yaml
  primus patches plan --run output/amd/root/llama2_7B-pretrain`,
		ValidArgsFunction: experiments.CompleteTrain(prog, "pre_trainer"),
		RunE: func(cmd *cobra.Command, overrides []string) error {
			if past != "" {
				return showRun(cmd, prog, past, overrides, output)
			}
			if err := errors.Join(opts.check(cmd, overrides), checkout.check(cmd)); err != nil {
				return err
			}
			s := experiments.Pretrain
			if post {
				s = experiments.Posttrain
			}
			if checkout.Repo != "" {
				return checkout.run(cmd.Context(), prog, &opts, s.Module, overrides, output)
			}
			plan, err := experiments.PlanPatches(cmd.Context(), prog, &opts.run, s, &opts.Options, overrides)
			if err != nil {
				return err
			}
			if output == cli.OutputJSON {
				return cli.WriteJSON(prog.Out, plan)
			}
			_, err = io.WriteString(prog.Out, plan.Text(prog.Out))
			return err
		},
	}
	flags := cmd.Flags()
	opts.Options.AddFlags(flags)
	flags.BoolVar(&post, "posttrain", false, "plan the stage posttrain, with the post_trainer module")
	flags.StringVar(&past, "run", "", "say what happened to the patches in the run with the directory `DIR`; no other flag is needed")
	opts.run.AddPlanFlags(flags)
	checkout.addFlags(cmd)
	output.AddFlag(cmd)
	for _, name := range []string{"output", "posttrain", "run"} {
		flags.Lookup(name).Annotations = map[string][]string{cli.VariableOnly: nil}
	}
	return cmd
}

// showRun shows the results of the patches in a run.
func showRun(cmd *cobra.Command, prog cli.Program, dir string, overrides []string, output cli.OutputFormat) error {
	if len(overrides) > 0 || cmd.Flags().Changed("config") {
		return cli.Usagef(cmd, "--run %s: a past run has no experiment to change: leave out --config and %q", dir, overrides)
	}
	run, err := report.ReadPatchRun(dir)
	if err != nil {
		return err
	}
	if output == cli.OutputJSON {
		return cli.WriteJSON(prog.Out, run)
	}
	_, err = io.WriteString(prog.Out, run.Text(prog.Out))
	return err
}
