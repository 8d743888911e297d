package experiments

import (
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// launchOptions are the flags about how the processes of a framework are started that is not
// compiled in, and about where primus itself runs.
type launchOptions struct {
	Launch          launch.Options
	LauncherFile    string
	LauncherOptions []string
	Rendezvous      time.Duration // how long the ranks of a job wait for each other at its start
	onHang          string
}

// The values of --on-hang.
const (
	hangWarns  = "warn"
	hangAborts = "abort"
)

// CheckWaits returns the first mistake in the flags about waiting for ranks, and about runs that
// hang.
func (l *launchOptions) CheckWaits(cmd *cobra.Command) error {
	if l.Rendezvous <= 0 {
		return cli.Usagef(cmd, "--rendezvous-timeout: given %v, want %s, above 0", l.Rendezvous, cli.Wants(cmd.Flags().Lookup("rendezvous-timeout")))
	}
	if l.Launch.Hang < 0 {
		return cli.Usagef(cmd, "--hang-timeout: given %v, want %s", l.Launch.Hang, cli.Wants(cmd.Flags().Lookup("hang-timeout")))
	}
	if l.onHang != hangWarns && l.onHang != hangAborts {
		return cli.Usagef(cmd, "--on-hang: given %q, want %s or %s", l.onHang, hangWarns, hangAborts)
	}
	l.Launch.HangEnds = l.onHang == hangAborts
	return nil
}

// addFlags gives a command the flags of the launcher.
func (l *launchOptions) addFlags(flags *pflag.FlagSet) {
	o := &l.Launch
	flags.StringVar(&o.Launcher, "launcher", "", "start the run with `NAME`: "+strings.Join(launch.Launchers(), ", ")+", or several separated by commas, such as slurm,container")
	flags.StringVar(&l.LauncherFile, "launcher-file", "", "read settings of launchers from `FILE`, over those of ~/.primus.yaml")
	flags.StringArrayVar(&l.LauncherOptions, "launcher-option", nil, "a setting of a launcher as `KEY=VALUE`, such as slurm.partition=gpu; may be repeated")
	cli.WithoutVariable(flags, "launcher-option")
	flags.IntVar(&o.Nodes, "nodes", 0, "`N` nodes run the job; 0 takes NNODES or what Slurm says, else 1")
	flags.IntVar(&o.NodeRank, "node-rank", 0, "this is node `N`, from 0; 0 takes NODE_RANK or what Slurm says")
	flags.IntVar(&o.PerNode, "nproc-per-node", 0, "`N` processes on each node, one for each device; 0 takes GPUS_PER_NODE, else 8")
	flags.StringVar(&o.MasterAddr, "master-addr", "", "`HOST` of node 0; MASTER_ADDR, else localhost")
	flags.IntVar(&o.MasterPort, "master-port", 0, "`PORT` at which ranks meet; 0 takes MASTER_PORT, else 1234")
	flags.StringVar(&o.Python, "python", "python3", "`PROGRAM` that runs Python frameworks")
	flags.StringVar(&o.Ranks, "ranks", "0,last", "show the output of these `RANKS`: all, none, or numbers and last separated by commas; files have all of it")
	flags.DurationVar(&o.Hang, "hang-timeout", 10*time.Minute, "a run hangs when a phase of it has lasted for `TIME`, and ten times as long as usual, or when no process of a framework has written a line for so long; 0 is never")
	flags.DurationVar(&l.Rendezvous, "rendezvous-timeout", 10*time.Minute, "a job whose ranks have not met within `TIME` of its start ends with an error; from the fifth second on the log says who has not come")
	flags.StringVar(&l.onHang, "on-hang", hangWarns, "what follows when a run hangs: `warn`, or abort, which ends it with exit code 3 after --grace")
	flags.StringVar(&o.HangCommand, "hang-command", "", "run the shell `COMMAND` when the processes of a framework hang; PRIMUS_RANK_PIDS lists those of the ranks")
}
