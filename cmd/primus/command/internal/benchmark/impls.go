package benchmark

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// implBenchmarkOptions are the flags that the benchmarks of ops have in common.
type implBenchmarkOptions struct {
	dtypes   []string
	impls    []string
	threads  uint
	repeat   uint
	duration time.Duration
	output   benchmarkFormat
	plot     string
	report   string
	more     bool // the report goes behind what its file has
}

func (o *implBenchmarkOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.dtypes, "dtype", []string{"f32"}, "`DTYPE` of the operands: f32, bf16 or f16; several separated by commas")
	flags.StringSliceVar(&o.impls, "impl", nil, "measure only the impls with these `IDS`, such as default.flagos,vendor.onednn")
	flags.UintVar(&o.threads, "threads", 0, "`N` CPU threads for ops; 0 is one per CPU")
	flags.UintVar(&o.repeat, "repeat", 20, "at most `N` samples of each impl")
	flags.Var(seconds{&o.duration}, "duration", "take no further sample of an impl after this `TIME`, 10s or a number of seconds; given alone, it replaces --repeat")
	flags.StringVar(&o.report, "output-file", "", "also write the table to `FILE`, as Markdown")
	flags.BoolVar(&o.more, "append", false, "append to the file of --output-file")
	flags.StringVar(&o.plot, "plot", "", "write a bar chart to `FILE`, a PNG")
	o.duration = 2 * time.Second
	o.output = benchmarkFormat{OutputFormat: cli.OutputTable}
	flags.VarP(&o.output, "output", "o", "table, json or csv")
	formats := cobra.FixedCompletions([]string{"table", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic("BUG: " + err.Error())
	}
}

// outputCSV is a format that only benchmarks have.
const outputCSV cli.OutputFormat = "csv"

// benchmarkFormat is the value of -o of benchmarks.
type benchmarkFormat struct{ cli.OutputFormat }

// Set implements pflag.Value.
func (o *benchmarkFormat) Set(s string) error {
	if strings.EqualFold(s, string(outputCSV)) {
		o.OutputFormat = outputCSV
		return nil
	}
	return o.OutputFormat.Set(s)
}

// seconds is a duration that may be a number of seconds, as in Primus.
type seconds struct{ d *time.Duration }

func (s seconds) String() string {
	if s.d == nil {
		return ""
	}
	return s.d.String()
}

func (s seconds) Type() string { return "duration" }

// Set implements pflag.Value.
func (s seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("want a time such as 10s, or a number of seconds, above 0")
	}
	*s.d = d
	return nil
}

// dtypeNames are other names of dtypes, which Primus has.
var dtypeNames = map[string]string{"fp32": "f32", "fp16": "f16"}

// check returns the first mistake in the flags, and the dtypes.
func (o *implBenchmarkOptions) check(cmd *cobra.Command) ([]tensor.DType, error) {
	var dtypes []tensor.DType
	for _, name := range o.dtypes {
		if longer, ok := dtypeNames[strings.ToLower(name)]; ok {
			name = longer
		}
		d, err := tensor.ParseDType(name)
		if err != nil || !slices.Contains([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}, d) {
			return nil, cli.Usagef(cmd, "--dtype: given %q, want f32, bf16 or f16", name)
		}
		dtypes = append(dtypes, d)
	}
	if cmd.Flags().Changed("duration") && !cmd.Flags().Changed("repeat") {
		o.repeat = math.MaxInt32
	}
	if o.more && o.report == "" {
		return nil, cli.Usagef(cmd, "--append: given without --output-file")
	}
	if o.report != "" {
		if err := durable.CheckFileWritable(o.report); err != nil {
			return nil, fmt.Errorf("--output-file: %w", err)
		}
	}
	if o.repeat == 0 {
		return nil, cli.Usagef(cmd, "--repeat: given 0, want at least one sample")
	}
	return dtypes, nil
}

// implBenchmarkParams are what measuring ops needs of the graph.
type implBenchmarkParams struct {
	fx.In
	Device   device.Backend
	Exec     *opregistry.Exec
	Registry *opregistry.Registry
}

// caseSet builds cases one after the other, so that only one is in memory.
type caseSet []opbench.Build

