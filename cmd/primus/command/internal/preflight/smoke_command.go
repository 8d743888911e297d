package preflight

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// smokeOptions are the flags of `primus node-smoke`, with the names that Primus gives them.
type smokeOptions struct {
	dump                                       string
	expectedGPUs, expectedRDMA, expectedNodes  int
	rdma, allowed, tools, nodeList             string
	lockedGB, shmGB, busyGiB, busyPercent      float64
	timeoutSec, warnSec, skewSec, gemm, memory float64
	dmesgMinutes, waitSec                      int
	perf, skipDmesg, foreign, keep             bool
}

// NewSmoke returns the command `primus node-smoke`.
func NewSmoke(prog cli.Program) *cobra.Command {
	var o smokeOptions
	cmd := &cobra.Command{
		Use:     "node-smoke",
		Aliases: []string{"node_smoke"},
		Short:   "Judge every node of a job, and list those that pass",
		Long: `Check this node and write its verdict to DUMP/smoke/HOST.json. Nodes do not talk to each
other, so that one that hangs does not hold up the others; DUMP is a directory that all
of them share.

The node with NODE_RANK 0 (or SLURM_NODEID 0, or neither) then waits for the verdicts of
all nodes and writes DUMP/smoke_report.md, passing_nodes.txt and failing_nodes.txt,
which srun takes as --nodelist and --exclude. A node that has not written its verdict in
time fails.

Products and copies (--tier2-perf) are measured on the CPUs; accelerators are checked
by the tools of their vendors.

Exit codes: 0 the node passed, and on the first node all passed; 1 otherwise.`,
		Example: `  primus node-smoke
  srun --ntasks-per-node=1 primus node-smoke --expected-gpus 8 --expected-rdma-nics 8
  primus node-smoke --allow-foreign-procs --skip-dmesg --dump-path /shared/smoke`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return smoke(cmd, prog, o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *smokeOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.dump, "dump-path", "output/preflight", "write verdicts and lists into `DIR`, which all nodes share")
	flags.IntVar(&o.expectedGPUs, "expected-gpus", 0, "fail unless the node has `N` accelerators; 0 takes LOCAL_WORLD_SIZE or GPUS_PER_NODE")
	flags.IntVar(&o.expectedRDMA, "expected-rdma-nics", 0, "fail unless `N` RDMA ports are active; 0 is any number")
	flags.StringVar(&o.rdma, "rdma-nic-allowlist", "", "the RDMA `PORTS` that count, in the syntax of NCCL_IB_HCA, which stands in for it")
	flags.Float64Var(&o.lockedGB, "ulimit-l-min-gb", 32, "fail when less than `GiB` of memory may be locked")
	flags.Float64Var(&o.shmGB, "shm-min-gb", 8, "fail when /dev/shm has less than `GiB`")
	flags.Float64Var(&o.timeoutSec, "rocm-smi-timeout-sec", 5, "fail when the tool of a vendor takes more than `SECONDS`")
	flags.Float64Var(&o.warnSec, "rocm-smi-warn-sec", 1, "warn when it takes more than `SECONDS`")
	flags.Float64Var(&o.busyGiB, "hbm-busy-threshold-gib", 2, "warn when more than `GiB` of an accelerator are in use")
	flags.Float64Var(&o.busyPercent, "gpu-activity-warn-pct", 20, "warn when an accelerator is busier than `PERCENT`")
	flags.BoolVar(&o.foreign, "allow-foreign-procs", false, "processes of others on an accelerator are a warning, not a failure")
	flags.StringVar(&o.allowed, "allowed-procs", "gpuagent,rocm-smi-daemon,amd-smi,dcgm-exporter", "`NAMES` of processes that may hold an accelerator, separated by commas")
	flags.StringVar(&o.tools, "require-tools", "", "fail unless these `TOOLS` are on PATH, separated by commas")
	flags.BoolVar(&o.skipDmesg, "skip-dmesg", false, "do not read the kernel log")
	flags.IntVar(&o.dmesgMinutes, "dmesg-minutes", 15, "look for alarming lines of the last `MINUTES` in the kernel log")
	flags.BoolVar(&o.perf, "tier2-perf", false, "measure a matrix product and a copy of memory")
	flags.Float64Var(&o.gemm, "gemm-tflops-min", 0, "fail when the product is slower than `TFLOP/s`; 0 is any speed")
	flags.Float64Var(&o.memory, "hbm-gbs-min", 0, "fail when the copy is slower than `GB/s`; 0 is any speed")
	flags.BoolVar(&o.keep, "no-clean-dump-path", false, "keep the verdicts of an earlier run, which then count")
	flags.IntVar(&o.expectedNodes, "expected-nodes", 0, "wait for the verdicts of `N` nodes; 0 takes SLURM_NNODES, SLURM_JOB_NUM_NODES or NNODES")
	flags.StringVar(&o.nodeList, "expected-nodelist-file", "", "wait for the nodes that `FILE` names, one per line; without it those of SLURM_JOB_NODELIST")
	flags.IntVar(&o.waitSec, "wait-timeout-sec", 60, "wait `SECONDS` for the verdicts of other nodes")
	flags.Float64Var(&o.skewSec, "clock-skew-warn-sec", 30, "warn when verdicts are written `SECONDS` apart")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
}

func (o smokeOptions) limits() (Limits, error) {
	const gib = 1 << 30
	expected, err := expectedGPUs(o.expectedGPUs)
	if err != nil {
		return Limits{}, err
	}
	l := DefaultLimits()
	l.Strict, l.ExpectedGPUs, l.ExpectedRDMA, l.RDMAPorts = true, expected, o.expectedRDMA, o.rdma
	l.LockedMemory, l.SharedMemory, l.BusyMemory, l.BusyPercent = o.lockedGB*gib, o.shmGB*gib, o.busyGiB*gib, o.busyPercent
	l.AllowForeign, l.AllowedNames, l.RequiredTools = o.foreign, words(o.allowed), words(o.tools)
	l.ToolTimeout, l.SlowTool, l.ClockSkew = seconds(o.timeoutSec), seconds(o.warnSec), seconds(o.skewSec)
	l.ProductTFLOPS, l.CopyGBPerSecond = o.gemm, o.memory
	if !o.skipDmesg {
		l.KernelLog = time.Duration(o.dmesgMinutes) * time.Minute
	}
	return l, nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func smoke(cmd *cobra.Command, prog cli.Program, o smokeOptions) error {
	if o.dump == "" || o.waitSec < 0 || o.expectedNodes < 0 || o.timeoutSec <= 0 {
		return cli.Usagef(cmd, "--dump-path: given %q, --wait-timeout-sec: given %d, --expected-nodes: given %d, --rocm-smi-timeout-sec: given %v, want a directory and numbers that are not negative", o.dump, o.waitSec, o.expectedNodes, o.timeoutSec)
	}
	limits, err := o.limits()
	if err != nil {
		return err
	}
	rank, err := nodeRank()
	if err != nil {
		return err
	}
	wait := time.Duration(o.waitSec) * time.Second
	if rank == 0 && !o.keep {
		if err := RemoveStale(o.dump, wait); err != nil {
			return err
		}
	}
	settings := Settings{
		Groups: []Group{Host, GPU, Network}, Limits: limits, Machine: This(), Place: Place{World: 1},
	}
	if o.perf {
		settings.Groups = append(settings.Groups, Speed)
	}
	report, err := ownReport(cmd.Context(), prog, settings)
	if err != nil {
		return err
	}
	node := Judge(report, rank)
	if err := WriteNode(o.dump, node); err != nil {
		return err
	}
	if rank > 0 {
		return verdict(prog.Out, node)
	}
	return aggregate(cmd.Context(), prog, o, limits, wait)
}

// nodeRank is the place of this node among those of the job.
func nodeRank() (int, error) {
	for _, name := range []string{"NODE_RANK", "SLURM_NODEID"} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return 0, cli.UsageError{Err: fmt.Errorf("variable %s: given %q, want a number >= 0", name, text)}
			}
			return n, nil
		}
	}
	return 0, nil
}

