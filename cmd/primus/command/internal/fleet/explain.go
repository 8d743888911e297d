package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

// fleetPatience is how long commands wait for runs, unless flags say otherwise.
const fleetPatience = 10 * time.Second

func newFleetExplainCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	var at dispatch.CallFlags
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "explain OP",
		Short: "Ask every run which implementation serves an op, and why no other does",
		Long: `Ask every run of a fleet which implementation serves an op, and why no other does.
Each run answers for itself, with its own policy, machine and quarantines; runs with
the same answer are shown together.

--dtype and --shape ask about calls whose first operand is such a tensor, --layer and
--phase about calls of one layer or phase, as primus ops explain does. Without these,
rules for layers and phases are left out.

The exit code is 1 when a run gives no explanation or does not answer in time.`,
		Example: `  primus fleet explain generic_gemm --fleet 10.0.0.1:2379
  primus fleet explain rmsnorm_fwd --dtype bf16 --shape 2048x512
  primus fleet explain generic_gemm --layer 0 --phase backward`,
		Args:              cli.Arguments(1, "ops", "one"),
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			calls, err := at.Calls(cmd)
			if err != nil {
				return err
			}
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				answers, err := c.Ask(ctx, fleet.Question{Op: args[0], Layer: calls.Layer, Phase: calls.Phase, Call: calls.Shape}, patience)
				if err != nil {
					return err
				}
				err = output.Print(prog.Out, answers, func() error { return printAnswers(prog.Out, answers) })
				if err != nil {
					return err
				}
				return missingAnswers(answers)
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	at.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&patience, "patience", fleetPatience, "wait this long for the runs, a `TIME` such as 10s")
	return cmd
}

// printAnswers prints equal answers once, with the runs that gave them.
func printAnswers(out io.Writer, answers []fleet.Answer) error {
	if len(answers) == 0 {
		_, err := fmt.Fprintln(out, "no runs")
		return err
	}
	runs, first, order := map[string][]string{}, map[string]fleet.Answer{}, []string{}
	for _, a := range answers {
		key, err := answerKey(a)
		if err != nil {
			return err
		}
		if _, known := first[key]; !known {
			first[key], order = a, append(order, key)
		}
		runs[key] = append(runs[key], a.Member.ID)
	}
	for i, key := range order {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s\n", plaintext.Quantity(len(runs[key]), "run", "runs"), strings.Join(runs[key], ", "))
		a := first[key]
		if a.Explanation == nil {
			fmt.Fprintln(out, a.Error)
			continue
		}
		fmt.Fprintln(out, a.Explanation)
	}
	return nil
}

// answerKey is equal for equal answers. It leaves out the generation, which each run counts for
// itself.
func answerKey(a fleet.Answer) (string, error) {
	if a.Explanation == nil {
		return "error " + a.Error, nil
	}
	e := *a.Explanation
	e.Generation = 0
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("compare answers: %w", err)
	}
	return string(text), nil
}

// missingAnswers returns an error that counts the runs without an explanation.
func missingAnswers(answers []fleet.Answer) error {
	missing := 0
	for _, a := range answers {
		if a.Explanation == nil {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s gave no explanation", missing, plaintext.Quantity(len(answers), "run", "runs"))
}
