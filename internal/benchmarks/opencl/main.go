// Command opencl measures the kernels of vendor.opencl on an OpenCL device, at the sizes of
// training steps: products beside CLBlast on the same device and beside flagos on the processor,
// attention and the ops that memory bounds beside flagos.
//
// The contenders take turns within each case, and a figure is the best of the rounds. A call ends
// when its result is in the memory of the device.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/internal/program"
)

func main() { program.Main("opencl", run) }

// options are the flags.
type options struct {
	index  int
	only   string
	format string
	rounds int
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("opencl", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.IntVar(&o.index, "device", 0, "index of the OpenCL device, as `primus devices list` prints it")
	flags.StringVar(&o.only, "only", "", "regular expression of the cases to measure, such as 'llama_2M'")
	flags.StringVar(&o.format, "o", "table", "table or json")
	flags.IntVar(&o.rounds, "rounds", 20, "rounds for each case")
	if err := flags.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	switch {
	case err != nil:
		return fmt.Errorf("-only: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.format != "table" && o.format != "json":
		return fmt.Errorf("-o: got %q, want table or json", o.format)
	case o.rounds < 1:
		return fmt.Errorf("-rounds: got %d, want at least 1", o.rounds)
	}
	backend := opencl.New(opencl.Options{})
	if err := backend.Usable(); err != nil {
		return err
	}
	if err := backend.SetDefaultDevice(o.index); err != nil {
		return err
	}
	b, err := newBench(backend, o.index)
	if err != nil {
		return err
	}
	defer b.close()
	info := b.device.Info()
	fmt.Fprintf(progress, "%s, driver %s, %d compute units\n", info.Name, info.Driver, info.ComputeUnits)
	rows := []row{}
	for _, c := range b.cases() {
		if !only.MatchString(c.name) {
			continue
		}
		r, err := b.measure(ctx, c, o.rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, r)
	}
	return report(out, o.format, rows)
}

// row is the result of a case: the rate of each contender, and why others are absent.
type row struct {
	Case   string             `json:"case"`
	Unit   string             `json:"unit"` // GFLOP/s, or GB/s of the operands
	Rates  map[string]float64 `json:"rates"`
	Absent map[string]string  `json:"absent,omitempty"`
}

// measure lets the contenders of a case take turns.
func (b *bench) measure(ctx context.Context, c benchCase, rounds int) (row, error) {
	r := row{Case: c.name, Unit: c.unit, Rates: map[string]float64{}, Absent: map[string]string{}}
	best := map[string]time.Duration{}
	for round := range rounds {
		for i := range c.sides {
			s := c.sides[(i+round)%len(c.sides)]
			if s.absent != nil {
				r.Absent[s.name] = s.absent.Error()
				continue
			}
			start := time.Now()
			if err := s.call(); err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			if took := time.Since(start); best[s.name] == 0 || took < best[s.name] {
				best[s.name] = took
			}
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	for name, took := range best {
		r.Rates[name] = c.work / took.Seconds() / 1e9
	}
	return r, c.close()
}

// contenders are the columns of the table.
var contenders = [...]string{"opencl", "clblast", "flagos"}

func report(w io.Writer, format string, rows []row) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\topencl\tclblast\tflagos\tunit\topencl/clblast\topencl/flagos")
	logs, cases := map[string]float64{}, map[string]int{}
	for _, r := range rows {
		fmt.Fprint(t, r.Case)
		for _, name := range contenders {
			fmt.Fprintf(t, "\t%s", number(r.Rates[name], "%.1f"))
		}
		fmt.Fprintf(t, "\t%s", r.Unit)
		for _, name := range contenders[1:] {
			ratio := 0.0
			if r.Rates[name] > 0 {
				ratio = r.Rates["opencl"] / r.Rates[name]
				logs[name] += math.Log(ratio)
				cases[name]++
			}
			fmt.Fprintf(t, "\t%s", number(ratio, "%.2f"))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "geometric mean\t\t\t\t")
	for _, name := range contenders[1:] {
		mean := 0.0
		if cases[name] > 0 {
			mean = math.Exp(logs[name] / float64(cases[name]))
		}
		fmt.Fprintf(t, "\t%s", number(mean, "%.2f"))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// number formats a figure, "-" for one that there is not.
func number(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
