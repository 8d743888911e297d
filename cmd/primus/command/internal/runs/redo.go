package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
)

// redone is a step that was computed again.
type redone struct {
	Step           int64   `json:"step"`
	Loss           float64 `json:"loss"` // as the run had it
	GradNorm       float64 `json:"grad_norm"`
	RedoneLoss     float64 `json:"redone_loss"`
	RedoneGradNorm float64 `json:"redone_grad_norm"`
	Same           bool    `json:"same"` // bit for bit
}

// redoing is the output of `primus runs redo`.
type redoing struct {
	Run        string   `json:"run"`
	Step       int64    `json:"step"`
	Checkpoint *string  `json:"checkpoint"` // that the steps began with; null: the beginning of the run
	Same       bool     `json:"same"`
	Steps      []redone `json:"steps"`
	Recorded   string   `json:"recorded,omitempty"` // directory of the calls that were kept
}

// redoFlags are the flags of `primus runs redo`.
type redoFlags struct {
	workspace
	output      cli.OutputFormat
	step        uint
	checkpoints string
	anyImpl     bool
	recordOps   []string
	recordDir   string
	layers      []string
}

func newRedoCommand(prog cli.Program, newRoot func(cli.Program) *cobra.Command) *cobra.Command {
	var f redoFlags
	cmd := &cobra.Command{
		Use:   "redo RUN|DIR --step N [-- FLAGS of train]",
		Short: "Compute a step of a run of the native backend again and compare it bit for bit",
		Long: `Compute a step of a run of the native backend again and compare loss and gradient norm
with what the run logged, bit for bit. The steps begin with the newest checkpoint before
the step that is left, or as the run began if there is none; the run itself is not
changed. With --record-ops the calls of the step are kept for primus ops replay.

Ops must be served by the implementations that served them in the run, as its
manifest.json has them; --any-impl allows others. Parameters are those of the run, paths
among them are seen from the present directory, and a run of several ranks needs as many
processes. What follows -- is passed on to primus train, such as --policy FILE.

The exit code is 1 when a step is not the same.`,
		Example: `  primus runs redo llama_2M-pretrain --step 90
  primus runs redo llama_2M-pretrain --step 90 --record-ops 'rmsnorm_*,generic_gemm'
  primus runs redo llama_2M-pretrain --step 90 --any-impl -- --prefer vendor`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args) - max(0, len(args)-dashAt(cmd, args)); n != 1 {
				return cli.Usagef(cmd, "given %s, want one", plaintext.Quantity(n, "run", "runs"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := f.redo(cmd, prog, newRoot, args[0], args[dashAt(cmd, args):])
			if err != nil {
				return err
			}
			if err := f.output.Print(prog.Out, done, func() error { return printRedone(prog.Out, done) }); err != nil || done.Same {
				return err
			}
			return cli.ErrReported
		},
		ValidArgsFunction: f.complete,
	}
	flags := cmd.Flags()
	flags.UintVar(&f.step, "step", 0, "the step `N`")
	flags.StringVar(&f.checkpoints, "checkpoints", "", "look for checkpoints of the run in `DIR`, such as that of its parameter save")
	flags.BoolVar(&f.anyImpl, "any-impl", false, "ops may be served by other implementations than in the run")
	flags.StringSliceVar(&f.recordOps, "record-ops", nil, "keep the calls of the step of ops whose names match these `PATTERNS`")
	flags.StringVar(&f.recordDir, "record-dir", "recorded-ops", "`DIR` for the files of kept calls")
	flags.StringSliceVar(&f.layers, "record-layers", nil, "only calls of these `LAYERS`, counted from 0")
	f.output.AddFlag(cmd)
	f.addFlag(cmd)
	return cmd
}

// dashAt returns the number of arguments before --.
func dashAt(cmd *cobra.Command, args []string) int {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

// redo trains from the last checkpoint before the step up to it, in a directory of its own.
func (f *redoFlags) redo(cmd *cobra.Command, prog cli.Program, newRoot func(cli.Program) *cobra.Command, name string, more []string) (*redoing, error) {
	for _, needs := range []string{"record-dir", "record-layers"} {
		if len(f.recordOps) == 0 && cmd.Flags().Changed(needs) {
			return nil, cli.Usagef(cmd, "--%s needs --record-ops, which says which ops are recorded, such as --record-ops '*'", needs)
		}
	}
	run, err := f.run(cmd, name)
	if err != nil {
		return nil, err
	}
	logged, err := rundir.ReadRecords(run.Dir)
	if err != nil {
		return nil, err
	}
	if len(logged) == 0 {
		return nil, fmt.Errorf("run %s has no step: %s is empty", run.ID, filepath.Join(run.Dir, rundir.MetricsName))
	}
	first, last := logged[0].Step, logged[len(logged)-1].Step
	if !slices.ContainsFunc(logged, func(r rundir.Record) bool { return r.Step == int64(f.step) }) {
		return nil, cli.Usagef(cmd, "--step: given %d, want one of the steps of run %s, %d to %d", f.step, run.ID, first, last)
	}
	stage, err := stageOf(cmd.Context(), prog, run)
	if err != nil {
		return nil, err
	}
	from, err := f.checkpoint(run)
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "primus-redo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	line := []string{"train", stage, "--config", filepath.Join(run.Dir, rundir.ConfigName)}
	if !f.anyImpl {
		line = append(line, "--require-manifest", filepath.Join(run.Dir, rundir.ManifestName))
	}
	if run.WorldSize > 1 {
		line = append(line, "--nproc", strconv.Itoa(run.WorldSize))
	}
	done := &redoing{Run: run.ID, Step: int64(f.step)}
	if len(f.recordOps) > 0 {
		line = append(line, "--record-calls", fmt.Sprintf("step:%d", f.step), "--record-ops", strings.Join(f.recordOps, ","), "--record-dir", f.recordDir)
		if len(f.layers) > 0 {
			line = append(line, "--record-layers", strings.Join(f.layers, ","))
		}
		done.Recorded = f.recordDir
	}
	line = append(line, more...)
	line = append(line, "workspace="+temporary, fmt.Sprintf("exit_interval=%d", f.step), "exit_duration_in_mins=0", "save=null", "save_interval=0", "save_initial=false",
		"disable_tensorboard=true", "disable_mlflow=true", "disable_wandb=true", "stderr_sink_level=WARNING")
	begin := first
	if from != nil {
		line = append(line, "load="+from.Path)
		done.Checkpoint, begin = &from.Path, from.Step+1
	}
	fmt.Fprintf(prog.Err, "computing %s of %s, from %s\n", stepRange(begin, done.Step), run.ID, cmp.Or(done.from(), "the beginning: no checkpoint before is left"))
	if err := execute(cmd.Context(), prog, newRoot, line); err != nil {
		return nil, err
	}
	again, err := recordsBelow(temporary)
	if err != nil {
		return nil, err
	}
	return done, done.compare(logged, again)
}

// run returns the run of a name, or in a directory.
func (f *redoFlags) run(cmd *cobra.Command, name string) (runs.Run, error) {
	if isDir(name) {
		a, err := runs.OpenArchive(name)
		if err != nil {
			return runs.Run{}, cli.Usagef(cmd, "%w", err)
		}
		all := a.Runs()
		if len(all) != 1 {
			return runs.Run{}, cli.Usagef(cmd, "given %s, which holds %s, want the directory of one", name, plaintext.Quantity(len(all), "run", "runs"))
		}
		return all[0], nil
	}
	_, found, err := f.find(cmd, []string{name})
	if err != nil {
		return runs.Run{}, err
	}
	return found[0], nil
}

// stageOf returns what the run trained.
func stageOf(ctx context.Context, prog cli.Program, run runs.Run) (string, error) {
	opts := experiments.Options{PresetOptions: experiments.PresetOptions{Program: prog}}
	experiment, err := opts.Read(ctx, filepath.Join(run.Dir, rundir.ConfigName), func(*config.Options) {})
	if err != nil {
		return "", err
	}
	for _, s := range []struct {
		stage  experiments.Stage
		called string
	}{{experiments.Pretrain, "pretrain"}, {experiments.Posttrain, "posttrain"}} {
		module, err := experiment.Module(s.stage.Module)
		if err != nil {
			continue
		}
		if module.Framework != native.Framework {
			return "", cli.UsageError{Err: fmt.Errorf("run %s is of framework %s, want %s: only the steps of that backend can be computed again bit for bit", run.ID, module.Framework, native.Framework)}
		}
		return s.called, nil
	}
	return "", fmt.Errorf("%s has neither a module %s nor %s", rundir.ConfigName, experiments.Pretrain.Module, experiments.Posttrain.Module)
}

// checkpoint returns the last checkpoint of a run before the step, nil if there is none.
func (f *redoFlags) checkpoint(run runs.Run) (*checkpoint.Entry, error) {
	dir := cmp.Or(f.checkpoints, filepath.Join(run.Dir, "checkpoints"))
	if f.checkpoints != "" && !isDir(dir) {
		return nil, cli.UsageError{Err: fmt.Errorf("--checkpoints: given %s, want a directory that holds checkpoints of the run", dir)}
	}
	entries, err := checkpoint.List(dir)
	if err != nil {
		return nil, err
	}
	var found *checkpoint.Entry
	for _, e := range entries {
		if e.Err == nil && e.Step < int64(f.step) && (found == nil || e.Step > found.Step) {
			found = &e
		}
	}
	if found == nil && f.checkpoints != "" {
		return nil, cli.UsageError{Err: fmt.Errorf("--checkpoints %s: no checkpoint of a step before %d", dir, f.step)}
	}
	return found, nil
}

// execute runs a command line of primus whose result does not count.
func execute(ctx context.Context, prog cli.Program, newRoot func(cli.Program) *cobra.Command, line []string) error {
	prog.Out = io.Discard
	root := newRoot(prog)
	root.SetArgs(line)
	return root.ExecuteContext(ctx)
}

// recordsBelow returns what the one run in a workspace logged.
func recordsBelow(workspace string) ([]rundir.Record, error) {
	a, err := runs.OpenArchive(workspace)
	if err != nil {
		return nil, err
	}
	all := a.Runs()
	if len(all) != 1 {
		return nil, errors.New("the steps left no run directory")
	}
	return rundir.ReadRecords(all[0].Dir)
}

// compare compares the steps that both have.
func (d *redoing) compare(logged, again []rundir.Record) error {
	for _, r := range again {
		i := slices.IndexFunc(logged, func(l rundir.Record) bool { return l.Step == r.Step })
		if i < 0 {
			continue
		}
		l := logged[i]
		d.Steps = append(d.Steps, redone{
			Step: r.Step, Loss: l.Loss, GradNorm: l.GradNorm, RedoneLoss: r.Loss, RedoneGradNorm: r.GradNorm,
			Same: l.Loss == r.Loss && l.GradNorm == r.GradNorm, // neither is ever NaN in the file
		})
	}
	if len(d.Steps) == 0 || d.Steps[len(d.Steps)-1].Step != d.Step {
		return fmt.Errorf("step %d was not reached", d.Step)
	}
	d.Same = !slices.ContainsFunc(d.Steps, func(s redone) bool { return !s.Same })
	return nil
}

// from says what the steps begin with, "" for the beginning of the run.
func (d *redoing) from() string {
	if d.Checkpoint == nil {
		return ""
	}
	return *d.Checkpoint
}

func stepRange(first, last int64) string {
	if first == last {
		return fmt.Sprintf("step %d", last)
	}
	return fmt.Sprintf("steps %d to %d", first, last)
}

// shownSteps bounds the steps that are printed.
const shownSteps = 10

func printRedone(out io.Writer, d *redoing) error {
	t := plaintext.NewTable(table.Row{"step", "loss", "redone", "gradient norm", "redone", "same bits"}, 1, 2, 3, 4, 5)
	shown := d.Steps
	if i := slices.IndexFunc(shown, func(s redone) bool { return !s.Same }); i >= 0 {
		shown = shown[i:min(len(shown), i+shownSteps)]
	} else {
		shown = shown[max(0, len(shown)-shownSteps):]
	}
	exact := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, s := range shown {
		same := "yes"
		if !s.Same {
			same = "no"
		}
		t.AppendRow(table.Row{s.Step, exact(s.Loss), exact(s.RedoneLoss), exact(s.GradNorm), exact(s.RedoneGradNorm), same})
	}
	verdict := fmt.Sprintf("%s of %s: the same bits as in the run", stepRange(d.Steps[0].Step, d.Step), d.Run)
	if !d.Same {
		verdict = fmt.Sprintf("the first step of %s that differs is %d: another processor, version, implementation or text can be the reason", d.Run, shown[0].Step)
	}
	if d.Recorded != "" {
		verdict += fmt.Sprintf("\ncalls of step %d are in %s; primus ops replay %[2]s runs them again", d.Step, d.Recorded)
	}
	_, err := fmt.Fprintf(out, "%s\n\n%s\n", plaintext.Render(out, t), verdict)
	return err
}
