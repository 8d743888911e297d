package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pipelineFlags are the flags of `primus projection pipeline`.
type pipelineFlags struct {
	output                   cli.ReportFormat
	schedules                []string
	stages, microBatches     int
	chunks                   int
	forward, backward, wgrad []string
	send, limit              float64
	config, picture          string
}

// pipelineRow is what -o json prints for a schedule.
type pipelineRow struct {
	Schedule     string  `json:"schedule"`
	Stages       int     `json:"stages"`
	MicroBatches int     `json:"micro_batches"`
	Chunks       int     `json:"chunks"`
	StepTime     float64 `json:"step_time"`
	Bubble       float64 `json:"bubble"`
	Peak         float64 `json:"peak_activations"`
	BubbleOfWork float64 `json:"bubble_of_work"`
	SpeedUp      float64 `json:"speed_up"` // over the slowest row of the same size
	Fits         bool    `json:"fits"`     // --max-activations

	limit float64
}

// request is a schedule to simulate.
type request struct {
	name                 string // in the table; that of the schedule if empty
	schedule             string // a name of package pipeline, or a file
	stages, microBatches int
	chunks               int  // that interleaved and auto have
	only                 bool // auto has no other number of chunks
	times                pipeline.Times
	limit                float64
}

func newPipelineCommand(prog cli.Program) *cobra.Command {
	var f pipelineFlags
	cmd := &cobra.Command{
		Use:   "pipeline --stages P --micro-batches M",
		Short: "Compare the schedules of a pipeline: time of a step, bubble and memory",
		Long: `Simulate schedules of a pipeline, each from a table of its passes that is proved to end,
and compare them:

  step time         from the first pass to the end of the last one, in the unit of the times
  bubble            share of the step in which stages wait, over all stages
  peak activations  most micro batches that a stage holds at once, counted on a whole stage
  speed-up          over the slowest schedule with as many stages and micro batches

Times are those of one micro batch on a stage, over all its chunks: one for all stages, or
one for each with commas between. --backward is the gradient of the input alone, --wgrad
that of the weights. Stages work while messages are on the way.

Schedules:

` + describeSchedules() + `
A word that ends with .yaml, .yml or .json is a file with a schedule of your own:

  micro_batches: 2
  stages:
    - F0 F1 BW0 BW1
    - F0 BW0 F1 BW1

F and B are the passes, W computes the gradients of the weights of a B, and BW is both. A
pass in another chunk than 0 ends with its number, as in F0.1; chunks: says how many there
are, and placement: v that every second one goes from the last stage to the first.

--config reads the times and schedules of a pp_simulation.yaml of Primus; its heuristic of
zero bubble is auto with one chunk here, within max_mem.

At most ` + strconv.Itoa(pipeline.MaxRanks) + ` stages, and stages · micro batches · chunks at most ` + strconv.Itoa(pipeline.MaxPasses) + `.`,
		Example: `  primus projection pipeline --stages 8 --micro-batches 32
  primus projection pipeline --stages 8 --micro-batches 32 --forward 10 --backward 11 --wgrad 9 --send 0.5 --max-activations 6
  primus projection pipeline --stages 4 --micro-batches 16 --schedules 1f1b,zbv,mine.yaml --picture schedules.html
  primus projection pipeline --stages 4 --micro-batches 16 --schedules auto --forward 1,1,1,1.4 --backward 1,1,1,1.3 -o json
  primus projection pipeline --config primus/core/projection/configs/pp_simulation.yaml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(prog, cmd) },
	}
	flags := cmd.Flags()
	f.output.AddFlag(cmd)
	flags.StringSliceVar(&f.schedules, "schedules", nil, "compare these `NAMES` and files (default: all)")
	flags.IntVar(&f.stages, "stages", 0, "`P` stages, each on a rank of its own")
	flags.IntVar(&f.microBatches, "micro-batches", 0, "`M` micro batches per step")
	flags.IntVar(&f.chunks, "chunks", 2, "`V` chunks per stage in interleaved, and at most in auto")
	flags.StringSliceVar(&f.forward, "forward", []string{"1"}, "a forward pass takes this `TIME`, or one for each stage")
	flags.StringSliceVar(&f.backward, "backward", []string{"1"}, "the gradient of the input takes this `TIME`, or one for each stage")
	flags.StringSliceVar(&f.wgrad, "wgrad", []string{"1"}, "the gradients of the weights take this `TIME`, or one for each stage")
	flags.Float64Var(&f.send, "send", 0, "a message to another stage takes this `TIME`")
	flags.Float64Var(&f.limit, "max-activations", 0, "a stage has memory for the activations of `N` micro batches; 0 is no limit")
	flags.StringVar(&f.config, "config", "", "read sizes, times and schedules from `FILE`, a pp_simulation.yaml of Primus")
	flags.StringVar(&f.picture, "picture", "", "draw the schedules into `FILE`, which ends with .svg, .png or .html")
	complete := cobra.FixedCompletions(pipeline.Names(), cobra.ShellCompDirectiveDefault)
	if err := cmd.RegisterFlagCompletionFunc("schedules", complete); err != nil {
		panic("BUG: " + err.Error())
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cli.WithoutVariable(flags, slices.DeleteFunc(names, func(n string) bool { return n == "output" })...)
	return cmd
}

func describeSchedules() string {
	var b strings.Builder
	for _, name := range pipeline.Names() {
		fmt.Fprintf(&b, "  %-12s %s\n", name, pipeline.About(name))
	}
	return b.String()
}

func (f *pipelineFlags) run(prog cli.Program, cmd *cobra.Command) error {
	draw, err := f.drawing(cmd)
	if err != nil {
		return err
	}
	formats, err := graph.LoadFormats(prog.Extras)
	if err != nil {
		return err
	}
	requests, err := f.requests(cmd, formats)
	if err != nil {
		return err
	}
	var rows []pipelineRow
	var drawn []pipeline.Drawn
	for _, q := range requests {
		t, err := q.table(cmd.Context(), formats)
		if errors.Is(err, pipeline.ErrMicroBatches) && len(f.schedules) == 0 {
			if _, err := fmt.Fprintf(prog.Err, "primus: left out: %s\n", strings.TrimPrefix(err.Error(), "pipeline: ")); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		r, err := pipeline.Simulate(t, q.times)
		if err != nil {
			return usage(err)
		}
		t.Name = cmp.Or(q.name, t.Name)
		drawn = append(drawn, pipeline.Drawn{Table: t, Simulation: r})
		rows = append(rows, pipelineRow{
			Schedule: t.Name, Stages: t.Ranks, MicroBatches: t.MicroBatches, Chunks: t.Chunks, StepTime: r.StepTime, Bubble: r.Bubble,
			Peak: r.Peak(), BubbleOfWork: r.BubbleOfWork(), Fits: q.limit == 0 || r.Peak() <= q.limit, limit: q.limit,
		})
	}
	type size struct{ stages, microBatches int }
	slowest := map[size]float64{}
	for _, r := range rows {
		s := size{r.Stages, r.MicroBatches}
		slowest[s] = max(slowest[s], r.StepTime)
	}
	for i, r := range rows {
		rows[i].SpeedUp = slowest[size{r.Stages, r.MicroBatches}] / r.StepTime
	}
	if draw != nil {
		if err := durable.WriteFile(f.picture, func(w io.Writer) error { return draw(w, drawn) }); err != nil {
			return fmt.Errorf("write %s: %w", f.picture, err)
		}
	}
	if f.output.OutputFormat == cli.OutputJSON {
		return cli.WriteJSON(prog.Out, rows)
	}
	section := plaintext.Section{
		Header: table.Row{"schedule", "stages", "micro batches", "chunks", "step time", "bubble", "peak activations", "speed-up"},
		Right:  []int{2, 3, 4, 5, 6, 7, 8},
	}
	for _, r := range rows {
		peak := fmt.Sprintf("%.4g", r.Peak)
		if !r.Fits {
			peak += " > " + fmt.Sprintf("%.4g", r.limit)
		}
		section.Rows = append(section.Rows, table.Row{r.Schedule, r.Stages, r.MicroBatches, r.Chunks, fmt.Sprintf("%.6g", r.StepTime), fmt.Sprintf("%.2f %%", 100*r.Bubble), peak, fmt.Sprintf("%.3f", r.SpeedUp)})
	}
	return plaintext.WriteSections(prog.Out, f.output.OutputFormat == cli.OutputMarkdown, []plaintext.Section{section})
}

// drawing returns what writes the picture, nil if none is wanted.
func (f *pipelineFlags) drawing(cmd *cobra.Command) (func(io.Writer, []pipeline.Drawn) error, error) {
	switch ext := strings.ToLower(filepath.Ext(f.picture)); {
	case f.picture == "" && !cmd.Flags().Changed("picture"):
		return nil, nil
	case ext == ".svg":
		return pipeline.WriteSVG, nil
	case ext == ".png":
		return pipeline.WritePNG, nil
	case ext == ".html":
		return pipeline.WriteHTML, nil
	}
	return nil, cli.Usagef(cmd, "--picture: given %q, want a name that ends with .svg, .png or .html", f.picture)
}

// requests returns what the flags ask for.
func (f *pipelineFlags) requests(cmd *cobra.Command, formats *document.Formats) ([]request, error) {
	if !(f.limit == 0 || f.limit >= 1 && f.limit <= pipeline.MaxPasses) {
		return nil, cli.Usagef(cmd, "--max-activations: given %v, want a number >= 1, or 0 for no limit", f.limit)
	}
	if !(f.send >= 0 && f.send <= 1e30) {
		return nil, cli.Usagef(cmd, "--send: given %v, want a time from 0 to 1e30", f.send)
	}
	if f.config != "" {
		return f.readSimulation(cmd, formats)
	}
	names := f.schedules
	if len(names) == 0 {
		names = pipeline.Names()
	}
	known, takes := false, false
	for _, name := range names {
		switch {
		case isScheduleFile(name):
			continue
		case !slices.Contains(pipeline.Names(), name):
			return nil, cli.Usagef(cmd, "--schedules: given %q, want some of %s, or files that end with .yaml, .yml or .json%s", name, strings.Join(pipeline.Names(), ", "), suggest.Hint(name, pipeline.Names()))
		}
		known = true
		takes = takes || pipeline.Chunks(name, f.chunks) == f.chunks
	}
	times, err := f.times(cmd)
	if err != nil {
		return nil, err
	}
	switch {
	case known && (f.stages < 1 || f.stages > pipeline.MaxRanks):
		return nil, cli.Usagef(cmd, "--stages: given %d, want a number from 1 to %d", f.stages, pipeline.MaxRanks)
	case known && (f.microBatches < 1 || f.microBatches > pipeline.MaxPasses):
		return nil, cli.Usagef(cmd, "--micro-batches: given %d, want a number from 1 to %d", f.microBatches, pipeline.MaxPasses)
	case f.chunks < 1 || f.chunks > pipeline.MaxChunks:
		return nil, cli.Usagef(cmd, "--chunks: given %d, want a number from 1 to %d", f.chunks, pipeline.MaxChunks)
	case known && !takes && cmd.Flags().Changed("chunks"):
		return nil, cli.Usagef(cmd, "--chunks: given %d, want the number that one of the schedules %s has", f.chunks, strings.Join(names, ", "))
	}
	requests := make([]request, len(names))
	for i, name := range names {
		requests[i] = request{schedule: name, stages: f.stages, microBatches: f.microBatches, chunks: pipeline.Chunks(name, f.chunks), times: times, limit: f.limit}
	}
	return requests, nil
}

// times returns the flags with times.
func (f *pipelineFlags) times(cmd *cobra.Command) (pipeline.Times, error) {
	list := func(flag string, words []string) ([]float64, error) {
		values := make([]float64, len(words))
		for i, word := range words {
			v, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !(v >= 0 && v <= 1e30) {
				return nil, cli.Usagef(cmd, "--%s: given %q, want a time from 0 to 1e30, or one for each stage with commas between", flag, word)
			}
			values[i] = v
		}
		if len(values) != 1 && f.stages > 0 && len(values) != f.stages {
			return nil, cli.Usagef(cmd, "--%s: given %d times, want one, or one for each of %d stages", flag, len(values), f.stages)
		}
		return values, nil
	}
	forward, err := list("forward", f.forward)
	if err != nil {
		return pipeline.Times{}, err
	}
	backward, err := list("backward", f.backward)
	if err != nil {
		return pipeline.Times{}, err
	}
	wgrad, err := list("wgrad", f.wgrad)
	if err != nil {
		return pipeline.Times{}, err
	}
	times := pipeline.Times{Ranks: make([]pipeline.Cost, max(len(forward), len(backward), len(wgrad))), Send: f.send}
	for i := range times.Ranks {
		times.Ranks[i] = pipeline.Cost{Forward: forward[min(i, len(forward)-1)], Backward: backward[min(i, len(backward)-1)], Weights: wgrad[min(i, len(wgrad)-1)]}
	}
	return times, nil
}

func isScheduleFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// table returns the table of a schedule.
func (q request) table(ctx context.Context, formats *document.Formats) (pipeline.Table, error) {
	switch {
	case isScheduleFile(q.schedule):
		return readSchedule(ctx, q.schedule, formats)
	case q.schedule == pipeline.Auto && q.only:
		s := pipeline.Shape{Ranks: q.stages, MicroBatches: q.microBatches, Chunks: q.chunks, Placement: pipeline.Loop}
		t, err := pipeline.SearchShape(s, q.times, q.limit)
		return t, usage(err)
	case q.schedule == pipeline.Auto:
		t, err := pipeline.Search(q.stages, q.microBatches, q.chunks, q.times, q.limit)
		return t, usage(err)
	}
	t, err := pipeline.Generate(q.schedule, q.stages, q.microBatches, q.chunks, q.times)
	return t, usage(err)
}

// usage marks an error that is about the numbers on the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return cli.UsageError{Err: err}
}

// readSchedule reads a schedule of the user's own.
func readSchedule(ctx context.Context, file string, formats *document.Formats) (pipeline.Table, error) {
	doc, err := readDocument(ctx, file, formats)
	if err != nil {
		return pipeline.Table{}, err
	}
	t, err := pipeline.Parse(doc)
	if err != nil {
		return pipeline.Table{}, fmt.Errorf("%s is not a schedule: %w", file, err)
	}
	t.Name = cmp.Or(t.Name, file)
	return t, nil
}

// readDocument reads a mapping from a file.
func readDocument(ctx context.Context, file string, formats *document.Formats) (*document.Map, error) {
	data, err := document.ReadFile(file)
	if err != nil {
		return nil, err
	}
	root, duplicates, err := formats.Parse(ctx, file, data)
	if err != nil {
		return nil, err
	}
	if len(duplicates) > 0 {
		return nil, fmt.Errorf("%s: the key %v is given twice, want it once", file, duplicates[0].Key)
	}
	doc, ok := root.Map()
	if !ok {
		return nil, fmt.Errorf("%s: given %s, want a mapping", file, root.Describe())
	}
	return doc, nil
}
