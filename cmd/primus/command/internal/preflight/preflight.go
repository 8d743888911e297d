package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// options are the flags of `primus preflight`.
type options struct {
	host, gpu, network, perf bool
	expected                 int
	timeout                  int
	port                     int
	dump, name               string
	output                   cli.ReportFormat
}

// New returns the command `primus preflight`.
func New(prog cli.Program) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check this node, or all nodes of a job, before a run",
		Long: `Check this node before a run: kernel, memory, disks and limits of the process,
accelerators by nvidia-smi, amd-smi or rocm-smi, network interfaces and RDMA ports,
and a matrix product and a copy of memory, which take a second.

Started by torchrun, srun, mpirun or by hand with RANK, WORLD_SIZE and MASTER_ADDR
(or NODE_RANK and NNODES) on every node, the ranks report to rank 0. It prints one
report for all: ranks that are missing, hosts that do not reach each other, and the
ranks that differ from the others.

Exit codes: 0 all ok or warnings, 1 a check failed on this rank or between ranks.`,
		Example: `  primus preflight
  primus preflight --host --network
  srun --ntasks-per-node=1 primus preflight
  RANK=1 WORLD_SIZE=2 MASTER_ADDR=node1 primus preflight -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, prog, o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.host, "host", false, "check the host; without one of --host, --gpu, --network and --perf-test all are checked")
	flags.BoolVar(&o.gpu, "gpu", false, "check the accelerators")
	flags.BoolVar(&o.network, "network", false, "check the network")
	flags.BoolVar(&o.perf, "perf-test", false, "measure a matrix product and a copy of memory")
	flags.IntVar(&o.expected, "expected-gpus", 0, "fail unless the node has `N` accelerators; 0 takes LOCAL_WORLD_SIZE or GPUS_PER_NODE")
	flags.IntVar(&o.timeout, "dist-timeout-sec", 120, "wait `SECONDS` for other ranks")
	flags.IntVar(&o.port, "port", 0, "rank 0 collects at this `PORT`; 0 takes the one after MASTER_PORT")
	flags.StringVar(&o.dump, "dump-path", "", "write the report of rank 0 into `DIR`, too, as Markdown")
	flags.StringVar(&o.name, "report-file-name", "", "`NAME` of that file, without extension; without it preflight-RANKSN-DATE")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "check-host", "check-gpu", "check-network":
			name = name[len("check-"):]
		case "quick": // the name of a short measurement in Primus
			name = "perf-test"
		}
		return pflag.NormalizedName(name)
	})
	cmd.SetFlagErrorFunc(flagError)
	o.output.AddFlag(cmd)
	cli.WithoutVariable(flags, "host", "gpu", "network", "perf-test", "port", "report-file-name")
	return cmd
}

// flagError explains the flags of Primus that have no meaning here.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		switch name := unknown.GetSpecifiedName(); name {
		case "tests", "plot", "comm-sizes-mb", "intra-comm-sizes-mb", "inter-comm-sizes-mb", "intra-group-sizes", "inter-group-sizes", "ring-p2p-sizes-mb", "no-split-nodes-subgroup", "comm-cleanup-delay-sec":
			return cli.Usagef(cmd, "--%s: collectives and accelerators are not measured: want --perf-test, which measures products and copies on the CPUs", name)
		case "disable-pdf":
			return cli.Usagef(cmd, "--%s: reports are Markdown and never PDF: leave it out", name)
		}
	}
	return cli.FlagError(cmd, err)
}

func (o options) groups() []Group {
	var groups []Group
	for group, on := range map[Group]bool{Host: o.host, GPU: o.gpu, Network: o.network, Speed: o.perf} {
		if on {
			groups = append(groups, group)
		}
	}
	if groups == nil {
		return []Group{Host, GPU, Network, Speed}
	}
	return groups
}

func run(cmd *cobra.Command, prog cli.Program, o options) error {
	place, err := FindPlace(os.Getenv)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	if o.port < 0 || o.port > 65535 || o.timeout < 1 || o.expected < 0 {
		return cli.Usagef(cmd, "--port: given %d, --dist-timeout-sec: given %d, --expected-gpus: given %d, want a port, a number >= 1 and a number >= 0", o.port, o.timeout, o.expected)
	}
	if o.port > 0 {
		place.Port = o.port
	}
	limits := DefaultLimits()
	if limits.ExpectedGPUs, err = expectedGPUs(o.expected); err != nil {
		return err
	}
	settings := Settings{Groups: o.groups(), Limits: limits, Machine: This(), Place: place}
	own, err := ownReport(cmd.Context(), prog, settings)
	if err != nil {
		return err
	}
	all := &Gathered{Reports: []*Report{own}}
	if place.World > 1 {
		if all, err = Gather(cmd.Context(), own, place, limits, time.Duration(o.timeout)*time.Second); err != nil {
			return err
		}
	}
	if place.Rank > 0 {
		fmt.Fprintf(prog.Err, "rank %d (%s): %s; the report is that of rank 0\n", own.Rank, own.Host, tally(own.Checks))
		return failure(own.Checks, all.Checks)
	}
	if err := write(prog, o.output, all); err != nil {
		return err
	}
	if err := o.save(prog, all); err != nil {
		return err
	}
	checks := slices.Clone(all.Checks)
	for _, r := range all.Reports {
		checks = append(checks, r.Checks...)
	}
	return failure(checks)
}

// save writes the report into a file, where that is asked for.
func (o options) save(prog cli.Program, all *Gathered) error {
	if o.dump == "" {
		return nil
	}
	if err := os.MkdirAll(o.dump, 0o755); err != nil {
		return durable.Explain(err)
	}
	name := cmp.Or(o.name, fmt.Sprintf("preflight-%dN-%s", len(all.Reports), time.Now().Format("20060102-150405")))
	file := filepath.Join(o.dump, name+".md")
	if err := durable.WriteFile(file, func(w io.Writer) error { return plaintext.WriteSections(w, true, sections(all)) }); err != nil {
		return err
	}
	fmt.Fprintln(prog.Err, "report in", file)
	return nil
}

// expectedGPUs returns the flag, or what the launcher says.
func expectedGPUs(flag int) (int, error) {
	for _, name := range []string{"LOCAL_WORLD_SIZE", "GPUS_PER_NODE"} {
		text := os.Getenv(name)
		if flag > 0 || text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, cli.UsageError{Err: fmt.Errorf("variable %s: given %q, want a number >= 0", name, text)}
		}
		return n, nil
	}
	return flag, nil
}

// failure is the error of a command whose checks have failed, which its report says.
func failure(lists ...[]Check) error {
	for _, checks := range lists {
		if Worst(checks) == Fail {
			return cli.ErrReported
		}
	}
	return nil
}

// ownReport returns the report of this node. The matrix product runs with the impls that training
// uses.
func ownReport(ctx context.Context, prog cli.Program, settings Settings) (*Report, error) {
	if !slices.Contains(settings.Groups, Speed) {
		return Collect(ctx, settings), nil
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	set := graph.Config{Log: log, Policy: (&experiments.TrainingOptions{}).PolicySources(nil), Extras: prog.Extras}
	var manager *opmanager.Manager
	var dev device.Backend
	var report *Report
	err := graph.Run(ctx, func() error {
		settings.Product = func(_ context.Context, size int) (time.Duration, error) { return product(manager, dev, size) }
		report = Collect(ctx, settings)
		return nil
	}, graph.Core(set), fx.Populate(&manager, &dev))
	return report, err
}

// product multiplies two matrices of a size.
func product(manager *opmanager.Manager, dev device.Backend, size int) (took time.Duration, err error) {
	bound, err := opmanager.Bind(manager, gemm.GenericGemm)
	if err != nil {
		return 0, err
	}
	var matrices [3]*tensor.Tensor
	defer func() {
		for _, m := range matrices {
			if m != nil {
				err = errors.Join(err, m.Release())
			}
		}
	}()
	for i := range matrices {
		if matrices[i], err = tensor.New(dev, tensor.F32, size, size); err != nil {
			return 0, err
		}
	}
	started := time.Now()
	err = bound.Call(gemm.GenericGemmArgs{A: matrices[0], B: matrices[1], D: matrices[2]})
	return time.Since(started), err
}

// result is what -o json prints.
type result struct {
	Status Status `json:"status"`
	*Gathered
}

func write(prog cli.Program, format cli.ReportFormat, all *Gathered) error {
	if format.OutputFormat == cli.OutputJSON {
		checks := slices.Clone(all.Checks)
		for _, r := range all.Reports {
			checks = append(checks, r.Checks...)
		}
		if all.Checks == nil {
			all.Checks = []Check{}
		}
		return cli.WriteJSON(prog.Out, result{Worst(checks), all})
	}
	return plaintext.WriteSections(prog.Out, format.OutputFormat == cli.OutputMarkdown, sections(all))
}

// sections are the checks of a single node, or those of all ranks with what is not ok on each.
func sections(all *Gathered) []plaintext.Section {
	if len(all.Checks) == 0 {
		own := all.Reports[0]
		return []plaintext.Section{
			{Title: own.Host, Header: checkHeader, Rows: checkRows(own.Checks)},
			{Lines: []string{tally(own.Checks)}},
		}
	}
	ranks := plaintext.Section{Title: "ranks", Header: table.Row{"rank", "host", "result"}, Right: []int{1}}
	details := plaintext.Section{Title: "what is not ok", Header: append(table.Row{"host", "ranks"}, checkHeader...), Rows: detailRows(all.Reports)}
	everything := slices.Clone(all.Checks)
	for _, r := range all.Reports {
		ranks.Rows = append(ranks.Rows, table.Row{r.Rank, r.Host, tally(r.Checks)})
		everything = append(everything, r.Checks...)
	}
	list := []plaintext.Section{{Title: "between ranks", Header: checkHeader, Rows: checkRows(all.Checks)}, ranks}
	if len(details.Rows) > 0 {
		list = append(list, details)
	}
	return append(list, plaintext.Section{Lines: []string{tally(everything)}})
}

// detailRows returns the checks that are not ok, once for the ranks of a host that agree.
func detailRows(reports []*Report) []table.Row {
	type key struct {
		host  string
		check Check
	}
	ranks := map[key][]string{}
	var order []key
	for _, r := range reports {
		for _, c := range r.Checks {
			k := key{r.Host, c}
			if c.Status == OK {
				continue
			}
			if ranks[k] == nil {
				order = append(order, k)
			}
			ranks[k] = append(ranks[k], strconv.Itoa(r.Rank))
		}
	}
	var rows []table.Row
	for _, k := range order {
		rows = append(rows, append(table.Row{k.host, strings.Join(ranks[k], ",")}, checkRow(k.check)...))
	}
	return rows
}

var checkHeader = table.Row{"about", "check", "status", "value", "what to do"}

// checkRows returns a row for each check.
func checkRows(checks []Check) []table.Row {
	var rows []table.Row
	for _, c := range checks {
		rows = append(rows, checkRow(c))
	}
	return rows
}

func checkRow(c Check) table.Row {
	return table.Row{c.Group, c.Name, c.Status, c.Value, c.Advice}
}

// tally counts the outcomes of checks.
func tally(checks []Check) string {
	count := map[Status]int{}
	for _, c := range checks {
		count[c.Status]++
	}
	return fmt.Sprintf("%d ok, %s, %s", count[OK], plaintext.Quantity(count[Warn], "warning", "warnings"), plaintext.Quantity(count[Fail], "failure", "failures"))
}
