package modes

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/spf13/cobra"
)

// NewRoot makes the command line of a program anew.
type NewRoot func(cli.Program) *cobra.Command

const optionsOfAll = `
--config FILE reads launcher settings from FILE, over those of ~/.primus.yaml. --dry-run
prints what would be done and does none of it, and --debug logs more
(PRIMUS_LOG_LEVEL=DEBUG). These three may also stand before the mode.`

// New returns the commands that say where another command runs.
func New(prog cli.Program, newRoot NewRoot) []*cobra.Command {
	return []*cobra.Command{
		newMode(prog, newRoot, &cobra.Command{
			Use:   direct + " [options] -- COMMAND",
			Short: "Run a command on this node, as primus-cli does",
			Long: `Run a command of primus on this node, with the options of primus-cli direct:

--env NAME=VALUE sets a variable, and --env FILE those that a file of shell assignments
sets. --patch SCRIPT runs a script of bash before the command; it may set variables
(env.NAME=VALUE) and add arguments (extra.NAME=VALUE) by lines that it prints, and exit
with 2 to do nothing. --log_file FILE keeps all output in FILE. --silent prints none of
it, but for the error that ends the command. --single starts a Python framework in one
process.
` + optionsOfAll,
			Example: `  primus direct -- train pretrain --config exp.yaml
  primus direct --env NNODES=2 --env NODE_RANK=1 --env MASTER_ADDR=node0 -- train pretrain --config exp.yaml
  primus --dry-run direct -- benchmark gemm --M 4096 --N 4096 --K 4096
  primus direct --silent --log_file smoke.log -- node_smoke --tier2-perf`,
		}),
		newMode(prog, newRoot, &cobra.Command{
			Use:   container + " [options] -- COMMAND",
			Short: "Run a command in a container, as primus-cli does",
			Long: `Run a command of primus in a container of docker or podman, which mounts the working
directory and this program. All options of docker run are taken: --image, --volume,
--device, --memory and so on. --env NAME=VALUE and NAME set variables in the container,
and options of direct may follow after --. train becomes train --launcher container,
which checks the experiment before the container starts.
` + optionsOfAll,
			Example: `  primus container --image rocm/primus:v26.5 -- train pretrain --config exp.yaml
  primus container --volume /data:/data --memory 256G -- train pretrain --config /data/exp.yaml
  primus --dry-run container -- preflight --host`,
		}),
		newMode(prog, newRoot, &cobra.Command{
			Use:   slurm + " [srun|sbatch] [options] -- [container|direct] COMMAND",
			Short: "Run a command on the nodes of a Slurm job, as primus-cli does",
			Long: `Run a command of primus once on each node of a Slurm job, with the options of srun, which
is the default, or sbatch. After -- the command runs in a container unless direct is
given; each mode has its own options, and -- before what follows. train becomes train
--launcher slurm,container or slurm, which checks the experiment before the job starts.
` + optionsOfAll,
			Example: `  primus slurm srun -N 4 -p gpu -- train pretrain --config exp.yaml
  primus slurm sbatch -N 8 -t 8:00:00 -o train.log -- direct -- train pretrain --config exp.yaml
  primus slurm srun -N 4 -- container --image rocm/primus:v26.5 -- preflight --network
  primus slurm srun -N 4 -- direct -- node_smoke --tier2-perf`,
		}),
		newDeps(),
	}
}

// newMode completes the command of a mode, which reads its words itself.
func newMode(prog cli.Program, newRoot NewRoot, cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagParsing, cmd.DisableFlagsInUseLine = true, true
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if asksForHelp(words) {
			return cmd.Help()
		}
		l, err := parse(cmd.Name(), words)
		if err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		return l.run(cmd, prog, newRoot)
	}
	return cmd
}

// asksForHelp reports whether the words of a mode ask for help about it, before any --.
func asksForHelp(words []string) bool {
	for _, word := range words {
		if word == "--" {
			return false
		}
		if word == "-h" || word == "--help" {
			return true
		}
	}
	return len(words) == 0
}

// deps is a mode of Primus that gets the sources of frameworks.
const deps = "deps"

func newDeps() *cobra.Command {
	return &cobra.Command{
		Use: deps, Hidden: true, DisableFlagParsing: true,
		Short: "Say how to get the sources of a framework",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Usagef(cmd.Root(), "%s: primus downloads no framework; clone it into ~/.cache/Primus/third_party/NAME, or name its folder with --backend-path", deps)
		},
	}
}
