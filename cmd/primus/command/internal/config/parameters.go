package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
)

// Parameters are parameters of the native backend that are described together.
type Parameters struct {
	Names   []string `json:"names"`
	Meaning string   `json:"meaning"` // Markdown with links as in docs/reference; plain in the output of the command
	Default string   `json:"default"` // of all of them, or that of each, with commas
}

func newConfigParametersCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "parameters [NAME|PATTERN…]",
		Short: "Say what the parameters of the native backend mean",
		Long: `Say what the parameters of the native backend mean, and what they are where neither
an experiment nor its presets give them. Parameters of Python backends are those of
their frameworks.`,
		Example: `  primus config parameters
  primus config parameters lr clip_grad
  primus config parameters 'rope_*' -o json`,
		RunE: func(_ *cobra.Command, args []string) error {
			shown, err := matchingParameters(args)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			return output.Print(prog.Out, shown, func() error {
				t := plaintext.NewTable(table.Row{"parameters", "meaning", "default"})
				for _, p := range shown {
					t.AppendRow(table.Row{strings.Join(p.Names, " "), p.Meaning, p.Default})
				}
				_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
				return err
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return cli.Matching(parameterNames(NativeParameters()), begun)
		},
	}
	output.AddFlag(cmd)
	cli.WithoutVariable(cmd.Flags(), "output")
	return cmd
}

// matchingParameters returns the parameters of which one has a name that a pattern matches, all
// without patterns.
func matchingParameters(patterns []string) ([]Parameters, error) {
	all := NativeParameters()
	var matching []Parameters
	var faults []error
	for _, p := range all {
		p.Meaning, p.Default = plain(p.Meaning), plain(p.Default)
		if len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { return anyMatches(pattern, p.Names) }) {
			matching = append(matching, p)
		}
	}
	names := parameterNames(all)
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || !anyMatches(pattern, names) {
			faults = append(faults, fmt.Errorf("given %q, want the name of a parameter of the native backend or a pattern such as 'rope_*'%s", pattern, suggest.Hint(pattern, names)))
		}
	}
	return matching, errors.Join(faults...)
}

func anyMatches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func parameterNames(all []Parameters) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Names...)
	}
	return names
}

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)

// plain returns a text without the links and the code marks of Markdown.
func plain(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}
