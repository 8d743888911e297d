package plugins

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin/check"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/opencl"
	"github.com/spf13/cobra"
)

// checkOptions say how `primus plugins check` treats a plugin.
type checkOptions struct {
	op       string // pattern of names
	limit    time.Duration
	failures int
	device   string
	calls    dispatch.KitCalls
}

func newPluginsCheckCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check the ops in a shared library and write a report for its release",
		Long: `Check a shared library with ops: its description; every op in all cases of the
conformance kit against the reference, with guard bands around all memory; calls from
many threads; memory and open files over 30,000 calls; and the time of a call compared
with flagos. Ops for a device are checked on the first device of its type, or that of
--device, and measured beside vendor.opencl.

By default one length of a call is that of a model and the others are small; with
--thorough they are all those of models of 1B, 8B and 70B parameters, in operands of at
most 134 million elements, which takes minutes and up to 8 GiB of memory for each op.
--recording adds the calls that a run kept. Where a call would take the reference too
long, 24 parts of the result are compared with it and invariants of the whole; the table
says in how many.

Each op is checked in a process of its own. If one crashes or hangs, that is reported and
the others are still checked. The exit code is 1 if a check fails.`,
		Example: `  primus plugins check ./libacme.so
  primus plugins check ./libacme.so --op 'rmsnorm_*'
  primus plugins check ./libacme.so --thorough --recording output/calls
  primus plugins check ./libacme.so -o json > libacme.report.json`,
		Args: cli.Arguments(1, "arguments", "the file of one plugin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(cmd); err != nil {
				return err
			}
			part := []string{graph.Self(), "plugins", checkPart}
			part = append(part, opts.calls.Words()...)
			if opts.device != "" {
				if err := withDevices(cmd.Context(), prog, opts.device, func(deviceFinder) error { return nil }); err != nil {
					return err
				}
				part = append(part, "--device", opts.device)
			}
			screen := &plaintext.Console{Out: prog.Err, Width: prog.Width}
			defer screen.SetStatus("")
			report, err := check.Plugin(cmd.Context(), args[0], check.Settings{
				Command: part, Ops: opts.op, Limit: opts.limit, Status: screen.SetStatus,
			})
			if err != nil {
				return err
			}
			screen.SetStatus("")
			err = output.Print(prog.Out, report, func() error { return printChecked(prog.Out, report, opts.failures) })
			if err == nil && !report.Passed {
				return cli.ErrReported
			}
			return err
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().StringVar(&opts.op, "op", "*", "only ops whose name matches `PATTERN`")
	opts.calls.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&opts.limit, "timeout", 2*time.Minute, "give up on a part of the check that takes longer")
	cmd.Flags().StringVar(&opts.device, "device", "", "check ops for devices of its type on this `DEVICE`, such as opencl:1")
	cmd.Flags().IntVar(&opts.failures, "failures", 3, "show at most `N` failed cases of an op; 0 shows all")
	return cmd
}

// checkPart is the command that checks a part of a plugin for `primus plugins check`.
const checkPart = "check-child"

func newPluginsCheckChildCommand(prog cli.Program) *cobra.Command {
	var name string
	var calls dispatch.KitCalls
	cmd := &cobra.Command{
		Use:    checkPart + " [OP IMPL DEVICE] FILE",
		Short:  "Check a part of a plugin for primus plugins check",
		Hidden: true,
		Args:   cobra.RangeArgs(1, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			catalogue := opregistry.NewRegistry()
			if err := catalogue.Register(reference.Source()); err != nil {
				return err
			}
			options, _, err := calls.Options(cmd.Context(), catalogue.Snapshot())
			if err != nil {
				return err
			}
			return withDevices(cmd.Context(), prog, name, func(find deviceFinder) error {
				return check.Part(args, check.PartSettings{Reference: reference.Source(), Baseline: flagos.Source(), DeviceBaseline: opencl.Source(), Device: find, Options: options})
			})
		},
	}
	cmd.Flags().StringVar(&name, "device", "", "the device to check on")
	calls.AddFlags(cmd.Flags())
	return cmd
}

func (o *checkOptions) check(cmd *cobra.Command) error {
	if _, err := path.Match(o.op, ""); err != nil {
		return cli.Usagef(cmd, "--op: given %q, want a name in which * stands for any letters", o.op)
	}
	switch {
	case o.limit <= 0:
		return cli.Usagef(cmd, "--timeout: given %v, want more than 0", o.limit)
	case o.failures < 0:
		return cli.Usagef(cmd, "--failures: given %d, want a number from 0", o.failures)
	}
	return nil
}

