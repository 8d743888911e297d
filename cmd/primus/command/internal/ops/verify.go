package ops

import (
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
	"github.com/primus-fl/primus/tensor"
)

// verifyOptions say what `primus ops verify` looks at.
type verifyOptions struct {
	impl, op string
	dtypes   []string
	failures int
	device   string
	calls    dispatch.KitCalls
	plugins  dispatch.PluginFlags
}

// config returns what the graph needs for the options.
func (o *verifyOptions) config() graph.Config {
	return graph.Config{
		Policy: dispatch.Sources{Flags: dispatch.Flags{Plugins: o.plugins}}, ProbeDevices: o.device != "",
		Device: graph.DeviceName{Name: o.device, Source: "--device"},
	}
}

func (o *verifyOptions) addDeviceFlag(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&o.device, "device", "", usage)
}

func newOpsVerifyCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [OP…]",
		Short: "Compare implementations with the reference in every case of the conformance kit",
		Long: `Compare every implementation that this machine can run with the reference of its op:
all dtypes, empty, odd and large shapes, strided operands, legal aliases, NaN and
infinities, guard bands around all memory, several workers and calls at the same time.
An implementation may decline cases; its results in the others must be within the
tolerance of the op. Without --impl the reference itself is left out.

With --device, operands are copied to a device and back, and the implementations for
such devices are compared in place of those for the host.

By default one length of a call is that of a model and the others are small; with
--thorough they are all those of models of 1B, 8B and 70B parameters, in operands of at
most 134 million elements. That takes minutes and up to 8 GiB of memory for each op. The
calls of --recording are run in addition to the others, and ops without any are left out
unless they are named. Where a call would take the reference too long, 24 parts of the
result are compared with it and invariants of the whole; the table says in how many.

The exit code is 1 when a case fails.`,
		Example: `  primus ops verify rmsnorm_fwd
  primus ops verify --impl 'vendor.*' --dtype f32
  primus ops verify --op 'multi_tensor_*' -o json
  primus ops verify --device opencl:0 --dtype f32,bf16
  primus ops verify fused_attn_fwd --thorough --dtype bf16
  primus ops verify --recording output/calls --impl vendor.acme`,
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			dtypes, err := opts.check(cmd)
			if err != nil {
				return err
			}
			var results []opstest.Result
			err = graph.WithManagerOf(cmd.Context(), prog, opts.config(), func(m *opmanager.Manager, snap *opregistry.Snapshot, dev device.Backend) (err error) {
				results, err = verifyImpls(cmd, prog, m, snap, dev, opts, args, dtypes)
				return err
			})
			if err != nil {
				return err
			}
			err = output.Print(prog.Out, results, func() error { return printVerified(prog.Out, results, opts.failures) })
			if err == nil && opstest.AnyFailed(results) {
				return cli.ErrReported
			}
			return err
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().StringVar(&opts.impl, "impl", "", "only impls whose id matches `PATTERN`, in which * stands for any characters")
	cmd.Flags().StringVar(&opts.op, "op", "", "only ops whose name matches `PATTERN`")
	cmd.Flags().StringSliceVar(&opts.dtypes, "dtype", nil, "only these storage `DTYPES`: f32, bf16, f16, f64")
	cmd.Flags().IntVar(&opts.failures, "failures", 3, "show at most `N` failed cases of an impl and dtype; 0 shows all")
	opts.calls.AddFlags(cmd.Flags())
	opts.addDeviceFlag(cmd.Flags(), "the `DEVICE` whose impls are compared, such as opencl:0")
	opts.plugins.AddSideFlags(func(flag *dispatch.Flag, name, usage string) *pflag.Flag {
		return dispatch.AddPolicyFlag(cmd.Flags(), flag, name, usage)
	})
	opts.plugins.AddFlags(cmd.Flags())
	return cmd
}

func (o *verifyOptions) check(cmd *cobra.Command) ([]tensor.DType, error) {
	for flag, pattern := range map[string]string{"impl": o.impl, "op": o.op} {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, cli.Usagef(cmd, "--%s: given %q, want a name in which * stands for any letters", flag, pattern)
		}
	}
	if o.failures < 0 {
		return nil, cli.Usagef(cmd, "--failures: given %d, want a number from 0", o.failures)
	}
	var dtypes []tensor.DType
	for _, name := range o.dtypes {
		d, err := dispatch.ParseDType(cmd, name)
		if err != nil {
			return nil, err
		}
		dtypes = append(dtypes, d)
	}
	return dtypes, nil
}

