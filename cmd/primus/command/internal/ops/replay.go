package ops

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// replayOptions say which impls run recorded calls, and how often.
type replayOptions struct {
	impls  []string
	repeat uint
	policy dispatch.Options
}

func newOpsReplayCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE|DIR…",
		Short: "Run recorded calls again, on any implementation",
		Long: `Run calls that train --record-ops kept, on every implementation of their op that runs on
this machine, or on those of --impl. Files are those of train --record-ops, and those of
calls that verification found wrong, in wrong-calls in the directory of the run. A file
has all that a call needs, so it can be sent with a bug report; other programs read it
as a safetensors file.

Each result is compared with that of the reference: right is within the tolerance of the
op; rounding is beyond it, but the reference itself moves as far when its operands are
off by a rounding; wrong is neither, or the impl wrote to an operand that it may not
write. The table has the largest distance in representable values (ULP) and the largest
relative error, from the recorded result and from that of the reference.

The saved state that a backward op reads was written by the implementation that is
named in the column "recorded on".

The exit code is 1 when an implementation fails or is wrong, or when the recorded result
is wrong and no --impl is given. A line below the table names the element.`,
		Example: `  primus train --config exp.yaml --record-ops 'rmsnorm_*,generic_gemm' --record-dir calls
  primus ops replay calls
  primus ops replay output/local/local/exp/wrong-calls --impl vendor.acme
  primus ops replay calls/000003-generic_gemm.safetensors --impl 'vendor.*' --repeat 20
  primus ops replay calls --plugin-modules ./libacme_ops.so -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef(cmd, "given no file, want those of calls that train --record-ops kept, or their directory")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.repeat == 0 {
				return cli.Usagef(cmd, "--repeat: given 0, want at least one run")
			}
			for _, pattern := range opts.impls {
				if _, err := path.Match(pattern, ""); err != nil {
					return cli.Usagef(cmd, "--impl: given %q, want an id in which * stands for any characters", pattern)
				}
			}
			files, err := recording.Files(args...)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			results := []recording.Result{}
			err = graph.WithManager(cmd.Context(), prog, opts.policy.Sources(nil), func(m *opmanager.Manager, snap *opregistry.Snapshot) error {
				for _, file := range files {
					found, err := opts.replay(cmd, m, snap, file)
					if err != nil {
						return err
					}
					results = append(results, found...)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := output.Print(prog.Out, results, func() error { return printReplayed(prog.Out, results) }); err != nil {
				return err
			}
			if slices.ContainsFunc(results, func(r recording.Result) bool { return r.Wrong() || len(opts.impls) == 0 && r.RecordedWrong() }) {
				return cli.ErrReported
			}
			return nil
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().StringSliceVar(&opts.impls, "impl", nil, "only impls whose id matches one of these `PATTERNS`, in which * stands for any characters")
	cmd.Flags().UintVar(&opts.repeat, "repeat", 5, "run each call `N` times to measure it")
	opts.policy.AddFlags(cmd.Flags())
	return cmd
}

// replay runs the call of a file on the impls that the flags select.
func (o *replayOptions) replay(cmd *cobra.Command, m *opmanager.Manager, snap *opregistry.Snapshot, file string) ([]recording.Result, error) {
	call, err := recording.Open(cmd.Context(), file, snap)
	if err != nil {
		return nil, err
	}
	status, err := m.Explain(call.Op.Name())
	if err != nil {
		return nil, err
	}
	available := map[string]bool{}
	for _, s := range slices.Concat(status.Order, status.Rejected) {
		available[s.ID] = s.Available
	}
	i, _ := snap.Index(call.Op.Name())
	var reference *opregistry.Entry
	var selected []opregistry.Entry
	for _, e := range snap.Impls(i) {
		if !available[e.ID] {
			continue
		}
		if e.Kind == opregistry.KindReference && reference == nil {
			reference = &e
		}
		wanted := slices.ContainsFunc(o.impls, func(pattern string) bool { ok, _ := path.Match(pattern, e.ID); return ok })
		if len(o.impls) == 0 {
			wanted = e.Support.On(device.TypeCPU) == nil // the file has its operands in host memory
		}
		if wanted {
			selected = append(selected, e)
		}
	}
	if len(selected) == 0 {
		return nil, cli.Usagef(cmd, "%s: no impl of %s that runs on this machine matches --impl %v; primus ops list %s shows all", file, call.Op.Name(), o.impls, call.Op.Name())
	}
	return recording.Replay(cmd.Context(), call, selected, reference, m.Exec(), int(o.repeat))
}

func printReplayed(out io.Writer, results []recording.Result) error {
	t := plaintext.NewTable(table.Row{"file", "site", "recorded on", "impl", "verdict", "recorded result", "reference", "beyond", "median ms"}, 8, 9).
		Optional("median ms", "recorded on", "beyond")
	var notes []string
	for i, r := range results {
		if r.RecordedReference != nil && r.RecordedReference.Beyond > 0 && (i == 0 || results[i-1].File != r.File) {
			notes = append(notes, fmt.Sprintf("%s: the recorded result, of %s: %s beyond the tolerance of the reference: %s", path.Base(r.File), r.RecordedOn,
				plaintext.Quantity(r.RecordedReference.Beyond, "element is", "elements are"), r.RecordedReference.Worst))
		}
		if r.RecordedWrote != "" && (i == 0 || results[i-1].File != r.File) {
			notes = append(notes, fmt.Sprintf("%s: recorded on %s: %s", path.Base(r.File), r.RecordedOn, r.RecordedWrote))
		}
		ms := "-"
		if r.Time != nil {
			ms = fmt.Sprintf("%.4g", r.Time.Median)
		}
		beyond := "-"
		if r.Reference != nil {
			beyond = fmt.Sprint(r.Reference.Beyond)
			if r.Reference.Worst != "" {
				notes = append(notes, fmt.Sprintf("%s: %s: %s beyond the tolerance of the reference: %s", path.Base(r.File), r.Impl,
					plaintext.Quantity(r.Reference.Beyond, "element is", "elements are"), r.Reference.Worst))
			}
		}
		if r.RecordedWrong() && r.Impl == r.RecordedOn && r.Verdict == recording.Right {
			notes = append(notes, fmt.Sprintf("%s: %s is right here, so its result depends on more than the operands, or its build differs", path.Base(r.File), r.Impl))
		}
		if r.Reason != "" {
			notes = append(notes, fmt.Sprintf("%s: %s: %s", path.Base(r.File), r.Impl, r.Reason))
		}
		t.AppendRow(table.Row{strings.TrimSuffix(path.Base(r.File), recording.Extension), r.Site, plaintext.Dash(r.RecordedOn), r.Impl, r.Verdict, distance(r.Recorded), distance(r.Reference), beyond, ms})
	}
	if _, err := fmt.Fprintln(out, plaintext.Render(out, t)); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	return nil
}

// distance writes how far results are apart.
func distance(m *recording.Match) string {
	switch {
	case m == nil:
		return "-"
	case m.Equal:
		return "equal"
	case m.NaNs > 0:
		return fmt.Sprintf("%d NaN in one only", m.NaNs)
	}
	return fmt.Sprintf("%d ulp, %.2g", m.MaxULP, m.MaxRel)
}