// verdict prints what is said of a node.
func verdict(out io.Writer, n Node) error {
	text := n.Host + ": " + n.Status + "\n"
	for _, reason := range n.FailReasons {
		text += "  " + reason + "\n"
	}
	if _, err := io.WriteString(out, plaintext.Lines(text, "")); err != nil {
		return err
	}
	if n.Passed() {
		return nil
	}
	return cli.ErrReported
}

// aggregate waits for the verdicts of all nodes and writes report and lists.
func aggregate(ctx context.Context, prog cli.Program, o smokeOptions, l Limits, wait time.Duration) error {
	want, err := o.expected(ctx)
	if err != nil {
		return err
	}
	nodes, err := WaitForNodes(ctx, o.dump, want, wait)
	if err != nil {
		return err
	}
	if err := WriteLists(o.dump, nodes, want); err != nil {
		return err
	}
	sections := smokeSections(nodes, Drift(nodes, l))
	report := filepath.Join(o.dump, ReportFile)
	err = durable.WriteFile(report, func(w io.Writer) error { return plaintext.WriteSections(w, true, sections) })
	if err != nil {
		return err
	}
	if err := plaintext.WriteSections(prog.Out, false, append(sections, plaintext.Section{Lines: []string{"report in " + report}})); err != nil {
		return err
	}
	for _, n := range nodes {
		if !n.Passed() {
			return cli.ErrReported
		}
	}
	return nil
}

