package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
)

// searchFlags are the flags of `primus projection search`.
type searchFlags struct {
	options
	rates                      rateFlags
	schedules, recompute, keep []string
	chunks, top                int
	write                      string
}

func newSearchCommand(prog cli.Program) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search --config FILE --target-nodes N [key=value…]",
		Short: "Find the settings that train a model fastest on a cluster",
		Long: `Find how to cut a Megatron experiment over a cluster: the settings with the most tokens per
second of all that fit the memory of a device. All sizes of tensor, pipeline, context and
expert parallelism are tried with all schedules, numbers of chunks, kinds of recomputation
and micro batches, at the global batch of the experiment. Every figure is that of primus
projection memory and performance; settings are left out without computing them only where
a bound proves that they do not fit, or are slower than those that are shown.

Parameters that are overrides on the command line stay as they are, and so do those that
--keep names: ` + strings.Join(projection.SearchedParameters(), ", ") + `.
Without --keep, sequence_parallel is on with tensor parallelism. A layout of the pipeline
in the experiment stays.

Schedules: ` + join(projection.ScheduleNames()) + `; all but the first two
need the patches of Primus. Recomputation: ` + strings.Join(projection.RecomputeNames(), ", ") + `.

If nothing fits, the settings that need the least memory are shown, and the exit code is 1.`,
		Example: `  primus projection search --config exp.yaml --gpu-arch MI300X --target-nodes 16
  primus projection search --config exp.yaml --gpu-arch H100 --target-nodes 4 --write best.yaml tensor_model_parallel_size=8
  primus projection search --config exp.yaml --gpu-arch H100 --target-nodes 4 --schedules 1f1b,1f1b-interleaved --keep micro_batch_size --top 3
  primus projection search --config exp.yaml --memory 80GB --measured-tflops 400 --memory-bandwidth 3350 --intra-node-bandwidth 450 --target-nodes 2 -o json`,
	}
	flags := cmd.Flags()
	f.rates.add(flags)
	flags.StringSliceVar(&f.schedules, "schedules", nil, "try these `NAMES` (default: all)")
	flags.StringSliceVar(&f.recompute, "recompute", nil, "try these kinds of recomputation: `NAMES` (default: all)")
	flags.StringSliceVar(&f.keep, "keep", nil, "leave these `PARAMETERS` as they are in the experiment")
	flags.IntVar(&f.chunks, "max-chunks", 0, "give a stage at most `N` chunks; 0 is no limit but the layers")
	flags.IntVar(&f.top, "top", 10, "show the best `N`")
	flags.StringVar(&f.write, "write", "", "write the experiment with the best settings to a YAML, TOML or JSON `FILE`, which can be run")
	for name, values := range map[string][]string{"schedules": names(projection.ScheduleNames()), "recompute": projection.RecomputeNames(), "keep": projection.SearchedParameters()} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	cli.WithoutVariable(flags, "schedules", "recompute", "keep", "max-chunks", "top", "write")
	f.configure(prog, cmd, func(cmd *cobra.Command, module *config.Module) error { return f.run(prog, cmd, module) })
	return cmd
}

func names(schedules []projection.Schedule) []string {
	list := make([]string, len(schedules))
	for i, s := range schedules {
		list[i] = string(s)
	}
	return list
}

func join(schedules []projection.Schedule) string { return strings.Join(names(schedules), ", ") }

// searchResult is what -o json prints.
type searchResult struct {
	*projection.Result
	Device string           `json:"device,omitempty"`
	Memory float64          `json:"device_memory"`
	Margin float64          `json:"safety_margin"`
	Rates  projection.Rates `json:"rates"`
	Kept   []string         `json:"kept,omitempty"`
}

func (f *searchFlags) run(prog cli.Program, cmd *cobra.Command, m *config.Module) error {
	if m.Framework == native.Framework {
		return fmt.Errorf("the framework of %s is %s, want one of Python such as megatron: a search needs the rates of devices, and there is no projection of the time in primus itself", m.Name, m.Framework)
	}
	formats, err := graph.LoadFormats(prog.Extras)
	if err != nil {
		return err
	}
	if f.write != "" {
		if _, err := formats.RendererOf(f.write); err != nil {
			return cli.Usagef(cmd, "--write: given %q, want %s", f.write, cli.Wants(cmd.Flags().Lookup("export-config")))
		}
	}
	search, size, err := f.search(cmd, m)
	if err != nil {
		return err
	}
	screen := &plaintext.Console{Out: prog.Err, Width: prog.Width}
	search.Progress = func(left int) { screen.SetStatus(fmt.Sprintf("%d settings to look at", left)) }
	found, err := search.Run(cmd.Context())
	screen.SetStatus("")
	if err != nil {
		return err
	}
	result := searchResult{Result: found, Device: size.device.Name, Memory: size.memory, Margin: f.margin, Rates: search.Rates, Kept: search.Keep}
	if f.write != "" && len(found.Best) > 0 {
		m.Params = document.Merge(m.Params, found.Best[0].Overrides)
		if err := experiments.Export(f.write, formats, f.experiment); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
	}
	if f.output.OutputFormat == cli.OutputJSON {
		err = cli.WriteJSON(prog.Out, result)
	} else {
		err = plaintext.WriteSections(prog.Out, f.output.OutputFormat == cli.OutputMarkdown, f.sections(&result))
	}
	if err == nil && len(found.Best) == 0 {
		return fmt.Errorf("no settings fit %s on %d devices: the smallest need %s (%s); give more memory, or more nodes with --target-nodes",
			sysmem.Text(size.memory*(1-f.margin)), found.Devices, sysmem.Text(found.Smallest.Memory), strings.Join(found.Smallest.Settings, " "))
	}
	return err
}

