package ops

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest"
)

// coverageFormat is the value of -o of `primus ops coverage`.
type coverageFormat string

const (
	coverageMarkdown coverageFormat = "md"
	coverageJSON     coverageFormat = "json"
)

// String implements pflag.Value.
func (f *coverageFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *coverageFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *coverageFormat) Set(s string) error {
	switch v := coverageFormat(strings.ToLower(s)); v {
	case coverageMarkdown, coverageJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("unknown format")
}

var _ pflag.Value = (*coverageFormat)(nil)

// coverage is what the conformance kit finds about everything that is compiled in.
type coverage struct {
	Results []opstest.Result `json:"results"`
}

func newOpsCoverageCommand(prog cli.Program) *cobra.Command {
	output := coverageMarkdown
	opts := verifyOptions{impl: "*"}
	cmd := &cobra.Command{
		Use:   "coverage [OP…]",
		Short: "Run the conformance kit over everything and print ops against implementations",
		Long: `Run the conformance kit over every implementation that this machine can run, the
reference included, and print a table of ops against implementations. A cell lists the
storage dtypes that passed. If some cases were declined, such as those with strided
operands, it says how many passed. A dtype that failed has an exclamation mark, and -
is an implementation that declines everything. With --device the implementations for
such devices have columns, too.

The exit code is 1 when a case fails.`,
		Example: `  primus ops coverage > coverage.md
  primus ops coverage --op 'multi_tensor_*' -o json`,
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			dtypes, err := opts.check(cmd)
			if err != nil {
				return err
			}
			var c coverage
			err = graph.WithManagerOf(cmd.Context(), prog, opts.config(), func(m *opmanager.Manager, snap *opregistry.Snapshot, dev device.Backend) (err error) {
				if c.Results, err = verifyImpls(cmd, prog, m, snap, nil, opts, args, dtypes); err != nil || dev == nil {
					return err
				}
				onDevice, err := verifyImpls(cmd, prog, m, snap, dev, opts, args, dtypes)
				c.Results = append(c.Results, onDevice...)
				return err
			})
			if err != nil {
				return err
			}
			if output == coverageJSON {
				err = cli.WriteJSON(prog.Out, c)
			} else {
				_, err = io.WriteString(prog.Out, opstest.Coverage(c.Results))
			}
			if err == nil && opstest.AnyFailed(c.Results) {
				return cli.ErrReported
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.VarP(&output, "output", "o", "md or json")
	flags.StringVar(&opts.impl, "impl", "*", "only impls whose id matches `PATTERN`, in which * stands for any characters")
	flags.StringVar(&opts.op, "op", "", "only ops whose name matches `PATTERN`")
	opts.addDeviceFlag(flags, "include the impls for this `DEVICE`, such as opencl:0")
	flags.StringSliceVar(&opts.dtypes, "dtype", nil, "only these storage `DTYPES`: f32, bf16, f16, f64")
	return cmd
}