// maxNodeList bounds a file that lists hosts.
const maxNodeList = 16 << 20

// expected returns the nodes of the job.
func (o smokeOptions) expected(ctx context.Context) (Expected, error) {
	want := Expected{Count: o.expectedNodes}
	for _, name := range []string{"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "NNODES"} {
		if text := os.Getenv(name); text != "" && want.Count == 0 {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return want, cli.UsageError{Err: fmt.Errorf("variable %s: given %q, want a number >= 1", name, text)}
			}
			want.Count = n
		}
	}
	var text []byte
	if o.nodeList != "" {
		var err error
		if text, err = durable.ReadRegular(o.nodeList, maxNodeList); err != nil {
			return want, cli.UsageError{Err: fmt.Errorf("--expected-nodelist-file: %w", durable.Explain(err))}
		}
	} else if list := os.Getenv("SLURM_JOB_NODELIST"); list != "" {
		text, _ = exec.CommandContext(ctx, "scontrol", "show", "hostnames", list).Output() // without it the number counts
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if host := strings.TrimSpace(lines.Text()); host != "" {
			short, _, _ := strings.Cut(host, ".")
			want.Hosts = append(want.Hosts, short)
		}
	}
	return want, nil
}

func smokeSections(nodes []Node, drift []Check) []plaintext.Section {
	passed := 0
	s := plaintext.Section{Title: "nodes", Header: table.Row{"node", "rank", "verdict", "why"}, Right: []int{2}}
	for _, n := range nodes {
		host, rank := n.Host, fmt.Sprint(n.NodeRank)
		if n.Passed() {
			passed++
		}
		if n.NodeRank < 0 {
			rank = "-"
		}
		reasons := n.FailReasons
		if len(reasons) == 0 {
			reasons = []string{""}
		}
		for i, reason := range reasons {
			if i == 0 {
				s.Rows = append(s.Rows, table.Row{plaintext.Dash(host), rank, n.Status, reason})
			} else {
				s.Rows = append(s.Rows, table.Row{"", "", "", reason})
			}
		}
	}
	s.Lines = []string{fmt.Sprintf("%d of %d passed", passed, len(nodes))}
	list := []plaintext.Section{s}
	if len(drift) > 0 {
		list = append(list, plaintext.Section{Title: "differences between nodes", Header: checkHeader, Rows: checkRows(drift)})
	}
	warnings := plaintext.Section{Title: "warnings", Header: append(table.Row{"node"}, checkHeader...)}
	for _, n := range nodes {
		if n.Report == nil {
			continue
		}
		for _, c := range n.Report.Checks {
			if c.Status == Warn {
				warnings.Rows = append(warnings.Rows, append(table.Row{n.Host}, checkRow(c)...))
			}
		}
	}
	if len(warnings.Rows) > 0 {
		list = append(list, warnings)
	}
	return list
}