func printChecked(out io.Writer, r *check.Report, maxShown int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin   %s %s, ABI %s\n", plaintext.Dash(r.Name), plaintext.Dash(r.Version), plaintext.Dash(r.ABI))
	fmt.Fprintf(&b, "file     %s\nsha256   %s\n", r.File, r.SHA256)
	fmt.Fprintf(&b, "checked  %v, %s, %d threads\n", r.Primus, plaintext.Dash(r.CPU), r.Threads)
	if len(r.Checks) > 0 {
		fmt.Fprintf(&b, "\n%s\n", plaintext.Render(out, conformanceTable(r.Checks)))
		fmt.Fprintf(&b, "\n%s\n", plaintext.Render(out, behaviourTable(r.Checks)))
	}
	if t := speedTable(r.Checks); t.Length() > 0 {
		fmt.Fprintf(&b, "\n%s\n", plaintext.Render(out, t))
	}
	for _, c := range r.Checks {
		shown := 0
		for _, res := range c.Results {
			for _, f := range res.Failures {
				if shown++; maxShown == 0 || shown <= maxShown {
					fmt.Fprintf(&b, "\n%s, %s: case %s\n%s\n", c.Op, c.Name(), f.Case, plaintext.Indent(plaintext.Lines(f.Reason, "")))
				}
			}
		}
		if maxShown > 0 && shown > maxShown {
			fmt.Fprintf(&b, "\n%s, %s: %d more failures; --failures 0 shows all\n", c.Op, c.Name(), shown-maxShown)
		}
	}
	b.WriteByte('\n')
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", plaintext.Lines(n, "  "))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault: %s\n", plaintext.Lines(f, "  "))
	}
	if t := sizesTable(r.Checks); t.Length() > 0 {
		fmt.Fprintf(&b, "\nat the sizes of models:\n%s\n\n", plaintext.Render(out, t))
	}
	result := "failed"
	if r.Passed {
		result = "passed"
	}
	_, err := fmt.Fprintf(out, "%sresult: %s\n", b.String(), result)
	return err
}

func conformanceTable(checks []check.OpReport) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"op", "impl", "dtype", "result", "served", "declined", "failed", "seconds", "compared"}, 5, 6, 7, 8).
		Optional("seconds", "failed", "declined", "served")
	for _, c := range checks {
		if len(c.Results) == 0 {
			t.AppendRow(table.Row{c.Op, c.Name(), "-", c.Status(), "-", "-", "-", "-", "-"})
		}
		for _, r := range c.Results {
			t.AppendRow(table.Row{c.Op, c.Name(), r.DType, r.Status(), r.Served, r.Declined, plaintext.Count(uint64(len(r.Failures))), fmt.Sprintf("%.1f", r.Seconds), r.Compared()})
		}
	}
	return t
}

func behaviourTable(checks []check.OpReport) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"op", "impl", "flags", "threads", "bytes lost per call", "files left open"}, 5, 6)
	for _, c := range checks {
		threads, lost, files := "-", "-", "-"
		if c.Together != nil {
			threads = fmt.Sprintf("%d calls by %d", c.Together.Calls, c.Together.Callers)
		}
		if c.Leaks != nil {
			lost, files = fmt.Sprint(c.Leaks.BytesPerCall), fmt.Sprint(c.Leaks.Files)
		}
		t.AppendRow(table.Row{c.Op, c.Name(), plaintext.Dash(strings.Join(c.Flags, ", ")), threads, lost, files})
	}
	return t
}

// speedTable shows the times of ops, each beside its baseline.
func speedTable(checks []check.OpReport) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"op", "impl", "case", "bytes", "µs per call", "baseline", "its µs", "× baseline"}, 4, 5, 7, 8)
	for _, c := range checks {
		for _, s := range c.Speed {
			other, ratio := "-", "-"
			if s.Baseline != "" {
				other, ratio = fmt.Sprintf("%.2f", s.BaselineTime), fmt.Sprintf("%.2f", s.BaselineTime/s.Impl)
			}
			t.AppendRow(table.Row{c.Op, c.Name(), s.Case, s.Bytes, fmt.Sprintf("%.2f", s.Impl), plaintext.Dash(s.Baseline), other, ratio})
		}
	}
	return t
}

// sizesTable shows what ops do at the sizes of models.
func sizesTable(checks []check.OpReport) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"op", "impl", "model", "dtype", "shape", "result", "µs per call", "× baseline", "GB/s", "GFLOP/s", "of the machine"}, 7, 8, 9, 10, 11).
		Optional("of the machine", "GB/s", "GFLOP/s", "dtype")
	for _, c := range checks {
		for _, s := range c.Sizes {
			row := table.Row{c.Op, c.Name(), s.Model, s.DType, s.Shape, s.Result}
			for _, cell := range sizeCells(s) {
				row = append(row, cell)
			}
			t.AppendRow(row)
		}
	}
	return t
}

// sizeCells returns time, ratio, GB/s, GFLOP/s and part of the bound as text.
func sizeCells(s check.Size) [5]string {
	cells := [5]string{"-", "-", "-", "-", "-"}
	if s.Time == 0 {
		return cells
	}
	cells[0], cells[2] = fmt.Sprintf("%.0f", s.Time), fmt.Sprintf("%.1f", s.GBPerS)
	if s.BaselineTime > 0 {
		cells[1] = fmt.Sprintf("%.2f", s.BaselineTime/s.Time)
	}
	if s.GFLOPS > 0 {
		cells[3] = fmt.Sprintf("%.1f", s.GFLOPS)
	}
	if s.PeakShare > 0 {
		cells[4] = fmt.Sprintf("%.0f%% of %s", 100*s.PeakShare, s.Bound)
	}
	return cells
}
