package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/primus-fl/primus/runtime/backend"
)

// LoadLauncher reads a launcher file, "" for none, and the options that go over it, and completes
// o from them.
func LoadLauncher(ctx context.Context, prog cli.Program, o *launch.Options, file string, options []string) (*placement.Settings, error) {
	loaded, err := graph.LoadFormats(prog.Extras)
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	settings, err := placement.Load(ctx, loaded, home, file, options)
	if err != nil {
		return nil, cli.UsageError{Err: err}
	}
	for _, w := range settings.Warnings {
		fmt.Fprintln(prog.Err, "primus: warning:", w)
	}
	settings.Complete(o, os.LookupEnv)
	return settings, nil
}

// VariableNames returns the names of the variables of this process.
func VariableNames() []string {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}

// CarryOut does what a plan says.
func CarryOut(ctx context.Context, prog cli.Program, p *placement.Plan, r placement.Run) error {
	for _, note := range p.Notes {
		fmt.Fprintf(prog.Err, "primus: %s: %s\n", p.Launcher, note)
	}
	if err := errors.Join(p.Faults...); err != nil {
		return err
	}
	if p.Argv == nil {
		_, err := io.WriteString(prog.Out, p.Manifest)
		return err
	}
	if err := p.Write(); err != nil {
		return err
	}
	err := launch.Attach(ctx, launch.Command{Argv: p.Argv, Environ: p.Environ(os.Environ()), Dir: r.Dir, Out: cli.Inherited(prog.Out), Err: prog.Err, Grace: r.Grace})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%w: %s has been told to end", backend.ErrInterrupted, p.Argv[0])
	}
	return err
}
