package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/patch/explore"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/spf13/cobra"
)

// planView is the result of `primus patches plan`.
type planView struct {
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
	experimentOptions
	run runOptions
}

// check returns the first mistake in the options.
func (o *planOptions) check(cmd *cobra.Command, overrides []string) error {
	if err := o.experimentOptions.check(cmd, overrides); err != nil {
		return err
	}
	return checkLogging()
}

func newPatchesPlanCommand(prog program) *cobra.Command {
	var output outputFormat
	var opts planOptions
	opts.extras = prog.extras
	var checkout repoPlanOptions
	var post bool
	cmd := &cobra.Command{
		Use:   "plan --config FILE [key=value…]",
		Short: "Say which patches an experiment would run, in order, and why not the others",
		Example: `  primus patches plan --config exp.yaml
  primus patches plan --config exp.yaml z_loss_coeff=1e-4 -o json
  primus patches plan --config exp.yaml --repo ~/Primus --backend-version 0.16.0
  primus patches plan --config exp.yaml --repo ~/Primus --diff other.yaml`,
		ValidArgsFunction: completeTrain(prog, "pre_trainer"),
		RunE: func(cmd *cobra.Command, overrides []string) error {
			if err := errors.Join(opts.check(cmd, overrides), checkout.check(cmd)); err != nil {
				return err
			}
			s := pretrain
			if post {
				s = posttrain
			}
			if checkout.repo != "" {
				return checkout.run(prog, &opts, s.module, overrides, output)
			}
			plan, view, err := planOwn(cmd.Context(), prog, &opts.run, s, &opts.experimentOptions, overrides)
			if err != nil {
				return err
			}
			if output == outputJSON {
				return writeJSON(prog.Out, view)
			}
			return view.print(prog, plan)
		},
	}
	flags := cmd.Flags()
	opts.experimentOptions.addFlags(flags)
	flags.BoolVar(&post, "posttrain", false, "plan the stage posttrain, with the post_trainer module")
	opts.run.addPlanFlags(flags)
	checkout.addFlags(cmd)
	output.addFlag(cmd)
	for _, name := range []string{"output", "posttrain"} {
		flags.Lookup(name).Annotations = map[string][]string{variableOnly: nil}
	}
	return cmd
}

// planOwn plans an experiment with the patches of this program.
func planOwn(ctx context.Context, prog program, run *runOptions, s stage, experiment *experimentOptions, overrides []string) (*train.Plan, planView, error) {
	e, err := experiment.load(s.module, overrides)
	if err != nil {
		return nil, planView{}, err
	}
	plan, err := planRun(ctx, prog, run, s, e)
	if err != nil {
		return nil, planView{}, err
	}
	var view planView
	err = withBackends(ctx, prog, plan.Log, func(p planParams) error {
		view = newPlanView(plan, p.Patches)
		return nil
	})
	return plan, view, err
}

// newPlanView returns what a plan says about every patch of a set.
func newPlanView(p *train.Plan, set *patch.Set) planView {
	view := planView{Framework: p.Framework, Version: p.Version, Patches: []planRow{}, Unknown: p.UnknownPatches, Contended: []planShared{}, Problems: list(p.Problems)}
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

// unknownPatches says what to do about patches that a plan does not list.
func unknownPatches(which string) string {
	return which + ": primus patches plan --repo DIR --config FILE says which of them a checkout of Primus makes"
}

func (v planView) print(prog program, p *train.Plan) error {
	t := newTable(table.Row{"phase", "order", "patch", "priority", "why not"}, 2, 4)
	for _, r := range v.Patches {
		order := "-"
		if r.Order > 0 {
			order = fmt.Sprint(r.Order)
		}
		t.AppendRow(table.Row{r.Phase, order, r.Patch, r.Priority, r.Reason})
	}
	text := fmt.Sprintf("framework %s, version %s\n\n%s\n%s", v.Framework, orUnknown(v.Version), render(t), contended(p.Phases))
	if v.Unknown != "" {
		text += unknownPatches(v.Unknown) + "\n"
	}
	for _, problem := range v.Problems {
		text += "\nproblem: " + problem + "\n"
	}
	_, err := fmt.Fprint(prog.Out, text)
	return err
}
