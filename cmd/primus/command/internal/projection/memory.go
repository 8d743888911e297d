package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/projection"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
)

func newMemoryCommand(prog cli.Program) *cobra.Command {
	var opts options
	cmd := &cobra.Command{
		Use:   "memory --config FILE [key=value…]",
		Short: "Compute the memory that a run needs on each device",
		Long: `Compute the memory that the run of a Megatron experiment needs on the devices of
each pipeline stage: weights, gradients, optimizer state and activations, each with
its formula. Nothing is run or measured, and no device is needed. For a native
experiment it is the memory that primus itself needs.

With --gpu-arch or --memory it also says whether the run fits, and which other settings
of the same model would. Overrides show what a run with other parameters would need.`,
		Example: `  primus projection memory --config exp.yaml --gpu-arch MI300X
  primus projection memory --config exp.yaml --memory 80GB --target-nodes 4 tensor_model_parallel_size=4
  primus projection memory --config exp.yaml --configs-dir Primus/primus/configs -o md`,
	}
	opts.configure(prog, cmd, func(cmd *cobra.Command, module *config.Module) error {
		return projectMemory(prog, cmd, &opts, module)
	})
	return cmd
}

// memoryResult is what -o json prints.
type memoryResult struct {
	*projection.Plan
	Memory       projection.Memory        `json:"memory"`
	Components   []projection.Group       `json:"components"`
	Activations  []layerActivations       `json:"activations"`
	DeviceMemory float64                  `json:"device_memory,omitempty"`
	Margin       float64                  `json:"safety_margin,omitempty"`
	Fits         *bool                    `json:"fits,omitempty"`
	Alternatives []projection.Alternative `json:"alternatives,omitempty"`
	Symbols      []string                 `json:"symbols"`
	Assumptions  []string                 `json:"assumptions"`
}

// layerActivations are what a kind of layer keeps of one micro batch.
type layerActivations struct {
	Layer string                  `json:"layer"`
	Keeps []projection.Activation `json:"keeps"`
}

func projectMemory(prog cli.Program, cmd *cobra.Command, o *options, m *config.Module) error {
	size, err := o.sizes(cmd)
	if err != nil {
		return err
	}
	if m.Framework == native.Framework {
		return projectNative(cmd.Context(), prog, o, size, m)
	}
	plan, err := o.plan(cmd, m)
	if err != nil {
		return err
	}
	result, err := memoryOf(plan, size, o.margin)
	if err != nil {
		return err
	}
	if o.output.OutputFormat == cli.OutputJSON {
		return cli.WriteJSON(prog.Out, result)
	}
	return plaintext.WriteSections(prog.Out, o.output.OutputFormat == cli.OutputMarkdown, memorySections(result))
}

func memoryOf(plan *projection.Plan, size sizes, margin float64) (*memoryResult, error) {
	r := &memoryResult{
		Plan: plan, Memory: plan.Memory(size.reserve), Components: plan.Model.Parameters(),
		Symbols: plan.Symbols(), Assumptions: plan.Assumptions(),
	}
	for _, g := range r.Components {
		switch g.Name {
		case projection.DenseLayer:
			r.Activations = append(r.Activations, layerActivations{g.Name, plan.Activations(false)})
		case projection.SparseLayer:
			r.Activations = append(r.Activations, layerActivations{g.Name, plan.Activations(true)})
		}
	}
	if size.memory == 0 {
		return r, nil
	}
	fits := r.Memory.Fits(size.memory, margin)
	r.DeviceMemory, r.Margin, r.Fits = size.memory, margin, &fits
	var err error
	r.Alternatives, err = plan.Alternatives(size.memory, margin, size.reserve)
	return r, err
}

