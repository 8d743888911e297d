package runs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/spf13/cobra"
)

// listed is a checkpoint in the output of `primus runs checkpoints`.
type listed struct {
	Step      int64    `json:"step"`
	Judgement string   `json:"judgement"` // good, spike, diverged, or "" for one of an older version
	ValidLoss *float64 `json:"valid_loss"`
	Bytes     int64    `json:"bytes"`
	Run       string   `json:"run"`
	Path      string   `json:"path"`
	Error     string   `json:"error,omitempty"`
}

func newCheckpointsCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var w workspace
	cmd := &cobra.Command{
		Use:   "checkpoints RUN|DIR",
		Short: "List the checkpoints of a run of the native backend, newest first",
		Long: `List the checkpoints of a run of the native backend, newest first: those in its own
directory, or in that of its parameter save, given as DIR. judged says how the training that
led to a checkpoint was judged: good, spike (an update from a spike is among the last 16
steps) or diverged; - is a checkpoint of an older version. valid is the validation loss of
its weights. Manifests are read, and no other files.`,
		Example: `  primus runs checkpoints llama_2M-pretrain
  primus runs checkpoints /shared/checkpoints -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				_, found, err := w.find(cmd, args)
				if err != nil {
					return err
				}
				dir = found[0].Dir
			}
			if below := filepath.Join(dir, "checkpoints"); isDir(below) {
				dir = below
			}
			entries, err := checkpoint.List(dir)
			if err != nil {
				return err
			}
			all := make([]listed, len(entries))
			for i, e := range entries {
				all[i] = listed{Step: e.Step, Judgement: string(e.Judgement), ValidLoss: e.ValidLoss, Bytes: e.Bytes, Run: e.Run, Path: e.Path}
				if e.Err != nil {
					all[i].Error = e.Err.Error()
				}
			}
			return output.Print(prog.Out, all, func() error { return printCheckpoints(prog, dir, all) })
		},
		ValidArgsFunction: w.complete,
	}
	output.AddFlag(cmd)
	w.addFlag(cmd)
	return cmd
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func printCheckpoints(prog cli.Program, dir string, all []listed) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(prog.Out, "no checkpoints in %s\n", dir)
		return err
	}
	t := plaintext.NewTable(table.Row{"step", "judged", "valid", "size", "run", "path"}, 1, 3, 4).
		Optional("run", "size")
	for _, c := range all {
		judged := plaintext.Dash(c.Judgement)
		if c.Error != "" {
			judged = "unusable"
		}
		t.AppendRow(table.Row{c.Step, judged, number("%.4f", c.ValidLoss), sysmem.Text(float64(c.Bytes)), plaintext.Dash(c.Run), c.Path})
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}
