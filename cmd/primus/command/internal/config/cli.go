package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/spf13/cobra"
)

// cliView is the result of `primus config cli`.
type cliView struct {
	Files  []settings.File `json:"files"`
	Values []cliRow        `json:"values"`
}

// cliRow is one flag.
type cliRow struct {
	Key      string           `json:"key"`
	Value    []string         `json:"value"`
	Origin   settings.Scope   `json:"origin"`
	Where    string           `json:"where"`
	Variable string           `json:"variable"`
	Over     []settings.Value `json:"over"` // the values that it overrides, the strongest first
	Commands []string         `json:"commands"`
}

func newConfigCLICommand(prog cli.Program, newRoot func(cli.Program) *cobra.Command) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "cli [COMMAND [FLAG…]]",
		Short: "Show the defaults of the command line, and where each comes from",
		Long: `Show the value of every flag that may come from the environment or from a file, and
where it comes from. Later sources win:

  default < user's primus.yaml < project's primus.yaml < PRIMUS_<FLAG> < flag

The file of a project is the nearest primus.yaml in this directory or above it; that of
a user is primus/primus.yaml in the directory for configurations. A key is the name of a
flag, and relative paths are relative to the file. PRIMUS_CLI_CONFIG=FILE reads only
that file, and PRIMUS_CLI_CONFIG=none reads none. Unknown keys are errors.

With a COMMAND only its flags are shown; flags after it are taken into account.`,
		Example: `  primus config cli
  primus config cli train
  primus config cli -o json train pretrain --threads 4`,
		RunE: func(cmd *cobra.Command, line []string) error {
			view, err := newCLIView(cmd.Context(), cmd.Root(), newRoot(prog), line)
			if err != nil {
				return err
			}
			return output.Print(prog.Out, view, func() error { return view.print(prog) })
		},
		ValidArgsFunction: func(cmd *cobra.Command, words []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			target, rest := descend(cmd.Root(), words)
			if len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.Subcommands(target, (*cobra.Command).Name), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows COMMAND belongs to it
	output.AddFlag(cmd)
	return cmd
}

// newCLIView resolves the flags of a command line, or those of every command without one. No flag
// of fresh has been given.
func newCLIView(ctx context.Context, root, fresh *cobra.Command, line []string) (*cliView, error) {
	s, err := cli.LoadSettings(ctx, root)
	if err != nil {
		return nil, err
	}
	view := &cliView{Files: s.Files, Values: []cliRow{}}
	if len(line) > 0 {
		cmd, rest := descend(fresh, line)
		if !cmd.HasParent() {
			return nil, cli.UnknownCommand(root, line[0])
		}
		if err := parseFlags(cmd, rest); err != nil {
			return nil, err
		}
		return view, view.add(s, cmd)
	}
	var faults error
	cli.WalkCommands(fresh, func(cmd *cobra.Command) {
		if err := view.add(s, cmd); err != nil && faults == nil {
			faults = err
		}
	})
	slices.SortStableFunc(view.Values, func(a, b cliRow) int { return strings.Compare(a.Key, b.Key) })
	return view, faults
}

// descend follows the names of commands and returns the last one, with the remaining words.
func descend(cmd *cobra.Command, words []string) (*cobra.Command, []string) {
	for len(words) > 0 {
		i := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == words[0] && !sub.Hidden })
		if i < 0 {
			break
		}
		cmd, words = cmd.Commands()[i], words[1:]
	}
	return cmd, words
}

// parseFlags sets the flags of a command from the rest of a command line.
func parseFlags(cmd *cobra.Command, rest []string) error {
	if cmd.DisableFlagParsing {
		known, _, _, err := experiments.SplitArgs(cmd, rest)
		if err != nil {
			return err
		}
		rest = known
	}
	if err := cmd.Flags().Parse(rest); err != nil {
		return cli.FlagError(cmd, err)
	}
	return nil
}

// add resolves the flags of a command and tries their values. A flag that another command has, too,
// is shown once, unless their defaults differ.
func (v *cliView) add(s *settings.Settings, cmd *cobra.Command) error {
	all, err := s.Resolve(cmd.Flags(), cli.IsSetting)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	for _, setting := range all {
		if err := setting.Apply(cmd.Flags(), cli.Wants); err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		first := setting.Values[0]
		row := cliRow{
			Key: setting.Name, Value: cli.List(first.Texts), Origin: first.Scope, Where: first.Where, Variable: settings.Variable(setting.Name),
			Over: slices.Clone(setting.Values[1:]), Commands: []string{name},
		}
		same := func(other cliRow) bool {
			return other.Key == row.Key && slices.Equal(other.Value, row.Value) && len(other.Over) == len(row.Over)
		}
		if i := slices.IndexFunc(v.Values, same); i >= 0 {
			v.Values[i].Commands = append(v.Values[i].Commands, name)
			continue
		}
		v.Values = append(v.Values, row)
	}
	return nil
}

// print writes the view as a table below the files that were looked for.
func (v *cliView) print(prog cli.Program) error {
	var b strings.Builder
	for _, f := range v.Files {
		note := ""
		if !f.Found {
			note = " (does not exist)"
		}
		fmt.Fprintf(&b, "%-7s %s%s\n", f.Scope, f.Path, note)
	}
	if len(v.Files) == 0 {
		fmt.Fprintf(&b, "no file is read: %s=none\n", settings.EnvFile)
	}
	t := plaintext.NewTable(table.Row{"key", "value", "origin", "where", "over", "commands"}).
		Optional("over", "origin", "where")
	for _, r := range v.Values {
		var over []string
		for _, lost := range r.Over {
			if lost.Scope != settings.Default || len(lost.Texts) > 0 && lost.Texts[0] != "" {
				over = append(over, fmt.Sprintf("%s (%s)", strings.Join(lost.Texts, ", "), cmp.Or(lost.Where, string(lost.Scope))))
			}
		}
		t.AppendRow(table.Row{r.Key, plaintext.Dash(strings.Join(r.Value, ", ")), r.Origin, plaintext.Dash(r.Where), plaintext.Dash(strings.Join(over, "; ")), strings.Join(nouns(r.Commands), ", ")})
	}
	_, err := fmt.Fprintf(prog.Out, "%s\n%s\n", b.String(), plaintext.Render(prog.Out, t))
	return err
}

// nouns returns the first words of commands, each once.
func nouns(commands []string) []string {
	var all []string
	for _, c := range commands {
		if noun, _, _ := strings.Cut(c, " "); !slices.Contains(all, noun) {
			all = append(all, noun)
		}
	}
	return all
}
