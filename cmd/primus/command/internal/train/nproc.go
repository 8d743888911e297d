package train

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/isa"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/procgroup"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// members says which member of a job this process is, as it starts ranks. It returns false when the
// process trains itself.
func (o *Options) members(module *config.Module) (elastic.Settings, bool, error) {
	s := elastic.Settings{Members: 1, Slots: max(1, int(o.ranks)), MaxRestarts: int(o.restarts), Patience: o.run.Rendezvous, Secret: os.Getenv("PRIMUS_JOB_SECRET")}
	nodes, _ := strconv.Atoi(os.Getenv("NNODES")) // a wrong value is reported by Resolve
	_, isRank := os.LookupEnv("WORLD_SIZE")
	several := o.nodes > 1 || nodes > 1 && !isRank && o.ranks > 0
	switch {
	case module.Framework != native.Framework:
		for flag, given := range map[string]uint{"nproc": o.ranks, "max-restarts": o.restarts} {
			if given > 0 {
				return s, false, cli.UsageError{Err: fmt.Errorf("--%s: given %d, but the processes of framework %s are started with --nproc-per-node", flag, given, module.Framework)}
			}
		}
		return s, false, nil
	case several:
		resolved, err := o.run.Launch.Resolve(os.LookupEnv)
		if err != nil {
			return s, false, cli.UsageError{Err: err}
		}
		s.Member, s.Members = resolved.NodeRank, resolved.Nodes
		s.Address = address(resolved.MasterAddr, strconv.Itoa(resolved.MasterPort))
		return s, true, nil
	case o.ranks > 0:
		return s, true, nil
	case o.restarts == 0:
		return s, false, nil
	}
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil || d.WorldSize == 1 {
		return s, true, err
	}
	if !isRank {
		return s, false, cli.UsageError{Err: errors.New("--max-restarts: mpirun, mpiexec and srun --mpi end all ranks, and themselves, when one fails: start the ranks with --nproc, with srun --mpi=none or with the variables of torchrun, or start the same command again, which goes on from the last checkpoint")}
	}
	s.Member, s.Members = d.Rank, d.WorldSize
	s.Address = address(d.MasterAddr, os.Getenv("MASTER_PORT"))
	return s, true, nil
}

// address is where member 0 of several listens: at a port of its own, or after that of torchrun.
func address(host, masterPort string) string {
	port := os.Getenv("PRIMUS_MPI_PORT")
	if n, err := strconv.Atoi(masterPort); err == nil && port == "" {
		port = strconv.Itoa(n + 1)
	}
	return net.JoinHostPort(host, port)
}

// rankText says which ranks this process would start.
func rankText(s elastic.Settings) string {
	text := plaintext.Quantity(s.Slots, "process", "processes") + " of this machine"
	if s.Members > 1 {
		text += fmt.Sprintf(", which is node %d of %d", s.Member, s.Members)
	}
	if s.MaxRestarts > 0 {
		text += fmt.Sprintf("; started again after a failure, %s at most", plaintext.Quantity(s.MaxRestarts, "time", "times"))
	}
	return text
}

// startRanks runs a command line in processes that train together, and again after a failure. What
// they write is written here.
func startRanks(ctx context.Context, prog cli.Program, s elastic.Settings, module *config.Module, line []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the file of primus: %w", err)
	}
	host := "127.0.0.1"
	if s.Members > 1 {
		if host, _, err = net.SplitHostPort(s.Address); err != nil {
			return fmt.Errorf("the address of node 0: %w", err)
		}
	}
	fits, err := native.Fits(module)
	if err != nil {
		return err
	}
	if s.Members == 1 { // each rank would say the same
		if err := fits(s.Slots); err != nil {
			return err
		}
	}
	instructions, err := graph.InstructionSet(module)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	s.Port = launch.FreePort
	s.Fit = func(n int) int { return fitting(n, fits) }
	s.Log = func(text string) { fmt.Fprintln(prog.Err, "primus:", plaintext.Lines(text, "primus: ")) }
	s.Command = func(p elastic.Place) *exec.Cmd {
		cmd := exec.Command(program, line...)
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = cli.Inherited(prog.Out), prog.Err, procgroup.Attr(0, syscall.SIGKILL)
		cmd.Env = os.Environ()
		set := func(name, value string) { cmd.Env = append(cmd.Env, name+"="+value) }
		set("RANK", strconv.Itoa(p.Rank))
		set("WORLD_SIZE", strconv.Itoa(p.Ranks))
		if s.Slots > 1 || s.Members == 1 || os.Getenv("LOCAL_WORLD_SIZE") == "" {
			set("LOCAL_RANK", strconv.Itoa(p.Local))
			set("LOCAL_WORLD_SIZE", strconv.Itoa(p.Locals))
		}
		set("MASTER_ADDR", host)
		set("PRIMUS_MPI_PORT", strconv.Itoa(p.Port))
		set(elastic.EnvErrorFile, p.ErrorFile)
		set(elastic.EnvPrints, "1")
		set(isa.Env, instructions.Name) // one measurement decides for all
		if p.MaxRestarts > 0 {
			set(elastic.EnvRestarts, strconv.Itoa(p.Restarts))
			set(elastic.EnvMaxRestarts, strconv.Itoa(p.MaxRestarts))
			set(elastic.EnvReason, p.Reason)
		}
		return cmd
	}
	err = elastic.Run(ctx, s)
	if errors.Is(err, elastic.ErrInterrupted) {
		return fmt.Errorf("%w: all ranks have ended", backend.ErrInterrupted)
	}
	if failed, ok := errors.AsType[*elastic.Failure](err); ok && failed.Usage {
		return cli.UsageError{Err: err}
	}
	return err
}

// fitting returns the largest number of ranks up to n that can train together, 0 for none.
func fitting(n int, fits func(ranks int) error) int {
	for ; n > 0 && fits(n) != nil; n-- {
	}
	return n
}

// lineOfRank returns the arguments with which a command trains in its own process.
func lineOfRank(cmd *cobra.Command, overrides []string) []string {
	line := strings.Fields(cmd.CommandPath())[1:]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "time" { // of a text, for which there is an experiment by now
			return
		}
		values := []string{f.Value.String()}
		if list, repeated := f.Value.(pflag.SliceValue); repeated {
			values = list.GetSlice()
		}
		for _, v := range values {
			line = append(line, "--"+f.Name+"="+v)
		}
	})
	return slices.Concat(line, []string{"--nproc=0", "--max-restarts=0", "--nodes=1"}, overrides) // the last of two values counts
}