// search returns what the flags ask for.
func (f *searchFlags) search(cmd *cobra.Command, m *config.Module) (projection.Search, sizes, error) {
	s := projection.Search{Name: f.model(m), Params: m.Params, Margin: f.margin, Recompute: f.recompute, MaxChunks: f.chunks, Keep: f.keep, Top: f.top}
	size, err := f.sizes(cmd)
	if err != nil {
		return s, size, err
	}
	if s.Rates, err = f.rates.rates(cmd, size.device); err != nil {
		return s, size, err
	}
	if s.Cluster, err = f.cluster(cmd); err != nil {
		return s, size, err
	}
	s.Memory, s.Reserve = size.memory, size.reserve
	switch {
	case s.Cluster.Nodes == 0:
		return s, size, cli.Usagef(cmd, "--target-nodes: given 0, want the number of nodes that the model is cut over")
	case s.Memory == 0:
		return s, size, cli.Usagef(cmd, "no memory of the device: want --gpu-arch NAME, or --memory SIZE")
	case f.top < 1 || f.top > 1000:
		return s, size, cli.Usagef(cmd, "--top: given %d, want a number from 1 to 1000", f.top)
	}
	for _, flag := range []struct {
		name          string
		given, values []string
	}{{"schedules", f.schedules, names(projection.ScheduleNames())}, {"recompute", f.recompute, projection.RecomputeNames()}, {"keep", f.keep, projection.SearchedParameters()}} {
		for _, name := range flag.given {
			if !slices.Contains(flag.values, name) {
				return s, size, cli.Usagef(cmd, "--%s: given %q, want some of %s%s", flag.name, name, strings.Join(flag.values, ", "), suggest.Hint(name, flag.values))
			}
		}
	}
	for _, name := range f.schedules {
		s.Schedules = append(s.Schedules, projection.Schedule(name))
	}
	for key, v := range m.Params.All() {
		if by := projection.KeptBy(key); by != "" && v.Origin().Position > 0 && !slices.Contains(s.Keep, by) {
			s.Keep = append(s.Keep, by)
		}
	}
	return s, size, nil
}

func (f *searchFlags) sections(r *searchResult) []plaintext.Section {
	about := plaintext.Section{Lines: []string{
		fmt.Sprintf("devices      %d, each with %s, of which %.3g %% stay free", r.Devices, sysmem.Text(r.Memory), 100*r.Margin),
		fmt.Sprintf("settings     %d that the devices can be cut into; %d were projected, and bounds rule out the others", r.Settings, r.Projected),
	}}
	if len(r.Kept) > 0 {
		about.Lines = append(about.Lines, "kept         "+strings.Join(r.Kept, ", "))
	}
	sections := []plaintext.Section{about}
	list, title := r.Best, "the best settings"
	if len(list) == 0 {
		list, title = []projection.Found{*r.Smallest}, "no settings fit; the smallest"
	}
	best := plaintext.Section{
		Title:    title,
		Header:   table.Row{"tokens/s", "step", "memory", "tensor", "pipeline", "context", "expert", "data", "micro batch", "schedule", "chunks", "recompute", "bubble"},
		Right:    []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13},
		Optional: []string{"data", "bubble", "step", "expert"},
	}
	for _, one := range list {
		c := one.Plan.Parallel
		schedule := string(c.Schedule)
		if c.Pipeline == 1 {
			schedule = "-"
		}
		best.Rows = append(best.Rows, table.Row{
			fmt.Sprintf("%.0f", one.Performance.TokensPerSecond), fmt.Sprintf("%.4g s", one.Performance.StepSeconds), sysmem.Text(one.Memory),
			c.Tensor, c.Pipeline, c.Context, c.Expert, c.Data, c.MicroBatch, schedule, c.Virtual, plaintext.Dash(one.Plan.Recompute.Granularity),
			fmt.Sprintf("%.1f %%", 100*one.Performance.Bubble),
		})
	}
	sections = append(sections, best, plaintext.Section{Title: "settings of the first", Lines: []string{strings.Join(list[0].Settings, " ")}})
	out := plaintext.Section{Title: "why the others are out", Header: table.Row{"reason", "settings", ""}, Right: []int{2}}
	for _, reason := range r.Out {
		out.Rows = append(out.Rows, table.Row{reason.Reason, reason.Count, reason.Example})
	}
	if len(out.Rows) > 0 {
		sections = append(sections, out)
	}
	return sections
}
