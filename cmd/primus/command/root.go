package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/primus-fl/primus/cmd/primus/command/internal/backends"
	"github.com/primus-fl/primus/cmd/primus/command/internal/benchmark"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/config"
	"github.com/primus-fl/primus/cmd/primus/command/internal/data"
	"github.com/primus-fl/primus/cmd/primus/command/internal/devices"
	"github.com/primus-fl/primus/cmd/primus/command/internal/fleet"
	"github.com/primus-fl/primus/cmd/primus/command/internal/models"
	"github.com/primus-fl/primus/cmd/primus/command/internal/modes"
	"github.com/primus-fl/primus/cmd/primus/command/internal/ops"
	"github.com/primus-fl/primus/cmd/primus/command/internal/patches"
	"github.com/primus-fl/primus/cmd/primus/command/internal/plugins"
	"github.com/primus-fl/primus/cmd/primus/command/internal/policy"
	"github.com/primus-fl/primus/cmd/primus/command/internal/preflight"
	"github.com/primus-fl/primus/cmd/primus/command/internal/projection"
	"github.com/primus-fl/primus/cmd/primus/command/internal/runs"
	"github.com/primus-fl/primus/cmd/primus/command/internal/serve"
	"github.com/primus-fl/primus/cmd/primus/command/internal/tokenizer"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// Streams are where a command writes: results to Out, everything else to Err.
type Streams = cli.Streams

// StandardStreams returns the standard output and error of the process. With the variable CI in the
// environment they are no terminal, and with NO_COLOR a terminal has no colours.
func StandardStreams() Streams { return cli.StandardStreams() }

// Main runs the command line and returns the exit code. Options add to the graph that each command
// builds: sources of ops, training backends, patches, devices, file formats and listeners through
// the groups of this package ([OpSources] and the others), or whatever else fx can do, such as
// decorating a value. Some commands start the program again as a child process, so a program must
// call Main before it does anything else.
func Main(args []string, streams Streams, extras ...fx.Option) int {
	ending := cli.NewEnding()
	ctx, stop := interruptible(streams.Err, ending)
	defer stop()
	if streams.In == nil {
		streams.In = os.Stdin
	}
	streams.In = cli.Interruptible(ctx, streams.In, streams.Err)
	root := newRoot(cli.Program{Streams: streams, Extras: extras, Ending: ending})
	root.SetArgs(modes.Reorder(args))
	err := root.ExecuteContext(ctx)
	return exitCode(ctx, err, streams.Err)
}

// exitCode prints an error once and returns the code that stands for it.
func exitCode(ctx context.Context, err error, out io.Writer) int {
	switch {
	case err == nil, errors.Is(err, cli.ErrReported):
	case errors.Is(err, backend.ErrInterrupted):
		fmt.Fprintln(out, "primus:", err)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(out, "primus: interrupted")
	default:
		fmt.Fprintln(out, "primus: error:", plaintext.Lines(err.Error(), "primus: error: "))
	}
	return cli.ExitCode(ctx, err)
}

// NewRoot returns the command line without additions of a program.
func NewRoot(streams Streams) *cobra.Command { return newRoot(cli.Program{Streams: streams}) }

// newRoot returns the command line.
func newRoot(prog cli.Program) *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "primus",
		Short: "Train models whose every compute op is dispatched",
		Long: `primus trains models whose every compute op has many implementations, ranked by
priority and by policy (TE_FL_PREFER, TE_FL_ALLOW_VENDORS, TE_FL_PER_OP, …), and
explains every choice.

Exit codes: 0 done, 1 failure, 2 a wrong command line or variable, 3 a run that hangs
(with --on-hang abort), 130 interrupted; a Python framework that fails ends train with
the code of the first rank that failed. The first SIGINT, SIGTERM or SIGHUP ends a command
in order, within 30 s or --grace, the second one at once.`,
		Example: `  primus train pretrain --config llama_2M-pretrain
  TE_FL_PREFER=vendor primus train pretrain --config exp.yaml train_iters=100 lr=1e-3
  primus config show --config exp.yaml --origin
  primus ops list
  primus ops explain generic_gemm`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if version {
				return nil
			}
			return cli.SubcommandOnly(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				_, err := fmt.Fprintln(prog.Out, buildinfo.Read())
				return err
			}
			return cli.ShowHelp(cmd, args)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return nil
			}
			if cmd.DisableFlagParsing {
				return nil // the command applies them once it has parsed its flags
			}
			return cli.ApplyDefaults(cmd)
		},
	}
	root.SetOut(prog.Out)
	root.SetErr(prog.Err)
	root.SetIn(prog.In)
	// The flag that cobra adds prints a template, which keeps every exported method of the program.
	root.Flags().BoolVarP(&version, "version", "v", false, "version for primus")
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(train.New(prog), train.NewInit(prog), config.New(prog, newRoot), config.NewExamples(prog), config.NewPresets(prog), ops.New(prog), policy.New(prog), plugins.New(prog),
		patches.New(prog), backends.New(prog), devices.New(prog), preflight.New(prog), preflight.NewSmoke(prog), projection.New(prog), benchmark.New(prog), models.NewGenerate(prog), models.NewChat(prog), models.NewEvaluate(prog), models.NewExport(prog), models.NewImport(prog), serve.New(prog), runs.New(prog, newRoot), fleet.New(prog),
		tokenizer.New(prog), data.New(prog),
		newVersionCommand(prog), newManCommand())
	root.AddCommand(modes.New(prog, newRoot)...)
	refineBuiltins(root)
	completePolicies(root, prog)
	return root
}

// refineBuiltins makes the commands help and completion refuse unknown names, as the others do.
func refineBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error { return checkTopic(root, args) }
		case "completion":
			cmd.Args, cmd.RunE = cli.SubcommandOnly, cli.ShowHelp
			cmd.Short = "Generate a completion script for a shell"
		}
	}
}

// checkTopic returns an error unless the words lead to a command.
func checkTopic(cmd *cobra.Command, words []string) error {
	for _, word := range words {
		i := -1
		for k, sub := range cmd.Commands() {
			if sub.Name() == word {
				i = k
			}
		}
		if i < 0 {
			return cli.UnknownCommand(cmd, word)
		}
		cmd = cmd.Commands()[i]
	}
	return nil
}
