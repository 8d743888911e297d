package benchmark

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// measured is a collective that is measured.
type measured struct {
	name  string // that Primus gives it
	share func(ranks float64) float64

	// in and out return the elements of its operands for a message of a rank; 0 is none.
	in, out func(elements, ranks int) int
	bind    func(m *opmanager.Manager, in, out *tensor.Tensor, g collective.Group) func() error
}

func whole(elements, _ int) int     { return elements }
func ofAll(elements, ranks int) int { return elements * ranks }
func none(int, int) int             { return 0 }

func others(ranks float64) float64 { return (ranks - 1) / ranks }

// collectives are those that Primus measures, all_reduce first, which is the default.
var collectives = []measured{
	{"all_reduce", func(n float64) float64 { return 2 * others(n) }, whole, none, func(m *opmanager.Manager, in, _ *tensor.Tensor, g collective.Group) func() error {
		b := opmanager.MustBind(m, collective.AllReduce)
		return func() error { return b.Call(collective.AllReduceArgs{Input: in, Output: in, Group: g}) }
	}},
	{"broadcast", others, whole, none, func(m *opmanager.Manager, in, _ *tensor.Tensor, g collective.Group) func() error {
		b := opmanager.MustBind(m, collective.Broadcast)
		return func() error { return b.Call(collective.BroadcastArgs{Buffer: in, Group: g}) }
	}},
	{"reduce_scatter", others, ofAll, whole, func(m *opmanager.Manager, in, out *tensor.Tensor, g collective.Group) func() error {
		b := opmanager.MustBind(m, collective.ReduceScatter)
		return func() error { return b.Call(collective.ReduceScatterArgs{Input: in, Output: out, Group: g}) }
	}},
	{"all_gather", others, whole, ofAll, func(m *opmanager.Manager, in, out *tensor.Tensor, g collective.Group) func() error {
		b := opmanager.MustBind(m, collective.AllGather)
		return func() error { return b.Call(collective.AllGatherArgs{Input: in, Output: out, Group: g}) }
	}},
	{"alltoall", others, whole, whole, func(m *opmanager.Manager, in, out *tensor.Tensor, g collective.Group) func() error {
		b := opmanager.MustBind(m, collective.AllToAll)
		return func() error { return b.Call(collective.AllToAllArgs{Input: in, Output: out, Group: g}) }
	}},
}

// collectiveNamed returns a collective by its name.
func collectiveNamed(name string) (measured, bool) {
	i := slices.IndexFunc(collectives, func(c measured) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return measured{}, false
	}
	return collectives[i], true
}

func collectiveNames() []string {
	names := make([]string, len(collectives))
	for i, c := range collectives {
		names[i] = c.name
	}
	return names
}

const collectiveHelp = `It runs as a rank of a job, which mpirun, mpiexec or srun starts, and all ranks measure
the same calls, which the dispatcher passes to MPI. The time of a call is that of the
slowest rank. GB/s are the bytes that a rank sends with the usual algorithms in the
median time: for all_reduce 2·(ranks-1)/ranks of the message, for the others
(ranks-1)/ranks. The first rank prints the table.`

// collectiveOptions are the flags that both commands have.
type collectiveOptions struct {
	dtype         string
	warmup, iters int
	wait          time.Duration
	output        cli.OutputFormat
}

func (o *collectiveOptions) addFlags(cmd *cobra.Command, warmup, iters int) {
	flags := cmd.Flags()
	flags.StringVar(&o.dtype, "dtype", "bf16", "`DTYPE` of the message: f32, bf16 or f16")
	flags.IntVar(&o.warmup, "warmup", warmup, "`N` calls before those that are timed")
	flags.IntVar(&o.iters, "iters", iters, "time `N` calls")
	flags.DurationVar(&o.wait, "rendezvous-timeout", 10*time.Minute, "give up when the ranks have not met within `TIME`")
	o.output.AddFlag(cmd)
}

// check returns the first mistake in the flags, and the dtype.
func (o *collectiveOptions) check(cmd *cobra.Command) (tensor.DType, error) {
	name := o.dtype
	if longer, ok := dtypeNames[strings.ToLower(name)]; ok {
		name = longer
	}
	d, err := tensor.ParseDType(name)
	if err != nil || !slices.Contains([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}, d) {
		return d, cli.Usagef(cmd, "--dtype: given %q, want f32, bf16 or f16", o.dtype)
	}
	if o.warmup < 0 || o.iters < 1 || o.wait <= 0 {
		return d, cli.Usagef(cmd, "--warmup: given %d, --iters: given %d, --rendezvous-timeout: given %v, want a number from 0, a number from 1 and a time above 0", o.warmup, o.iters, o.wait)
	}
	return d, nil
}

