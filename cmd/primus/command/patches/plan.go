package patches

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/patch/explore"
	"github.com/primus-fl/primus/runtime/report"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/spf13/cobra"
)

// PlanView is the result of `primus patches plan`.
type PlanView struct {
	Framework string       `json:"framework"`
	Version   string       `json:"version"`
	Patches   []planRow    `json:"patches"`
	Unknown   string       `json:"unknown"` // which patches are not listed because they are not known; "" for none
	Contended []planShared `json:"contended"`
	Problems  []string     `json:"problems"`
}

// planRow is what a plan says about a patch.
type planRow struct {
	Patch    string      `json:"patch"`
	Phase    patch.Phase `json:"phase"`
	Order    int         `json:"order"` // in its phase, from 1; 0 when it does not run
	Priority int         `json:"priority"`
	Reason   string      `json:"reason"` // why it does not run; of patches of a checkout also why it does
	Verdict  string      `json:"verdict"`
}

// planShared is something that several patches change, in this order.
type planShared struct {
	Phase   patch.Phase `json:"phase"`
	Symbol  string      `json:"symbol"`
	Patches []string    `json:"patches"`
}

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
	opts.Extras = prog.Extras
	var checkout RepoPlanOptions
	var post bool
	cmd := &cobra.Command{
		Use:   "plan --config FILE [key=value…]",
		Short: "Say which patches an experiment would run, in order, and why not the others",
		Example: `  primus patches plan --config exp.yaml
  primus patches plan --config exp.yaml z_loss_coeff=1e-4 -o json
  primus patches plan --config exp.yaml --repo ~/Primus --backend-version 0.16.0
  primus patches plan --config exp.yaml --repo ~/Primus --diff other.yaml`,
		ValidArgsFunction: experiments.CompleteTrain(prog, "pre_trainer"),
		RunE: func(cmd *cobra.Command, overrides []string) error {
			if err := errors.Join(opts.check(cmd, overrides), checkout.check(cmd)); err != nil {
				return err
			}
			s := experiments.Pretrain
			if post {
				s = experiments.Posttrain
			}
			if checkout.Repo != "" {
				return checkout.run(prog, &opts, s.Module, overrides, output)
			}
			plan, view, err := PlanOwn(cmd.Context(), prog, &opts.run, s, &opts.Options, overrides)
			if err != nil {
				return err
			}
			if output == cli.OutputJSON {
				return cli.WriteJSON(prog.Out, view)
			}
			return view.print(prog, plan)
		},
	}
	flags := cmd.Flags()
	opts.Options.AddFlags(flags)
	flags.BoolVar(&post, "posttrain", false, "plan the stage posttrain, with the post_trainer module")
	opts.run.AddPlanFlags(flags)
	checkout.addFlags(cmd)
	output.AddFlag(cmd)
	for _, name := range []string{"output", "posttrain"} {
		flags.Lookup(name).Annotations = map[string][]string{cli.VariableOnly: nil}
	}
	return cmd
}

// PlanOwn plans an experiment with the patches of this program.
func PlanOwn(ctx context.Context, prog cli.Program, run *experiments.RunOptions, s experiments.Stage, experiment *experiments.Options, overrides []string) (*train.Plan, PlanView, error) {
	e, err := experiment.Load(s.Module, overrides)
	if err != nil {
		return nil, PlanView{}, err
	}
	if m, err := e.Module(s.Module); err == nil {
		experiments.LogStandIn(slog.New(prog.Lines(prog.Err, slog.LevelWarn)), e, s.Module, m)
	}
	plan, err := experiments.PlanRun(ctx, prog, run, s, e)
	if err != nil {
		return nil, PlanView{}, err
	}
	var view PlanView
	err = graph.WithBackends(ctx, prog, plan.Log, func(p graph.PlanParams) error {
		view = newPlanView(plan, p.Patches)
		return nil
	})
	return plan, view, err
}

// newPlanView returns what a plan says about every patch of a set.
func newPlanView(p *train.Plan, set *patch.Set) PlanView {
	view := PlanView{Framework: p.Framework, Version: p.Version, Patches: []planRow{}, Unknown: p.UnknownPatches, Contended: []planShared{}, Problems: cli.List(p.Problems)}
	seen := map[string]bool{}
	for _, phase := range p.Phases {
		for i, d := range phase.Decisions {
			row := planRow{Patch: d.Patch.ID, Phase: phase.Phase, Priority: d.Patch.Priority.Int(), Reason: d.Reason}
			row.Verdict = string(explore.No)
			if d.Run {
				row.Order, row.Verdict = i+1, string(explore.Yes)
			}
			seen[d.Patch.ID] = true
			view.Patches = append(view.Patches, row)
		}
		for symbol, ids := range phase.Contended {
			view.Contended = append(view.Contended, planShared{phase.Phase, symbol, ids})
		}
	}
	slices.SortFunc(view.Contended, func(a, b planShared) int {
		return slices.Compare([]string{string(a.Phase), a.Symbol}, []string{string(b.Phase), b.Symbol})
	})
	for _, other := range set.All() {
		if seen[other.ID] {
			continue
		}
		reason := fmt.Sprintf("training has no phase %s", other.Phase)
		if other.Backend != "" && other.Backend != p.Framework {
			reason = fmt.Sprintf("it is for backend %s, not for %s", other.Backend, p.Framework)
		}
		view.Patches = append(view.Patches, planRow{Patch: other.ID, Phase: other.Phase, Priority: other.Priority.Int(), Reason: reason, Verdict: string(explore.No)})
	}
	return view
}

func (v PlanView) print(prog cli.Program, p *train.Plan) error {
	t := plaintext.NewTable(table.Row{"phase", "order", "patch", "priority", "why not"}, 2, 4)
	for _, r := range v.Patches {
		order := "-"
		if r.Order > 0 {
			order = fmt.Sprint(r.Order)
		}
		t.AppendRow(table.Row{r.Phase, order, r.Patch, r.Priority, r.Reason})
	}
	text := fmt.Sprintf("framework %s, version %s\n\n%s\n%s", v.Framework, plaintext.OrUnknown(v.Version), plaintext.Render(t), report.Contended(p.Phases))
	if v.Unknown != "" {
		text += report.UnknownPatches(v.Unknown) + "\n"
	}
	for _, problem := range v.Problems {
		text += "\nproblem: " + problem + "\n"
	}
	_, err := fmt.Fprint(prog.Out, text)
	return err
}
