package patches

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/spf13/cobra"
)

func newPatchesExplainCommand(prog cli.Program) *cobra.Command {
	var repo string
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:     "explain --repo DIR ID",
		Short:   "Say what a patch of a checkout changes, when and why, and which other patches change the same",
		Example: "  primus patches explain --repo ~/Primus megatron.training.wall_clock_step_timer",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := experiments.OpenCheckout(cmd.Context(), prog, repo)
			if err != nil {
				return err
			}
			e, err := c.Explain(args[0])
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return output.Print(prog.Out, e, func() error { return printExplanation(prog, e) })
		},
	}
	experiments.RepoFlag(cmd, &repo)
	output.AddFlag(cmd)
	return cmd
}

func printExplanation(prog cli.Program, e *pyreader.Explanation) error {
	var b strings.Builder
	section := func(title string, lines ...string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	fmt.Fprintf(&b, "%s\n%s\n", e.ID, e.Summary())
	fmt.Fprintf(&b, "%s, phase %s, priority %d, at %s\n", e.Backend, e.Phase, e.Priority, e.Location())

	var changes []string
	for _, effect := range e.Effects {
		change := fmt.Sprintf("%-15s %s", changeWord(effect), effect.Target)
		if effect.By != "" {
			change += " ← " + beginning(effect.By)
		}
		change += fmt.Sprintf("  (%s:%d)", effect.File, effect.Line)
		if effect.Alternative {
			change += "  where the usual way failed"
		}
		changes = append(changes, change)
	}
	section("what it changes", changes...)
	section("when", conditionLines(&e.Record)...)
	var order []string
	for _, shared := range e.Order {
		order = append(order, shared.Symbol+":")
		for i, taker := range shared.Patches {
			mark := " "
			if taker.ID == e.ID {
				mark = "*"
			}
			order = append(order, fmt.Sprintf("%s %d. %s  %s, priority %d, %s", mark, i+1, taker.ID, taker.Phase, taker.Priority, taker.Style))
		}
	}
	section("order of those that change the same", order...)
	if doc := strings.TrimSpace(unindent(e.Doc)); doc != "" {
		section("why", strings.Split(doc, "\n")...)
	}
	section("comments", e.Comments...)
	section("when the framework is upgraded, check that", e.Upgrade...)
	section("replaced registrations of this id", e.Replaced...)
	section("unknown", e.Unknown...)
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}

// changeWord says what kind of change an effect is.
func changeWord(e pyreader.Effect) string {
	if e.Style != "" {
		return string(e.Style)
	}
	return e.Kind
}

// beginning returns the beginning of a long text.
func beginning(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// unindent removes the indentation that the lines of a docstring share.
func unindent(doc string) string {
	lines := strings.Split(doc, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "    ")
	}
	return strings.Join(lines, "\n")
}

func conditionLines(r *pyreader.Record) []string {
	lines := []string{r.Enabling()}
	cond := r.Condition
	if cond == nil {
		return lines
	}
	if len(cond.Keys) > 0 {
		lines = append(lines, "reads the parameters "+strings.Join(cond.Keys, ", "))
	}
	if len(cond.Env) > 0 {
		lines = append(lines, "reads the variables "+strings.Join(cond.Env, ", "))
	}
	if len(cond.Probes) > 0 {
		lines = append(lines, "asks the machine for "+strings.Join(cond.Probes, ", "))
	}
	if cond.File != "" {
		lines = append(lines, fmt.Sprintf("decided at %s:%d", cond.File, cond.Line))
	} else {
		lines = append(lines, "source: "+strings.Join(strings.Fields(cond.Source), " "))
	}
	if cond.Doc != "" {
		lines = append(lines, strings.Join(strings.Fields(cond.Doc), " "))
	}
	return lines
}

func newPatchesFindCommand(prog cli.Program) *cobra.Command {
	var repo string
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:     "find --repo DIR WORD…",
		Short:   "Find patches of a checkout by words in ids, targets, parameters and texts",
		Example: "  primus patches find --repo ~/Primus deepep\n  primus patches find --repo ~/Primus train_step fp8",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			c, err := experiments.OpenCheckout(cmd.Context(), prog, repo)
			if err != nil {
				return err
			}
			hits, err := c.Search(words)
			if err != nil {
				return err
			}
			if output == cli.OutputJSON {
				return cli.WriteJSON(prog.Out, hits)
			}
			t := plaintext.NewTable(table.Row{"patch", "found in", "text"})
			for _, hit := range hits {
				t.AppendRow(table.Row{hit.ID, hit.Where, beginning(hit.Text)})
			}
			_, err = fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
			return err
		},
	}
	experiments.RepoFlag(cmd, &repo)
	output.AddFlag(cmd)
	return cmd
}