// job is this process as a rank that measures.
type job struct {
	collective.Group
	device  device.Backend
	manager *opmanager.Manager
	options *collectiveOptions
	dtype   tensor.DType
}

// runCollectives connects the ranks and calls measure on each of them.
func runCollectives(cmd *cobra.Command, prog cli.Program, o *collectiveOptions, d tensor.DType, measure func(context.Context, *job) error) (err error) {
	env := backend.ProcessEnviron()
	defer func() { err = errors.Join(err, env.Rewind(0)) }()
	vars, err := launch.RankVariables(os.LookupEnv)
	if err != nil {
		return err
	}
	for _, v := range vars {
		if err := env.Set(v.Name, v.Value, "launcher"); err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
	}
	place, err := backend.ReadDistributed(env)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	var p struct {
		fx.In
		Manager *opmanager.Manager
		Device  device.Backend
		MPI     *mpi.Library
	}
	set := graph.Config{Log: slog.New(prog.Lines(prog.Err, slog.LevelWarn)), Extras: prog.Extras, LocalRank: place.LocalRank}
	return graph.Run(cmd.Context(), func() error {
		j := &job{Group: collective.Group{Rank: place.Rank, Ranks: place.WorldSize}, device: p.Device, manager: p.Manager, options: o, dtype: d}
		if err := p.MPI.Meet(cmd.Context(), j.Group, o.wait); err != nil {
			return err
		}
		return errors.Join(measure(cmd.Context(), j), p.MPI.Close())
	}, graph.Core(set), fx.Populate(&p))
}