// runImplBenchmark measures the cases with each dtype on every impl and prints the results.
func runImplBenchmark(cmd *cobra.Command, prog cli.Program, o implBenchmarkOptions, dtypes []tensor.DType, cases caseSet) error {
	var p implBenchmarkParams
	set := graph.Config{Threads: int(o.threads), Log: slog.New(prog.Lines(prog.Err, slog.LevelWarn)), Extras: prog.Extras}
	return graph.Run(cmd.Context(), func() error {
		b := opbench.Bench{
			Device: p.Device, Exec: p.Exec, Snap: p.Registry.Snapshot(), Impls: o.impls, Settings: opbench.Settings{Repeat: int(o.repeat), Budget: o.duration},
		}
		if err := b.CheckImpls(); err != nil {
			return cli.Usagef(cmd, "--impl: %w", err)
		}
		rows := []opbench.Figures{}
		for _, build := range cases {
			for _, d := range dtypes {
				measured, err := b.Measure(cmd.Context(), d, build)
				if err != nil {
					return err
				}
				rows = append(rows, measured...)
			}
		}
		if o.plot != "" {
			png, err := opbench.Plot(rows)
			if err != nil {
				return fmt.Errorf("draw the plot: %w", err)
			}
			if err := durable.WriteFile(o.plot, func(w io.Writer) error {
				_, err := w.Write(png)
				return err
			}); err != nil {
				return fmt.Errorf("write the plot: %w", err)
			}
		}
		if o.report != "" {
			t, notes := benchmarkTable(rows)
			if err := writeMarkdown(o.report, o.more, cmd.CommandPath(), t, notes); err != nil {
				return fmt.Errorf("--output-file: %w", err)
			}
		}
		switch o.output.OutputFormat {
		case cli.OutputJSON:
			return cli.WriteJSON(prog.Out, rows)
		case outputCSV:
			return writeBenchmarkCSV(prog.Out, rows)
		}
		return printBenchmark(prog.Out, rows)
	}, graph.Core(set), fx.Invoke(func(built implBenchmarkParams) { p = built }))
}

// writeMarkdown writes a table and notes to a file, behind what it has if more is true.
func writeMarkdown(file string, more bool, title string, t *plaintext.Table, notes []string) error {
	text := fmt.Sprintf("# %s\n\n%s\n", title, t.RenderMarkdown())
	for _, note := range notes {
		text += "\n- " + note + "\n"
	}
	if !more {
		return durable.WriteFile(file, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	f, err := durable.OpenAppend(file)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + text)
	return errors.Join(err, f.Close())
}

func printBenchmark(out io.Writer, rows []opbench.Figures) error {
	t, notes := benchmarkTable(rows)
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

// benchmarkTable returns the figures as a table, and the reasons of impls that did not run.
func benchmarkTable(rows []opbench.Figures) (*plaintext.Table, []string) {
	t := plaintext.NewTable(table.Row{"op", "shape", "dtype", "impl", "median ms", "95 % interval", "fastest", "slowest", "samples", "GFLOP/s", "GB/s", "% of peak"}, 5, 6, 7, 8, 9, 10, 11, 12).
		Optional("samples", "slowest", "fastest", "95 % interval", "% of peak", "GB/s")
	var notes []string
	for _, r := range rows {
		if r.Time == nil {
			t.AppendRow(table.Row{r.Op, r.Shape, r.DType, r.Impl, "-", "-", "-", "-", "-", "-", "-", "-"})
			if note := fmt.Sprintf("%s of %s in %v: %s", r.Impl, r.Op, r.DType, r.Reason); !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
			continue
		}
		t.AppendRow(table.Row{
			r.Op, r.Shape, r.DType, r.Impl, digits(r.Time.Median), interval(r.Time.Interval), digits(r.Time.Min), digits(r.Time.Max), r.Time.Count,
			nonZero("%.1f", r.GFLOPS), nonZero("%.1f", r.GBPerS), nonZero("%.1f", 100*r.PeakShare),
		})
	}
	return t, notes
}

// digits writes a time in milliseconds.
func digits(ms float64) string { return strconv.FormatFloat(ms, 'g', 4, 64) }

// interval writes the interval of a median, with its confidence if that is not the one in the
// heading.
func interval(i stats.Interval) string {
	text := digits(i.Low) + " to " + digits(i.High)
	if i.Confidence < stats.Confidence {
		text += fmt.Sprintf(" (%.0f %%)", 100*i.Confidence)
	}
	return text
}

// nonZero writes a figure, or a dash where there is none.
func nonZero(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func writeBenchmarkCSV(out io.Writer, rows []opbench.Figures) error {
	w := csv.NewWriter(out)
	records := [][]string{{"op", "shape", "dtype", "threads", "impl", "kind", "median_ms", "low_ms", "high_ms", "confidence", "min_ms", "max_ms", "samples", "gflops", "gb_per_s", "bound", "peak_share", "reason"}}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, r := range rows {
		times := []string{"", "", "", "", "", "", "0"}
		if r.Time != nil {
			i := r.Time.Interval
			times = []string{
				number(r.Time.Median), number(i.Low), number(i.High), number(i.Confidence), number(r.Time.Min), number(r.Time.Max), strconv.Itoa(r.Time.Count),
			}
		}
		records = append(records, slices.Concat(
			[]string{r.Op, r.Shape, r.DType.String(), strconv.Itoa(r.Threads), r.Impl, r.Kind.String()}, times,
			[]string{number(r.GFLOPS), number(r.GBPerS), string(r.Bound), number(r.PeakShare), r.Reason}))
	}
	return w.WriteAll(records)
}

// checkPlot returns an error for a file that a plot cannot be written to.
func checkPlot(cmd *cobra.Command, file string) error {
	if file == "" {
		return nil
	}
	if !strings.HasSuffix(strings.ToLower(file), ".png") {
		return cli.Usagef(cmd, "--plot: given %q, want the name of a file that ends in .png", file)
	}
	if err := durable.CheckFileWritable(file); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}