func memorySections(r *memoryResult) []plaintext.Section {
	sections := []plaintext.Section{
		{Lines: describe(r.Plan, r.Memory)},
		componentSection(r),
		stageSection(r),
		lineSection(r),
	}
	for _, a := range r.Activations {
		s := plaintext.Section{Title: "activations of a " + a.Layer + ", for one micro batch on one device", Header: table.Row{"tensor", "bytes", "formula"}, Right: []int{2}, Optional: []string{"formula"}}
		for _, k := range a.Keeps {
			s.Rows = append(s.Rows, table.Row{k.Name, sysmem.Text(k.Bytes), k.Formula})
		}
		sections = append(sections, s)
	}
	if r.Fits != nil {
		sections = append(sections, fitSection(r))
	}
	return append(sections, plaintext.Section{Title: "symbols", Lines: r.Symbols}, plaintext.Section{Title: "assumptions", Lines: r.Assumptions})
}

// describe says what is projected.
func describe(p *projection.Plan, mem projection.Memory) []string {
	m, c := p.Model, p.Parallel
	size := fmt.Sprintf("%s: %s parameters", plaintext.Dash(m.Name), count(mem.Parameters))
	if mem.Active < mem.Parameters {
		size += fmt.Sprintf(", of which a token uses %s", count(mem.Active))
	}
	cut := fmt.Sprintf("%s: tensor %d, pipeline %d", plaintext.Quantity(c.World, "device", "devices"), c.Tensor, c.Pipeline)
	if c.Virtual > 1 {
		cut += fmt.Sprintf(" with %d virtual stages", c.Virtual)
	}
	cut += fmt.Sprintf(", context %d, data %d", c.Context, c.Data)
	if m.Experts > 0 {
		cut += fmt.Sprintf("; experts: expert %d, tensor %d, data %d", c.Expert, c.ExpertTensor, c.ExpertData)
	}
	recompute := p.Recompute.Granularity
	switch recompute {
	case "":
		recompute = "none"
	case "full":
		recompute = strings.TrimSpace(fmt.Sprintf("full %s, %d", p.Recompute.Method, p.Recompute.Layers))
		if p.Recompute.LayerIDs != nil {
			recompute = fmt.Sprintf("full, layers %v", p.Recompute.LayerIDs)
		}
	case "selective":
		recompute += " " + strings.Join(p.Recompute.Modules, ", ")
	}
	return []string{
		"model        " + size,
		"devices      " + cut,
		fmt.Sprintf("batch        micro %d, global %d: %s per step, schedule %s", c.MicroBatch, c.GlobalBatch, plaintext.Quantity(c.MicroBatches, "micro batch", "micro batches"), c.Schedule),
		fmt.Sprintf("precision    %s, optimizer %s, sharded: %s", p.Precision.Compute, p.Precision.Optimizer, p.Precision.Sharding),
		"recompute    " + recompute,
	}
}

// count writes a number of parameters.
func count(n float64) string {
	exact := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(exact) - 3; i > 0; i -= 3 {
		exact = exact[:i] + "," + exact[i:]
	}
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f billion (%s)", n/1e9, exact)
	case n >= 1e6:
		return fmt.Sprintf("%.2f million (%s)", n/1e6, exact)
	}
	return exact
}

func componentSection(r *memoryResult) plaintext.Section {
	s := plaintext.Section{Title: "parameters", Header: table.Row{"part", "times", "weights", "parameters", "formula"}, Right: []int{2, 4}, Optional: []string{"formula", "weights"}}
	for _, g := range r.Components {
		for i, w := range g.Weights {
			name, times := "", ""
			if i == 0 {
				name, times = g.Name, fmt.Sprint(g.Times)
			}
			s.Rows = append(s.Rows, table.Row{name, times, w.Name, strconv.FormatFloat(w.Count, 'f', 0, 64), w.Formula})
		}
	}
	return s
}

