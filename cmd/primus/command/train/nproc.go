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
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// endTime is how long ranks have to end by themselves after one has failed.
const endTime = 3 * time.Second

// exitInterrupted is the code with which an interrupted run ends.
const exitInterrupted = 130

// startRanks runs a command line in some processes that train together, and waits for them. What
// they write is written here. The first one that fails ends the others.
func startRanks(ctx context.Context, prog cli.Program, ranks int, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--nproc: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return fmt.Errorf("--nproc: a port at which the ranks meet: %w", err)
	}
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	type end struct {
		rank int
		err  error
	}
	ended := make(chan end, ranks)
	var commands []*exec.Cmd
	for rank := range ranks {
		cmd := exec.CommandContext(running, program, args...)
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = prog.Out, prog.Err, dependent()
		cmd.Env = append(os.Environ(), "RANK="+strconv.Itoa(rank), "WORLD_SIZE="+strconv.Itoa(ranks), "LOCAL_RANK="+strconv.Itoa(rank),
			"LOCAL_WORLD_SIZE="+strconv.Itoa(ranks), "MASTER_ADDR=127.0.0.1", "PRIMUS_MPI_PORT="+strconv.Itoa(port))
		if err := cmd.Start(); err != nil {
			kill()
			return fmt.Errorf("--nproc: start rank %d: %w", rank, err)
		}
		commands = append(commands, cmd)
		go func() { ended <- end{rank, cmd.Wait()} }()
	}
	stop := context.AfterFunc(ctx, func() {
		for _, cmd := range commands {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
	})
	defer stop()
	var first error
	for range commands {
		e := <-ended
		if e.err == nil || first != nil {
			continue
		}
		first = fmt.Errorf("rank %d of %d has failed: %w", e.rank, ranks, e.err)
		if exit, ok := errors.AsType[*exec.ExitError](e.err); ok && exit.ExitCode() == exitInterrupted {
			first = fmt.Errorf("%w: all ranks have ended", backend.ErrInterrupted)
		}
		time.AfterFunc(endTime, kill)
	}
	return first
}

// lineOfRank returns the arguments with which a command trains in its own process.
func lineOfRank(cmd *cobra.Command, overrides []string) []string {
	line := strings.Fields(cmd.CommandPath())[1:]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, repeated := f.Value.(pflag.SliceValue); repeated {
			values = list.GetSlice()
		}
		for _, v := range values {
			line = append(line, "--"+f.Name+"="+v)
		}
	})
	return slices.Concat(line, []string{"--nproc=0"}, overrides) // the last of two values counts
}

// freePort returns a port of this machine at which nobody listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
