// Package models has the commands that use a trained model (evaluate, export, import and generate),
// and gives others the flags for a model and the model.
package models

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// Options are the flags that say which model runs, and with what.
type Options struct {
	Dir     string
	Context uint
	Load    LoadOptions
	flag    string
	threads uint
	policy  dispatch.Options
}

// AddFlags gives a command the flags. flag is the name of the one with the directory.
func (o *Options) AddFlags(cmd *cobra.Command, flag string) {
	o.flag = flag
	cmd.Flags().StringVar(&o.Dir, flag, "", "`DIR` with the weights: a checkpoint, a run, whose newest checkpoint is used, or a folder of Hugging Face")
	o.addRunFlags(cmd)
}

// addRunFlags gives a command the flags that say how the model runs.
func (o *Options) addRunFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.Load.AddFlags(cmd)
	flags.UintVar(&o.Context, "context", 0, "limit a text with its prompt to `N` tokens; 0 is what the model was made for, but at most 4096")
	flags.UintVar(&o.threads, "threads", 0, "`N` CPU threads for ops; 0 is one per CPU")
	o.policy.AddFlags(flags)
}

// LoadOptions are the flags that say how a model is read, and where to.
type LoadOptions struct {
	weights       weights.Settings
	dtype, device string
	nonFinite     bool
}

// dtypes are the values of --dtype.
var dtypes = map[string]tensor.DType{"auto": tensor.Unspecified, "f32": tensor.F32, "bf16": tensor.BF16, "f16": tensor.F16}

// AddFlags gives a command the flags.
func (o *LoadOptions) AddFlags(cmd *cobra.Command) {
	AddWeightsFlags(cmd, &o.weights)
	cmd.Flags().StringVar(&o.dtype, "dtype", "auto", "`TYPE` of weights, activations and cache: f32, bf16, f16, or auto for what config.json says")
	cmd.Flags().StringVar(&o.device, "device", "", "compute on this `DEVICE`, such as opencl:0, with the weights in its memory; the default is that of STEPMESH_BACKEND, or the CPU")
	cmd.Flags().BoolVar(&o.nonFinite, "allow-nonfinite-weights", false, "load weights that are NaN or infinite, which are refused otherwise")
	cli.WithoutVariable(cmd.Flags(), "dtype", "device", "allow-nonfinite-weights")
	names := slices.Sorted(maps.Keys(dtypes))
	if err := cmd.RegisterFlagCompletionFunc("dtype", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
}

// Check returns the first mistake in the flags.
func (o *LoadOptions) Check(cmd *cobra.Command) error {
	if _, ok := dtypes[o.dtype]; !ok {
		return cli.Usagef(cmd, "--dtype: given %q, want %s", o.dtype, strings.Join(slices.Sorted(maps.Keys(dtypes)), ", "))
	}
	return nil
}

// Device returns where the model computes.
func (o *LoadOptions) Device() graph.DeviceName {
	return graph.DeviceName{Name: o.device, Source: "--device"}
}

// Settings returns what the flags say.
func (o *LoadOptions) Settings() inference.LoadSettings {
	s := inference.LoadSettings{Settings: o.weights, DType: dtypes[o.dtype]}
	if o.nonFinite {
		s.Found = func(*weights.NonFiniteError) {}
	}
	return s
}

// AddWeightsFlags gives a command the flags that say which weights of a folder are read.
func AddWeightsFlags(cmd *cobra.Command, s *weights.Settings) {
	cmd.Flags().BoolVar(&s.Average, "ema", false, "use the averages that a run with ema_decay saves instead of the weights")
	cli.WithoutVariable(cmd.Flags(), "ema")
}

// Check returns the first mistake in the flags.
func (o *Options) Check(cmd *cobra.Command) error {
	if o.Dir == "" {
		return cli.Usagef(cmd, "no model given, want --%s DIR", o.flag)
	}
	return o.Load.Check(cmd)
}

// params are what running a model needs of the graph.
type params struct {
	fx.In
	Policy  oppolicy.Policy
	Device  device.Backend
	Manager *opmanager.Manager
}

// Run loads the model and calls f with it.
func (o *Options) Run(ctx context.Context, prog cli.Program, f func(*inference.Loaded, *opmanager.Manager) error) error {
	var p params
	lines := prog.Lines(prog.Err, slog.LevelWarn)
	set := graph.Config{
		Threads: int(o.threads), Log: slog.New(lines), OpLog: lines, Policy: o.policy.Sources(nil), Device: o.Load.Device(), Extras: prog.Extras,
	}
	return graph.Run(ctx, func() (err error) {
		m, err := inference.Load(ctx, o.Dir, p.Device, o.Load.Settings())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Model.Close()) }()
		return f(m, p.Manager)
	}, graph.Core(set), fx.Invoke(func(built params) { p = built }))
}
