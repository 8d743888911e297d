// Package projection is the command that computes what a run needs before it starts.
package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/backends/megatron"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// options are the flags that all projections have.
type options struct {
	experiments.Options
	output  cli.ReportFormat
	nodes   int
	perNode int
	arch    string
	memory  string
	reserve string
	margin  float64

	experiment *config.Experiment
	primus     primusFlags
}

// primusFlags are flags that Primus gives its projection and that stand for parameters here.
type primusFlags struct {
	mode, profiling, schedule                       string
	microBatch, globalBatch, virtualStages, experts int
	zeroBubble                                      bool
}

func (f *primusFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "memory-mode", "simulate", "`MODE` of Primus: simulate, the only one here, because nothing is run")
	flags.StringVar(&f.profiling, "profiling-mode", "simulate", "`MODE` of Primus: simulate, the only one here, because nothing is run")
	flags.StringVar(&f.schedule, "pipeline-schedule-algorithm", "auto", "schedule of the pipeline: `NAME`, auto for that of the experiment, zerobubble, zbv-formatted, zbv-greedy-half or zbv-greedy-min")
	flags.IntVar(&f.microBatch, "micro-batch-size", 0, "the same as micro_batch_size=`N`")
	flags.IntVar(&f.globalBatch, "global-batch-size", 0, "the same as global_batch_size=`N`")
	flags.IntVar(&f.virtualStages, "num-virtual-stages-per-pipeline-rank", 0, "the same as num_virtual_stages_per_pipeline_rank=`N`")
	flags.IntVar(&f.experts, "target-ep-size", 0, "the same as expert_model_parallel_size=`N`")
	flags.BoolVar(&f.zeroBubble, "enable-zero-bubble", false, "the same as patch_zero_bubble=true")
	names := []string{"memory-mode", "profiling-mode", "pipeline-schedule-algorithm", "micro-batch-size", "global-batch-size", "num-virtual-stages-per-pipeline-rank", "target-ep-size", "enable-zero-bubble"}
	cli.WithoutVariable(flags, names...)
}

// overrides returns the flags as overrides of parameters.
func (f primusFlags) overrides(cmd *cobra.Command) ([]string, error) {
	for name, mode := range map[string]string{"memory-mode": f.mode, "profiling-mode": f.profiling} {
		if mode != "simulate" {
			return nil, cli.Usagef(cmd, "--%s: given %q, want simulate: nothing is run; --measured-tflops takes what a run has measured", name, mode)
		}
	}
	var list []string
	switch f.schedule {
	case "auto":
	case "zerobubble":
		list = append(list, "patch_zero_bubble=true")
	case "zbv-formatted", "zbv-greedy-half", "zbv-greedy-min":
		algorithm := strings.Replace(f.schedule, "zbv-greedy", "v", 1)
		list = append(list, "patch_primus_pipeline=true", "pp_algorithm="+algorithm)
	default:
		return nil, cli.Usagef(cmd, "--pipeline-schedule-algorithm: given %q, want auto, zerobubble, zbv-formatted, zbv-greedy-half or zbv-greedy-min", f.schedule)
	}
	for _, p := range []struct {
		key   string
		value int
	}{{"micro_batch_size", f.microBatch}, {"global_batch_size", f.globalBatch}, {"num_virtual_stages_per_pipeline_rank", f.virtualStages}, {"expert_model_parallel_size", f.experts}} {
		if p.value != 0 {
			list = append(list, fmt.Sprintf("%s=%d", p.key, p.value))
		}
	}
	if f.zeroBubble {
		list = append(list, "patch_zero_bubble=true")
	}
	return list, nil
}

// New returns the command `primus projection`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("projection", "Compute what a run needs before it starts",
		newMemoryCommand(prog), newPerformanceCommand(prog), newBothCommand(prog), newSearchCommand(prog), newPipelineCommand(prog),
	)
}

