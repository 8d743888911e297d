package dispatch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CallFlags are the flags that say which calls an explanation is about.
type CallFlags struct {
	dtype, shape, phase string
	layer               int
}

// AddFlags gives a command the flags.
func (o *CallFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.dtype, "dtype", "", "ask about calls with a first operand of this `DTYPE`, such as f32 or bf16")
	flags.StringVar(&o.shape, "shape", "", "ask about calls with a first operand of this `SHAPE`, such as 2048x512")
	flags.IntVar(&o.layer, "layer", -1, "ask about calls of layer `N` of the model, counted from 0")
	flags.StringVar(&o.phase, "phase", "", "ask about calls of a `PHASE`: forward or backward")
}

// Calls are the calls that an explanation is about.
type Calls struct {
	Shape *opmanager.CallShape // nil for every dtype and shape
	Layer *int                 // nil for calls outside of layers
	Phase oppolicy.Phase       // zero for calls outside of phases
}

// Calls returns the calls that the flags select.
func (o *CallFlags) Calls(cmd *cobra.Command) (c Calls, err error) {
	if c.Shape, err = o.call(cmd); err == nil {
		c.Layer, c.Phase, err = o.place(cmd)
	}
	return c, err
}

// call returns the dtype and shape that were asked about, nil for every call.
func (o *CallFlags) call(cmd *cobra.Command) (*opmanager.CallShape, error) {
	if o.dtype == "" && o.shape == "" {
		return nil, nil
	}
	call := &opmanager.CallShape{DType: tensor.F32}
	if o.dtype != "" {
		d, err := ParseDType(cmd, o.dtype)
		if err != nil {
			return nil, err
		}
		call.DType = d
	}
	if o.shape != "" {
		for axis := range strings.SplitSeq(strings.ReplaceAll(o.shape, ",", "x"), "x") {
			n, err := strconv.ParseUint(strings.TrimSpace(axis), 10, 31)
			if err != nil {
				return nil, cli.Usagef(cmd, "--shape: given %q, want the lengths of the axes, such as 2048x512", o.shape)
			}
			call.Shape = append(call.Shape, int(n))
		}
	}
	return call, nil
}

// ParseDType reads a value of --dtype.
func ParseDType(cmd *cobra.Command, name string) (tensor.DType, error) {
	d, err := tensor.ParseDType(name)
	if err != nil {
		var names []string
		for _, known := range tensor.DTypes() {
			names = append(names, known.String())
		}
		return d, cli.Usagef(cmd, "--dtype: given %q, want one of %s%s", name, strings.Join(names, ", "), suggest.Hint(name, names))
	}
	return d, nil
}

// place returns the layer and phase that were asked about, nil and the zero phase for none.
func (o *CallFlags) place(cmd *cobra.Command) (layer *int, phase oppolicy.Phase, err error) {
	if cmd.Flags().Changed("layer") {
		if o.layer < 0 {
			return nil, 0, cli.Usagef(cmd, "--layer: given %d, want a number from 0", o.layer)
		}
		layer = &o.layer
	}
	if o.phase != "" {
		if phase, err = oppolicy.ParsePhase(o.phase); err != nil {
			return nil, 0, cli.Usagef(cmd, "--phase: %v", err)
		}
	}
	return layer, phase, nil
}

// CompleteOps completes names of ops that are not on the command line yet.
func CompleteOps(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, op := range ops.All() {
		names = append(names, op.Name())
	}
	for _, op := range foreign.Ops() {
		names = append(names, op.Name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) || slices.Contains(args, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
