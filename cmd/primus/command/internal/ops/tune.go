package ops

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tuning"
)

// tuneOptions are the flags of `primus ops tune`.
type tuneOptions struct {
	experiments.TrainingOptions
	budget time.Duration
	file   string
	output cli.OutputFormat
}

func newOpsTuneCommand(prog cli.Program) *cobra.Command {
	var opts tuneOptions
	opts.Program = prog
	cmd := &cobra.Command{
		Use:   "tune --config FILE [key=value…]",
		Short: "Measure which implementation is fastest for each call of an experiment",
		Long: `Make two steps of an experiment on a batch of random tokens, and measure every call that
they make in turn on each implementation that the policy allows except the reference.
The fastest is kept in a tuning file, with the machine that it holds for; train --tune
FILE uses it. An implementation counts as faster when the whole 95 % interval of the
median of the ratios shows a gain of at least 2 %. At the end, whole steps are made with
and without the choices, in turn, and choices that do not make them clearly faster are
dropped.

What is faster for most calls of an op is chosen for the op, and another one for the
calls where that is faster. The ops of a family, such as attention and its gradient, are
chosen together.`,
		Example: `  primus ops tune --config exp.yaml --tuning-file tune.json
  primus ops tune --config exp.yaml --budget 5m --threads 1 -o json
  primus train --config exp.yaml --tune tune.json`,
	}
	flags := cmd.Flags()
	opts.TrainingOptions.AddFlags(flags)
	flags.DurationVar(&opts.budget, "budget", time.Minute, "measure for at most this `TIME`, or for as long as the least number of whole steps takes")
	flags.StringVar(&opts.file, "tuning-file", "tune.json", "write the choices to `FILE`; an empty name writes none")
	opts.output.AddFlag(cmd)
	for _, name := range []string{"budget", "tuning-file", "output"} {
		cli.WithoutVariable(flags, name)
	}
	experiments.TakeOverrides(prog, cmd, experiments.Pretrain.Module, func(cmd *cobra.Command, overrides []string) error {
		if err := opts.Check(cmd, overrides); err != nil {
			return err
		}
		if opts.budget <= 0 {
			return cli.Usagef(cmd, "--budget: given %v, want a time above 0, such as 60s", opts.budget)
		}
		if err := writable("tuning-file", opts.file); err != nil {
			return err
		}
		return opts.WithSteps(cmd.Context(), prog, "ops tune", overrides, func(p experiments.StepParams) error {
			file, err := opts.tune(cmd, prog, p)
			if err != nil {
				return err
			}
			var unwritten error // what was measured is printed all the same
			if opts.file != "" {
				unwritten = file.Write(opts.file)
			}
			printed := opts.output.Print(prog.Out, file, func() error { return printTuning(prog.Out, file, opts.file, unwritten == nil) })
			return errors.Join(printed, unwritten)
		})
	})
	return cmd
}

// writable returns an error unless a flag names a file that can be written, or none. It is asked
// before work that would be lost.
func writable(flag, file string) error {
	if file == "" {
		return nil
	}
	if err := durable.CheckFileWritable(file); err != nil {
		return fmt.Errorf("--%s: given %q: %w", flag, file, durable.Explain(err))
	}
	return nil
}

// tune measures and shows where it is.
func (o *tuneOptions) tune(cmd *cobra.Command, prog cli.Program, p experiments.StepParams) (*tuning.File, error) {
	screen := &plaintext.Console{Out: prog.Err, Width: prog.Width}
	defer screen.SetStatus("")
	screen.SetStatus("making steps")
	file, err := stepbench.Tune(cmd.Context(), stepbench.TuneSettings{
		Module: p.Module, Manager: p.Manager, Ops: p.Registry.Snapshot(), Device: p.Device, Log: p.Log,
		Budget:   func(int, time.Duration) time.Duration { return o.budget },
		Progress: func(op, call string, n, of int) { screen.SetStatus(fmt.Sprintf("%d/%d %s: %s", n, of, op, call)) },
		Trial:    func(step int) { screen.SetStatus(fmt.Sprintf("step %d, with the choices and without", step)) },
	})
	switch {
	case err != nil:
		return nil, err
	case file == nil:
		return nil, fmt.Errorf("the policy leaves no choice: no op has two impls besides the reference; primus ops list shows why")
	}
	return file, nil
}

// trialText says what whole steps gain, "" if no choices were tried.
func trialText(t *tuning.Trial) string {
	if t == nil {
		return ""
	}
	figures := fmt.Sprintf("%.2f times as fast (%.2f to %.2f, %s of steps)", t.Ratio, t.Low, t.High, plaintext.Quantity(t.Pairs, "pair", "pairs"))
	if t.Faster() {
		return "\nwhole steps are " + figures + " with the choices as without\n"
	}
	return "\nno choice is used, because whole steps are not clearly faster with them: " + figures + "\n"
}

func printTuning(out io.Writer, f *tuning.File, name string, written bool) error {
	t := plaintext.NewTable(table.Row{"op", "call", "calls", "share", "fastest", "times faster", "than", "samples", "clear"}, 3, 4, 6, 8).
		Optional("samples", "calls", "clear")
	for _, e := range f.Entries {
		faster, over, clear := "-", "-", "yes"
		if e.Impl != e.Over {
			faster, over = fmt.Sprintf("%.2f (%.2f to %.2f)", e.Ratio, e.Low, e.High), e.Over
		}
		if !e.Clear {
			clear = "no"
		}
		if e.Dropped {
			clear = "dropped"
		}
		t.AppendRow(table.Row{e.Op, e.Call, e.Calls, fmt.Sprintf("%.1f %%", 100*e.Share), e.Impl, faster, over, e.Samples, clear})
	}
	if _, err := fmt.Fprintf(out, "%s\n%s", plaintext.Render(out, t), trialText(f.Trial)); err != nil || name == "" || !written {
		return err
	}
	text := "primus train --tune " + name + " uses it"
	if !f.Chooses() {
		text = "it chooses the impls that the policy chooses without it"
	}
	_, err := fmt.Fprintf(out, "\nwritten to %s; %s\n", name, text)
	return err
}