// figures are the times of a collective with a message of a size.
type figures struct {
	Op    string  `json:"op"`
	Bytes int     `json:"bytes"` // of the message of a rank
	Ranks int     `json:"ranks"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Min   float64 `json:"min_ms"`
	Max   float64 `json:"max_ms"`
	GBPS  float64 `json:"gb_per_s"`
	Right *bool   `json:"right,omitempty"`
}

// time measures a collective among the ranks of a group, with a message of at least size bytes for
// each rank. All ranks of the job call it. With check, the results of a call on ones are compared.
func (j *job) time(ctx context.Context, c measured, size int, g collective.Group, check bool) (row figures, err error) {
	elements := max(1, size/j.dtype.Size())
	if c.name == "alltoall" {
		elements = (elements + g.Ranks - 1) / g.Ranks * g.Ranks
	}
	in, err := tensor.New(j.device, j.dtype, c.in(elements, g.Ranks))
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, in.Release()) }()
	out := in
	if n := c.out(elements, g.Ranks); n > 0 {
		if out, err = tensor.New(j.device, j.dtype, n); err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, out.Release()) }()
	}
	call := c.bind(j.manager, in, out, g)
	row = figures{Op: c.name, Bytes: elements * j.dtype.Size(), Ranks: g.Ranks}
	if check {
		right, err := checkOnes(in, out, call, c, g)
		if err != nil {
			return row, err
		}
		row.Right = &right
	}
	barrier, all := opmanager.MustBind(j.manager, collective.Barrier), opmanager.MustBind(j.manager, collective.AllReduce)
	times := make([]float64, j.options.iters)
	for i := range j.options.warmup + j.options.iters {
		if ctx.Err() != nil {
			return row, context.Cause(ctx) // the launcher ends the other ranks
		}
		if err := barrier.Call(collective.BarrierArgs{Group: j.Group}); err != nil {
			return row, err
		}
		begin := time.Now()
		if err := call(); err != nil {
			return row, err
		}
		if i >= j.options.warmup {
			times[i-j.options.warmup] = 1e3 * time.Since(begin).Seconds()
		}
	}
	slowest, err := tensor.FromSlice(times)
	if err != nil {
		return row, err
	}
	if err := all.Call(collective.AllReduceArgs{Input: slowest, Output: slowest, Reduction: collective.Max, Group: j.Group}); err != nil {
		return row, err
	}
	slices.Sort(times)
	row.P50, row.P95, row.Min, row.Max = stats.Percentile(0.5, times), stats.Percentile(0.95, times), times[0], times[len(times)-1]
	row.GBPS = c.share(float64(g.Ranks)) * float64(row.Bytes) / row.P50 / 1e6
	return row, nil
}

// checkOnes reports whether a collective on ones gives ones, or the number of ranks for a sum.
func checkOnes(in, out *tensor.Tensor, call func() error, c measured, g collective.Group) (bool, error) {
	if err := in.SetFloat64s(slices.Repeat([]float64{1}, in.NumElements())); err != nil {
		return false, err
	}
	if err := call(); err != nil {
		return false, err
	}
	want := 1.
	if c.name == "all_reduce" || c.name == "reduce_scatter" {
		want = float64(g.Ranks)
	}
	return !slices.ContainsFunc(out.Float64s(), func(v float64) bool { return v != want }), nil
}

// bytesOf returns the bytes of a size such as 64, 1K or 128M, in powers of 1,024.
func bytesOf(text string) (int, error) {
	number, unit := strings.TrimSpace(text), 1
	for i, letter := range "KMG" {
		if cut, ok := strings.CutSuffix(strings.TrimSuffix(strings.ToUpper(number), "B"), string(letter)); ok {
			number, unit = cut, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.Atoi(strings.TrimSuffix(strings.ToUpper(number), "B"))
	if err != nil || n < 1 || n > maxMessage/unit {
		return 0, fmt.Errorf("given %q, want a size such as 1K or 128M, at most 16G", text)
	}
	return n * unit, nil
}

// maxMessage is the largest message.
const maxMessage = 16 << 30

// newRCCLCommand returns the command for collectives, by the name that Primus has for it.
func newRCCLCommand(prog cli.Program) *cobra.Command {
	var o collectiveOptions
	var names []string
	var sizes, least, most, scale, report string
	var count int
	var check, more bool
	cmd := &cobra.Command{
		Use:     "rccl [OP…]",
		Aliases: []string{"collectives"},
		Short:   "Measure the collectives of the ranks of a job",
		Long: `Measure collectives: ` + strings.Join(collectiveNames(), ", ") + `. The message of each rank
has --sizes, or sizes from --min-bytes to --max-bytes.

` + collectiveHelp,
		Example: `  mpirun -n 2 primus benchmark rccl --op all_reduce --min-bytes 1M --max-bytes 128M
  mpirun -n 4 primus benchmark rccl all_gather reduce_scatter --sizes 64K,1M --check -o json
  primus slurm srun -N 4 -- direct -- benchmark rccl --op all_reduce`,
		ValidArgs: collectiveNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := o.check(cmd)
			if err != nil {
				return err
			}
			if names = append(names, args...); len(names) == 0 {
				names = collectiveNames()[:1]
			}
			var ops []measured
			for _, name := range names {
				c, ok := collectiveNamed(name)
				if !ok {
					return cli.Usagef(cmd, "--op: given %q, want %s%s", name, strings.Join(collectiveNames(), ", "), suggest.Hint(name, collectiveNames()))
				}
				ops = append(ops, c)
			}
			messages, err := messageSizes(sizes, least, most, scale, count)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			return runCollectives(cmd, prog, &o, d, func(ctx context.Context, j *job) error {
				rows := []figures{}
				for _, c := range ops {
					for _, size := range messages {
						row, err := j.time(ctx, c, size, j.Group, check)
						if err != nil {
							return fmt.Errorf("%s of %d bytes: %w", c.name, size, err)
						}
						rows = append(rows, row)
					}
				}
				if j.Rank > 0 {
					return nil
				}
				t := collectiveTable(rows, check)
				if report != "" {
					if err := writeMarkdown(report, more, cmd.CommandPath(), t, nil); err != nil {
						return fmt.Errorf("--output-file: %w", err)
					}
				}
				if o.output == cli.OutputJSON {
					return cli.WriteJSON(prog.Out, rows)
				}
				_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&names, "op", nil, "the collectives; more may follow as arguments (default all_reduce)")
	flags.StringVar(&sizes, "sizes", "", "`SIZES` such as 1K,2K,1M, in place of a range")
	flags.StringVar(&least, "min-bytes", "1K", "the smallest `SIZE`")
	flags.StringVar(&most, "max-bytes", "128M", "the largest `SIZE`")
	flags.StringVar(&scale, "scale", "log2", "log2 doubles the size, linear takes equal steps")
	flags.IntVar(&count, "num-sizes", 12, "`N` sizes, with --scale linear")
	flags.BoolVar(&check, "check", false, "compare a result of each collective")
	flags.StringVar(&report, "output-file", "", "also write the table to `FILE`, as Markdown")
	flags.BoolVar(&more, "append", false, "append to the file of --output-file")
	o.addFlags(cmd, 20, 100)
	return cmd
}

// messageSizes returns the sizes that flags ask for.
func messageSizes(list, least, most, scale string, count int) ([]int, error) {
	var all []int
	if list != "" {
		for text := range strings.SplitSeq(list, ",") {
			n, err := bytesOf(text)
			if err != nil {
				return nil, fmt.Errorf("--sizes: %w", err)
			}
			all = append(all, n)
		}
		return all, nil
	}
	low, err := bytesOf(least)
	if err != nil {
		return nil, fmt.Errorf("--min-bytes: %w", err)
	}
	high, err := bytesOf(most)
	if err != nil {
		return nil, fmt.Errorf("--max-bytes: %w", err)
	}
	switch {
	case low > high:
		return nil, fmt.Errorf("--min-bytes and --max-bytes: given %s and %s, want the smaller size first", least, most)
	case scale == "log2":
		for n := low; n <= high; n *= 2 {
			all = append(all, n)
		}
	case scale != "linear":
		return nil, fmt.Errorf("--scale: given %q, want log2 or linear", scale)
	case count < 1 || count > 10_000:
		return nil, fmt.Errorf("--num-sizes: given %d, want a number from 1 to 10000", count)
	default:
		step := max(1, (high-low)/max(1, count-1))
		for i := range count {
			all = append(all, low+i*step)
		}
	}
	return all, nil
}

// collectiveTable returns the figures as a table.
func collectiveTable(rows []figures, check bool) *plaintext.Table {
	head := table.Row{"op", "bytes", "ranks", "p50 ms", "p95 ms", "min ms", "max ms", "GB/s"}
	if check {
		head = append(head, "result")
	}
	t := plaintext.NewTable(head, 2, 3, 4, 5, 6, 7, 8).Optional("max ms", "min ms")
	for _, r := range rows {
		row := table.Row{r.Op, r.Bytes, r.Ranks, digits(r.P50), digits(r.P95), digits(r.Min), digits(r.Max), nonZero("%.2f", r.GBPS)}
		if r.Right != nil {
			row = append(row, map[bool]string{true: "right", false: "wrong"}[*r.Right])
		}
		t.AppendRow(row)
	}
	return t
}

// newStridedCommand returns the command for all_gather among every n-th rank.
func newStridedCommand(prog cli.Program) *cobra.Command {
	var o collectiveOptions
	var sizes string
	var stride int
	var together bool
	cmd := &cobra.Command{
		Use:   "strided-allgather",
		Short: "Measure all_gather among every n-th rank of a job",
		Long: `Measure all_gather in groups of every --stride-th rank, as data-parallel groups are across
nodes. The groups take turns, or with --parallel call at the same time.

` + collectiveHelp,
		Example: `  mpirun -n 4 primus benchmark strided-allgather --stride 2 --sizes-mb 1,8
  mpirun -n 4 primus benchmark strided-allgather --stride 2 --parallel -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := o.check(cmd)
			if err != nil {
				return err
			}
			var messages []int
			for text := range strings.SplitSeq(sizes, ",") {
				n, err := strconv.Atoi(strings.TrimSpace(text))
				if err != nil || n < 1 || n > maxMessage>>20 {
					return cli.Usagef(cmd, "--sizes-mb: given %q, want numbers from 1 to %d with commas between them", text, maxMessage>>20)
				}
				messages = append(messages, n<<20)
			}
			if stride < 1 {
				return cli.Usagef(cmd, "--stride: given %d, want a number from 1", stride)
			}
			gather, _ := collectiveNamed("all_gather")
			return runCollectives(cmd, prog, &o, d, func(ctx context.Context, j *job) error {
				if j.Ranks%stride != 0 {
					return cli.Usagef(cmd, "--stride: given %d, want a divisor of the %d ranks", stride, j.Ranks)
				}
				own := collective.Group{Rank: j.Rank / stride, Ranks: j.Ranks / stride, First: j.Rank % stride, Stride: stride}
				turns := stride
				if together {
					turns = 1
				}
				rows := []figures{}
				for _, size := range messages {
					for turn := range turns {
						c := gather
						if !together && turn != own.First {
							c.bind = func(*opmanager.Manager, *tensor.Tensor, *tensor.Tensor, collective.Group) func() error {
								return func() error { return nil }
							}
						}
						row, err := j.time(ctx, c, size, own, false)
						if err != nil {
							return err
						}
						row.Op = "all_gather of all groups"
						if !together {
							row.Op = fmt.Sprintf("all_gather of ranks %d, %d, …", turn, turn+stride)
						}
						rows = append(rows, row)
					}
				}
				if j.Rank > 0 {
					return nil
				}
				if o.output == cli.OutputJSON {
					return cli.WriteJSON(prog.Out, rows)
				}
				_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, collectiveTable(rows, false)))
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&sizes, "sizes-mb", "64,128,256", "`SIZES` of the message of a rank in MiB")
	flags.IntVar(&stride, "stride", 8, "groups of every `N`-th rank")
	flags.BoolVar(&together, "parallel", false, "all groups call at the same time")
	o.addFlags(cmd, 10, 50)
	return cmd
}