func stageSection(r *memoryResult) plaintext.Section {
	s := plaintext.Section{
		Title:  "memory of a device, by pipeline stage",
		Header: table.Row{"stage", "layers", "parameters", "weights", "gradients", "optimizer", "in flight", "activations", "loss", "total"}, Right: []int{1, 3, 4, 5, 6, 7, 8, 9, 10},
		Optional: []string{"in flight", "loss", "parameters", "layers"},
	}
	if r.Fits != nil {
		s.Header = append(s.Header, "free")
		s.Right = append(s.Right, len(s.Header))
	}
	for _, st := range r.Memory.Stages {
		row := table.Row{
			st.Rank, layers(st.Chunks), strconv.FormatFloat(st.Parameters, 'f', 0, 64), sysmem.Text(st.Weights + st.FP8Copies), sysmem.Text(st.Gradients), sysmem.Text(st.Optimizer),
			strings.Trim(fmt.Sprint(st.InFlight), "[]"), sysmem.Text(st.Activations + st.Recomputing), sysmem.Text(st.Loss), sysmem.Text(st.Total),
		}
		if r.Fits != nil {
			row = append(row, difference(r.DeviceMemory-st.Total))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// layers writes the layers of the chunks of a stage.
func layers(chunks []projection.Chunk) string {
	var parts []string
	for _, c := range chunks {
		var words []string
		if c.Embedding {
			words = append(words, "embedding")
		}
		if n := len(c.Layers); n == 1 {
			words = append(words, fmt.Sprint(c.Layers[0]))
		} else if n > 1 {
			words = append(words, fmt.Sprintf("%d–%d", c.Layers[0], c.Layers[n-1]))
		}
		if c.MTP > 0 {
			words = append(words, "MTP")
		}
		if c.Loss {
			words = append(words, "loss")
		}
		parts = append(parts, strings.Join(words, "+"))
	}
	return strings.Join(parts, ", ")
}

// difference writes what is left of a device, or what is missing on it.
func difference(bytes float64) string {
	if bytes < 0 {
		return "-" + sysmem.Text(-bytes)
	}
	return sysmem.Text(bytes)
}

func lineSection(r *memoryResult) plaintext.Section {
	largest := r.Memory.Stages[r.Memory.Largest]
	s := plaintext.Section{Title: fmt.Sprintf("stage %d, which needs the most", largest.Rank), Header: table.Row{"part", "bytes", "formula", "numbers"}, Right: []int{2}, Optional: []string{"numbers", "formula"}}
	for _, l := range largest.Lines {
		s.Rows = append(s.Rows, table.Row{l.Part, sysmem.Text(l.Bytes), l.Formula, l.Numbers})
	}
	s.Rows = append(s.Rows, table.Row{"total", sysmem.Text(largest.Total), "", ""})
	return s
}

func fitSection(r *memoryResult) plaintext.Section {
	s := plaintext.Section{
		Title: "does it fit?",
		Lines: []string{fmt.Sprintf("%s: the largest stage needs %s of %s, of which %.3g %% stay free", verdict(*r.Fits), sysmem.Text(r.Memory.Stages[r.Memory.Largest].Total), sysmem.Text(r.DeviceMemory), 100*r.Margin)},
	}
	shown, what := suited(r.Alternatives)
	if len(shown) == 0 {
		s.Lines = append(s.Lines, "no other cut over these devices was found: give more of them with --target-nodes")
		return s
	}
	s.Header, s.Right = table.Row{what, "largest stage"}, []int{2}
	for _, a := range shown {
		settings := a.Settings
		if a.Nodes*r.Parallel.DevicesPerNode != r.Parallel.World {
			settings = append([]string{fmt.Sprintf("--target-nodes %d", a.Nodes)}, settings...)
		}
		s.Rows = append(s.Rows, table.Row{strings.Join(settings, " "), sysmem.Text(a.Largest)})
	}
	return s
}

func verdict(fits bool) string {
	if fits {
		return "fits"
	}
	return "does not fit"
}

// maxShown is how many other settings a report lists; JSON has all of them.
const maxShown = 8

// suited returns the first settings that fit, or those that come nearest.
func suited(all []projection.Alternative) (shown []projection.Alternative, what string) {
	for _, a := range all {
		if a.Fits && len(shown) < maxShown {
			shown = append(shown, a)
		}
	}
	if len(shown) > 0 {
		return shown, "other settings that fit"
	}
	shown = slices.SortedStableFunc(slices.Values(all), func(a, b projection.Alternative) int { return cmp.Compare(a.Largest, b.Largest) })
	return shown[:min(3, len(shown))], "none of the other settings fits; the nearest"
}
