package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/spf13/cobra"
)

// logEvery is how often a log is asked for what is new.
const logEvery = time.Second

func newFleetLogsCommand(prog cli.Program) *cobra.Command {
	var opts service.FleetFlags
	var patience time.Duration
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print the end of the log of a run",
		Long: `Print the end of the log of a run: what it wrote to train.log, of which the process keeps
64 KiB. RUN is the id of a process, as primus fleet list -o json shows it, or what
primus fleet list shows of a run of one rank. --follow prints further lines as they
come, until interrupted or until the run has ended.

A run that has ended or is lost cannot answer; the error says where its log is.`,
		Example: `  primus fleet logs exp-0-1f6c08d2 --fleet 10.0.0.1:2379
  primus fleet logs exp-0-1f6c08d2 --lines 20 --follow`,
		Args: cli.Arguments(1, "runs", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lines < 1 {
				return cli.Usagef(cmd, "--lines: given %d, want 1 or more", lines)
			}
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				return printLog(ctx, prog, c, fleet.LogQuestion{Run: args[0], Lines: lines}, patience, follow)
			})
		},
	}
	opts.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&patience, "patience", fleetPatience, "wait this long for the run, a `TIME` such as 10s")
	cmd.Flags().IntVar(&lines, "lines", 100, "print the last `N` lines")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print further lines as they come")
	for _, name := range []string{"lines", "follow"} {
		cli.WithoutVariable(cmd.Flags(), name)
	}
	return cmd
}

func printLog(ctx context.Context, prog cli.Program, c *fleet.Client, q fleet.LogQuestion, patience time.Duration, follow bool) error {
	for {
		part, err := c.Log(ctx, q, patience)
		if ctx.Err() != nil {
			return nil
		}
		if gone, ok := errors.AsType[*fleet.GoneError](err); ok && q.After > 0 {
			_, err := fmt.Fprintf(prog.Err, "run %s is %s\n", gone.Run, gone.Status)
			return err
		}
		if err != nil {
			return err
		}
		for _, line := range part.Lines {
			if _, err := fmt.Fprintln(prog.Out, line); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		q.After = max(1, part.Next)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(logEvery):
		}
	}
}
