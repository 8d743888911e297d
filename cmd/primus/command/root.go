package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"go.uber.org/dig"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// Streams are where a command writes.
type Streams struct{ Out, Err io.Writer }

// usageError marks a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Main runs the command line and returns the exit code.
func Main(args []string, streams Streams) int {
	ctx, stop := interruptible(streams.Err)
	defer stop()
	root := NewRoot(streams)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx), streams.Err)
}

// interruptible returns a context that ends with the first interrupt; the second one ends the process.
func interruptible(out io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var once atomic.Bool
	go func() {
		for range signals {
			if once.Swap(true) {
				os.Exit(exitInterrupted)
			}
			fmt.Fprintln(out, "\nprimus: interrupted: the step in hand is finished and saved; interrupt again to exit at once")
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// exitCode prints an error once and returns the code that stands for it.
func exitCode(err error, out io.Writer) int {
	if err == nil {
		return exitOK
	}
	err = dig.RootCause(err)
	if errors.Is(err, backend.ErrInterrupted) {
		fmt.Fprintln(out, "primus:", err)
		return exitInterrupted
	}
	fmt.Fprintln(out, "primus: error:", strings.ReplaceAll(err.Error(), "\n", "\nprimus: error: "))
	var usage usageError
	if errors.As(err, &usage) || errors.Is(err, config.ErrUsage) {
		return exitUsage
	}
	return exitFailure
}

// NewRoot returns the command line.
func NewRoot(streams Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "primus",
		Short: "Train models whose every compute op is dispatched",
		Long: `primus trains models whose every compute op has many implementations, ranked by
priority and by policy (TE_FL_PREFER, TE_FL_ALLOW_VENDORS, TE_FL_PER_OP, …), and
explains every choice.`,
		Example: `  primus train pretrain --config examples/native/configs/llama_2M-pretrain.yaml
  TE_FL_PREFER=vendor primus train pretrain --config exp.yaml train_iters=100 lr=1e-3
  primus ops list`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newTrainCommand(streams), newOpsCommand(streams), newVersionCommand(streams))
	for _, c := range root.Commands() {
		usageArgs(c)
	}
	usageArgs(root)
	return root
}

// usageArgs makes faults that argument validators find usage errors.
func usageArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		usageArgs(sub)
	}
	validate := cmd.Args
	if validate == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := validate(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}
