// Package runs is the commands that look at finished and present training runs.
package runs

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/spf13/cobra"
)

// New returns the command `primus runs`. newRoot returns the whole command line.
func New(prog cli.Program, newRoot func(cli.Program) *cobra.Command) *cobra.Command {
	cmd := cli.Group("runs", "List, compare and plot the runs of a workspace",
		newListCommand(prog), newCheckpointsCommand(prog), newCompareCommand(prog), newPlotCommand(prog), newRedoCommand(prog, newRoot),
	)
	cmd.Long = `List, compare and plot the runs of a workspace, from the files that they leave.

A run is named by its path below the workspace, such as local/local/llama_2M, or by the
last parts of that path if they belong to no other run, such as llama_2M.`
	return cmd
}

// workspace is the flag --workspace.
type workspace struct{ dir string }

func (w *workspace) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.dir, "workspace", runs.DefaultWorkspace, "look for runs in `DIR` and below")
	if err := cmd.MarkFlagDirname("workspace"); err != nil {
		panic("BUG: " + err.Error())
	}
}

// open returns the archive of the runs in the workspace.
func (w *workspace) open(cmd *cobra.Command) (*runs.Archive, error) {
	a, err := runs.OpenArchive(w.dir)
	if err != nil {
		return nil, cli.Usagef(cmd, "--workspace: %w", err)
	}
	return a, nil
}

// find returns the runs of some names, all runs for no names.
func (w *workspace) find(cmd *cobra.Command, names []string) (*runs.Archive, []runs.Run, error) {
	a, err := w.open(cmd)
	if err != nil || len(names) == 0 {
		if err != nil {
			return nil, nil, err
		}
		return a, a.Runs(), nil
	}
	var all []runs.Run
	for _, name := range names {
		r, err := a.Find(name)
		if err != nil {
			return nil, nil, cli.Usagef(cmd, "%w", err)
		}
		all = append(all, r)
	}
	return a, all, nil
}

// complete offers the runs of the workspace.
func (w *workspace) complete(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a, err := runs.OpenArchive(w.dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, r := range a.Runs() {
		ids = append(ids, r.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
