package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

// NewPresets returns the command `primus presets`.
func NewPresets(prog cli.Program) *cobra.Command {
	return cli.Group("presets", "Look at the presets that experiments take parameters from",
		newPresetsListCommand(prog), newPresetsShowCommand(prog),
	)
}

func newPresetsListCommand(prog cli.Program) *cobra.Command {
	opts := experiments.PresetOptions{Program: prog}
	var output cli.OutputFormat
	var framework string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the presets: module presets, model presets and platforms",
		Long: `List the presets. An experiment names a module preset in config, a model preset in
model, and a platform in platform.config.`,
		Example: `  primus presets list
  primus presets list --framework native -o json
  primus presets list --configs-dir ../Primus/primus/configs --framework megatron`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := opts.Presets()
			if err != nil {
				return err
			}
			shown := slices.DeleteFunc(all, func(p experiments.Preset) bool { return framework != "" && p.Framework != framework })
			if len(shown) == 0 {
				return cli.UsageError{Err: fmt.Errorf("--framework: given %q, for which there are no presets", framework)}
			}
			return output.Print(prog.Out, shown, func() error {
				t := plaintext.NewTable(table.Row{"framework", "kind", "name", "what it is"})
				for _, p := range shown {
					t.AppendRow(table.Row{plaintext.Dash(p.Framework), p.Kind, p.Name, plaintext.Dash(p.Text)})
				}
				_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
				return err
			})
		},
	}
	opts.AddFlags(cmd.Flags())
	completeDirs(cmd)
	cmd.Flags().StringVar(&framework, "framework", "", "only those of the framework `NAME`")
	output.AddFlag(cmd)
	cli.WithoutVariable(cmd.Flags(), "output", "framework")
	return cmd
}

func newPresetsShowCommand(prog cli.Program) *cobra.Command {
	opts := experiments.PresetOptions{Program: prog}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a preset as it is written, with its comments",
		Example: `  primus presets show llama_2M
  primus presets show native/pre_trainer
  primus presets show platform_local`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef(cmd, "given %d names, want that of one preset; primus presets list shows all", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := opts.Presets()
			if err != nil {
				return err
			}
			found, err := experiments.FindPresets(all, args[0])
			if err != nil {
				return err
			}
			var texts []string
			for _, p := range found {
				text := p.Content()
				if len(found) > 1 {
					text = fmt.Sprintf("# %s preset %s of %s\n%s", p.Kind, p.Name, p.Framework, text)
				}
				texts = append(texts, text)
			}
			_, err = fmt.Fprint(prog.Out, strings.Join(texts, "\n"))
			return err
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			all, err := opts.Presets()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, p := range all {
				names = append(names, p.Name)
			}
			return cli.Matching(names, begun)
		},
	}
	opts.AddFlags(cmd.Flags())
	completeDirs(cmd)
	return cmd
}
