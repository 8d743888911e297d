package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hereOnly are the flags that primus elsewhere does not get: those of the launcher, which it gets
// from the plan, and those whose work is done here.
var hereOnly = []string{"launcher", "launcher-file", "launcher-option", "nodes", "node-rank", "nproc-per-node", "master-port", "dry-run", "export-config", "time"}

// runElsewhere trains the module of a stage where the first of the launchers says. The experiment
// is checked before.
func runElsewhere(
	cmd *cobra.Command, prog cli.Program, s experiments.Stage, opts Options, overrides []string, settings *placement.Settings, elsewhere []string,
) error {
	if err := placement.CheckOverrides(elsewhere[0], overrides); err != nil {
		return err
	}
	experiment, err := opts.Load(cmd.Context(), s.Module, overrides)
	if err != nil {
		return err
	}
	chain := opts.run.Launch.Launcher
	here, err := resolveElsewhere(&opts, elsewhere[0])
	if err != nil {
		return err
	}
	plan, err := experiments.PlanRun(cmd.Context(), prog, &opts.run, s, experiment)
	if err != nil {
		return err
	}
	if plan.Launch == nil && plan.Framework != native.Framework && here.Nodes > 1 {
		return cli.Usagef(cmd, "--nodes: given %d, but framework %s runs on one node", here.Nodes, plan.Framework)
	}
	run, err := runOf(cmd, opts, experiment, overrides)
	if err != nil {
		return err
	}
	run.Options, run.Devices = here, plan.Launch != nil
	run.Launcher, run.Grace = chain, opts.run.Grace
	placed, err := placement.New(run, settings)
	if err != nil {
		return err
	}
	if opts.run.DryRun {
		if _, err := io.WriteString(prog.Out, report.Placement(prog.Out, placed, settings, elsewhere)); err != nil {
			return err
		}
		return dryRun(cmd.Context(), prog, s, opts, experiment)
	}
	return experiments.CarryOut(cmd.Context(), prog, placed, run)
}

// resolveElsewhere returns the options of the launcher as they are on this machine, and leaves
// those of the first node there in opts.
func resolveElsewhere(opts *Options, first string) (launch.Options, error) {
	if first != launch.Container { // this process is not a node of the job
		for _, name := range []string{"NODE_RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"} {
			if err := os.Unsetenv(name); err != nil {
				return launch.Options{}, fmt.Errorf("variable %s: %w", name, err)
			}
		}
	}
	here, err := opts.run.Launch.Resolve(os.LookupEnv)
	if err != nil {
		return here, cli.UsageError{Err: err}
	}
	opts.run.Launch = here
	if first != launch.Container && here.Nodes > 1 && here.MasterAddr == "localhost" {
		opts.run.Launch.MasterAddr, opts.run.Launch.NodeRank = "NODE-0", 0
	}
	opts.run.Elsewhere = first != launch.Slurm
	return here, nil
}

// runOf describes the command line that primus elsewhere gets.
func runOf(cmd *cobra.Command, opts Options, e *config.Experiment, overrides []string) (placement.Run, error) {
	program, err := os.Executable()
	if err != nil {
		return placement.Run{}, fmt.Errorf("the file of primus: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return placement.Run{}, err
	}
	root, rootErr := filepath.Abs(e.RootPath())
	workspace, workspaceErr := filepath.Abs(e.Workspace)
	text, secrets, err := placement.WithVariables(e.Export())
	if err := errors.Join(rootErr, workspaceErr, err); err != nil {
		return placement.Run{}, err
	}
	r := placement.Run{
		Name: e.ExpName, Program: program, Command: strings.Fields(cmd.CommandPath())[1:], Overrides: overrides, Dir: dir, RunDir: root, Workspace: workspace,
		Resolved: text, Secrets: secrets, Lookup: os.LookupEnv,
	}
	if checkout := opts.Checkout(); checkout != "" {
		if checkout, err = filepath.Abs(checkout); err != nil {
			return r, err
		}
		r.Reads = []string{checkout}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(hereOnly, f.Name) {
			return
		}
		kind := placement.NoPath
		switch placeholder, _ := pflag.UnquoteUsage(f); placeholder {
		case "FILE":
			kind = placement.FilePath
		case "DIR":
			kind = placement.DirPath
		}
		values := []string{f.Value.String()}
		if list, repeated := f.Value.(pflag.SliceValue); repeated {
			values = list.GetSlice()
		}
		for _, v := range values {
			r.Flags = append(r.Flags, placement.Flag{Name: f.Name, Value: v, Path: kind})
		}
	})
	r.Names = experiments.VariableNames()
	return r, nil
}