// configure gives a command the flags, and a run that gets the module to project.
func (o *options) configure(prog cli.Program, cmd *cobra.Command, run func(cmd *cobra.Command, module *config.Module) error) {
	flags := cmd.Flags()
	o.Program = prog
	o.AddFlags(flags)
	o.output.AddFlag(cmd)
	flags.IntVar(&o.nodes, "target-nodes", 0, "`N` nodes run the job; 0 takes as many as the model is cut into")
	flags.IntVar(&o.perNode, "nproc-per-node", 0, "`N` devices on each node; 0 takes GPUS_PER_NODE, else 8")
	flags.StringVar(&o.arch, "gpu-arch", "", "the device is a `NAME`: "+strings.Join(projection.DeviceNames(), ", "))
	flags.StringVar(&o.memory, "memory", "", "a device has memory of this `SIZE`, such as 192GB or 80GiB")
	flags.StringVar(&o.reserve, "reserve", "4GB", "set aside this `SIZE` on a device for the driver, libraries and buffers of communication")
	flags.Float64Var(&o.margin, "memory-safety-margin", 0.05, "leave this `FRACTION` of the memory of a device free")
	o.primus.add(flags)
	complete := cobra.FixedCompletions(projection.DeviceNames(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("gpu-arch", complete); err != nil {
		panic("BUG: " + err.Error())
	}
	experiments.TakeOverrides(prog, cmd, experiments.Pretrain.Module, func(cmd *cobra.Command, overrides []string) error {
		if err := o.Check(cmd, overrides); err != nil {
			return err
		}
		more, err := o.primus.overrides(cmd)
		if err != nil {
			return err
		}
		module, err := o.module(cmd.Context(), prog, append(overrides, more...))
		if err != nil {
			return err
		}
		return run(cmd, module)
	})
}

// module loads the experiment and returns the module that it trains.
func (o *options) module(ctx context.Context, prog cli.Program, overrides []string) (*config.Module, error) {
	experiment, err := o.Load(ctx, experiments.Pretrain.Module, overrides)
	if err != nil {
		return nil, err
	}
	o.experiment = experiment
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, experiment.Report)
	for _, s := range []experiments.Stage{experiments.Pretrain, experiments.Posttrain} {
		if module, err := experiment.Module(s.Module); err == nil {
			return module, supported(module)
		}
	}
	return nil, fmt.Errorf("%s has neither a module %s nor %s", experiment.File, experiments.Pretrain.Module, experiments.Posttrain.Module)
}

// supported returns an error for experiments that no formula describes.
func supported(m *config.Module) error {
	switch {
	case m.Framework != megatron.Framework && m.Framework != native.Framework:
		return fmt.Errorf("the framework of %s is %s: there are projections for %s and %s", m.Name, m.Framework, megatron.Framework, native.Framework)
	case strings.Contains(m.TrainerClass, "Flux"):
		return fmt.Errorf("trainer_class is %s: there is no projection for diffusion models", m.TrainerClass)
	}
	return nil
}

// plan returns what a Megatron experiment says.
func (o *options) plan(cmd *cobra.Command, m *config.Module) (*projection.Plan, error) {
	cluster, err := o.cluster(cmd)
	if err != nil {
		return nil, err
	}
	return projection.Read(o.model(m), m.Params, cluster)
}

// model returns the name of the model.
func (o *options) model(m *config.Module) string {
	name := strings.TrimSuffix(strings.TrimSuffix(m.Model, ".yaml"), ".yml")
	return cmp.Or(name, o.experiment.ExpName)
}

// cluster returns what the flags say of nodes and devices.
func (o *options) cluster(cmd *cobra.Command) (projection.Cluster, error) {
	cluster := projection.Cluster{Nodes: o.nodes, DevicesPerNode: o.perNode}
	if cluster.Nodes < 0 || cluster.DevicesPerNode < 0 {
		return cluster, cli.Usagef(cmd, "--target-nodes: given %d, --nproc-per-node: given %d, want numbers >= 0", o.nodes, o.perNode)
	}
	if cluster.DevicesPerNode == 0 {
		cluster.DevicesPerNode = 8
		if text := os.Getenv("GPUS_PER_NODE"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return cluster, cli.UsageError{Err: fmt.Errorf("variable GPUS_PER_NODE: given %q, want a number >= 1", text)}
			}
			cluster.DevicesPerNode = n
		}
	}
	return cluster, nil
}

// sizes are the memory of a device, 0 where none is given, and what is set aside on it.
type sizes struct {
	memory, reserve float64
	device          projection.Device
}

func (o *options) sizes(cmd *cobra.Command) (sizes, error) {
	var s sizes
	var err, deviceErr, memoryErr error
	if o.arch != "" {
		s.device, deviceErr = projection.FindDevice(o.arch)
		s.memory = s.device.Memory
	}
	if o.memory != "" {
		if s.memory, memoryErr = cli.ParseSize(o.memory); memoryErr == nil && s.memory == 0 {
			memoryErr = errors.New("no memory")
		}
	}
	s.reserve, err = cli.ParseSize(o.reserve)
	switch {
	case deviceErr != nil:
		return s, cli.UsageError{Err: fmt.Errorf("--gpu-arch: %w", deviceErr)}
	case memoryErr != nil:
		return s, cli.Usagef(cmd, "--memory: given %q, want a size such as 192GB or 80GiB", o.memory)
	case err != nil:
		return s, cli.Usagef(cmd, "--reserve: given %q, want a size such as 4GB", o.reserve)
	case !(o.margin >= 0 && o.margin < 1):
		return s, cli.Usagef(cmd, "--memory-safety-margin: given %v, want a fraction from 0 to 1", o.margin)
	}
	return s, nil
}
