package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/document"
	"github.com/spf13/cobra"
)

func newConfigDiffCommand(prog cli.Program) *cobra.Command {
	opts := experiments.PresetOptions{Program: prog}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show how two resolved experiments differ",
		Long: `Show how two experiments differ after presets and overrides are merged, with the place
where each value was written. The order of keys does not matter; 1 and 1.0 differ. The
exit code is 0 if nothing differs, else 1.`,
		Example: `  primus config diff bf16.yaml fp8.yaml
  primus config diff old.yaml new.yaml`,
		Args: cli.Arguments(2, "experiments", "two: A B"),
		RunE: func(cmd *cobra.Command, files []string) error {
			return diffExperiments(cmd.Context(), prog, opts, files[0], files[1])
		},
		ValidArgsFunction: completeExperiments(prog),
	}
	opts.AddFlags(cmd.Flags())
	completeDirs(cmd)
	return cmd
}

func diffExperiments(ctx context.Context, prog cli.Program, opts experiments.PresetOptions, files ...string) error {
	var views []*document.Map
	for _, file := range files {
		experiment, err := opts.Read(ctx, file, nil)
		if err != nil {
			return err
		}
		views = append(views, experiment.View())
	}
	differences := document.Diff(views[0], views[1])
	var b strings.Builder
	for _, d := range differences {
		b.WriteString(d.Path + "\n")
		side(&b, "-", d.A)
		side(&b, "+", d.B)
	}
	if _, err := fmt.Fprint(prog.Out, b.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if len(differences) > 0 {
		return cli.ErrReported
	}
	return nil
}

// side writes one value of a difference on a line of its own; a side that lacks the key has none.
func side(b *strings.Builder, sign string, v *document.Value) {
	if v == nil {
		return
	}
	fmt.Fprintf(b, "  %s %s", sign, v)
	if origin := v.Origin(); !origin.IsZero() {
		fmt.Fprintf(b, "  (%s)", origin)
	}
	b.WriteByte('\n')
}