// wants reports whether an impl is looked at, with operands on devices of a type.
func (o *verifyOptions) wants(op string, only []string, e opregistry.Entry, on device.Type) bool {
	fits := func(pattern, name string) bool {
		ok, err := path.Match(pattern, name)
		return pattern == "" || ok && err == nil
	}
	return (len(only) == 0 || slices.Contains(only, op)) && fits(o.op, op) && fits(o.impl, e.ID) && e.Support.On(on) == nil &&
		(o.impl != "" || e.Kind != opregistry.KindReference)
}

// asked returns the selection as it was given on the command line.
func (o *verifyOptions) asked(only []string) string {
	words := slices.Clone(only)
	for name, pattern := range map[string]string{"--op": o.op, "--impl": o.impl, "--device": o.device} {
		if pattern != "" {
			words = append(words, fmt.Sprintf("%s %q", name, pattern))
		}
	}
	slices.Sort(words[len(only):])
	return strings.Join(words, " ")
}

// verifyImpls runs the conformance kit and shows where it is. The operands are on the device, in
// host memory if it is nil.
func verifyImpls(cmd *cobra.Command, prog cli.Program, m *opmanager.Manager, snap *opregistry.Snapshot, dev device.Backend, opts verifyOptions, only []string, dtypes []tensor.DType) ([]opstest.Result, error) {
	all, err := explainOps(m, only, nil)
	if err != nil {
		return nil, err
	}
	available := map[[2]string]bool{}
	for _, e := range all {
		for _, s := range slices.Concat(e.Order, e.Rejected) {
			available[[2]string{e.Op, s.ID}] = s.Available
		}
	}
	on := device.TypeCPU
	var place func(opregistry.Impl) opregistry.Impl
	if dev != nil {
		at, err := dev.Device()
		if err != nil {
			return nil, err
		}
		if on = at.Type; on != device.TypeCPU {
			place = func(impl opregistry.Impl) opregistry.Impl {
				return ondevice.Source(dev, opregistry.Source{Impls: []opregistry.Impl{impl}}, nil).Impls[0]
			}
		}
	}
	screen := &plaintext.Console{Out: prog.Err, Width: prog.Width}
	defer screen.SetStatus("")
	log := slog.New(prog.Lines(screen, slog.LevelInfo))
	options, recorded, err := opts.calls.Options(cmd.Context(), snap)
	if err != nil {
		return nil, err
	}
	if only = slices.Clone(only); len(only) == 0 && opts.op == "" {
		only = recorded
	}
	if dtypes != nil {
		options = append(options, opstest.WithDTypes(dtypes...))
	}
	results, err := opscases.All().VerifyAll(cmd.Context(), snap, opstest.Selection{
		Place:     place,
		Wants:     func(op string, e opregistry.Entry) bool { return opts.wants(op, only, e, on) },
		Available: func(op string, e opregistry.Entry) bool { return available[[2]string{op, e.ID}] },
		Begin:     func(op, impl string) { screen.SetStatus(op + ": " + impl) },
		Skip:      func(op, impl, reason string) { log.Info(fmt.Sprintf("%s of %s %s: left out", impl, op, reason)) },
	}, options...)
	if err == nil && len(results) == 0 {
		return nil, cli.Usagef(cmd, "no impl that runs on this machine matches %s; primus ops list shows all", opts.asked(only))
	}
	return results, err
}

func printVerified(out io.Writer, results []opstest.Result, maxShown int) error {
	t := plaintext.NewTable(table.Row{"op", "impl", "dtype", "result", "served", "declined", "failed", "seconds", "compared"}, 5, 6, 7, 8).
		Optional("seconds", "failed", "declined", "served")
	for _, r := range results {
		t.AppendRow(table.Row{r.Op, r.Impl, r.DType, r.Status(), r.Served, r.Declined, plaintext.Count(uint64(len(r.Failures))), fmt.Sprintf("%.1f", r.Seconds), r.Compared()})
	}
	if _, err := fmt.Fprintln(out, plaintext.Render(out, t)); err != nil {
		return err
	}
	for _, r := range results {
		for i, f := range r.Failures {
			if maxShown > 0 && i == maxShown {
				fmt.Fprintf(out, "\n%s, %s: %d more failures; --failures 0 shows all\n", r.Op, r.Impl, len(r.Failures)-maxShown)
				break
			}
			fmt.Fprintf(out, "\n%s, %s: case %s\n%s\n", r.Op, r.Impl, f.Case, plaintext.Indent(f.Reason))
		}
	}
	return nil
}
