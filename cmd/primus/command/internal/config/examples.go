package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/spf13/cobra"
)

// NewExamples returns the command `primus examples`.
func NewExamples(prog cli.Program) *cobra.Command {
	return cli.Group("examples", "Look at the experiments that come with the program",
		newExamplesListCommand(prog), newExamplesCopyCommand(prog),
	)
}

func newExamplesListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the examples, whose names --config takes",
		Example: `  primus examples list
  primus train --config llama_6M-pretrain train_iters=50`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := experiments.Examples()
			return output.Print(prog.Out, all, func() error {
				t := plaintext.NewTable(table.Row{"name", "what it does"})
				for _, e := range all {
					t.AppendRow(table.Row{e.Name, e.Text})
				}
				_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
				return err
			})
		},
	}
	output.AddFlag(cmd)
	cli.WithoutVariable(cmd.Flags(), "output")
	return cmd
}

func newExamplesCopyCommand(prog cli.Program) *cobra.Command {
	dir, force := ".", false
	cmd := &cobra.Command{
		Use:   "copy [NAME…]",
		Short: "Write examples and their data to files that can be changed",
		Long: `Write the experiments of these names, or all, and the data of the examples. The files
keep the paths that they have in the source tree, below --to. A file that is there
already and differs is an error, unless --force replaces it.`,
		Example: `  primus examples copy
  primus examples copy llama_2M-sft --to work`,
		RunE: func(_ *cobra.Command, names []string) error { return copyExamples(prog, names, dir, force) },
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return cli.Matching(exampleNames(), begun)
		},
	}
	cmd.Flags().StringVar(&dir, "to", dir, "write below `DIR`")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that differ")
	cli.WithoutVariable(cmd.Flags(), "to", "force")
	return cmd
}

func exampleNames() []string {
	var names []string
	for _, e := range experiments.Examples() {
		names = append(names, e.Name)
	}
	return names
}

// copyExamples writes all files or none of those that are in the way.
func copyExamples(prog cli.Program, names []string, dir string, force bool) error {
	known := map[string]string{}
	for _, e := range experiments.Examples() {
		known[e.Name] = e.File
	}
	var files []string
	for _, name := range names {
		file, ok := known[name]
		if !ok {
			return cli.UsageError{Err: fmt.Errorf("no example %q%s; primus examples list shows all", name, suggest.Hint(name, exampleNames()))}
		}
		files = append(files, file)
	}
	if len(names) == 0 {
		for _, e := range experiments.Examples() {
			files = append(files, e.File)
		}
	}
	data, err := fs.Glob(primus.Files(), "examples/native/data/*")
	if err != nil {
		return err
	}
	files = append(files, data...)
	var inTheWay []string
	for _, file := range files {
		there, err := durable.ReadRegular(filepath.Join(dir, filepath.FromSlash(file)), document.MaxSize)
		text, readErr := fs.ReadFile(primus.Files(), file)
		switch {
		case readErr != nil:
			return readErr
		case err == nil && string(there) != string(text):
			inTheWay = append(inTheWay, filepath.Join(dir, filepath.FromSlash(file)))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return durable.Explain(err)
		}
	}
	if len(inTheWay) > 0 && !force {
		return fmt.Errorf("given files that are there and differ: %s; want --force, or another --to", strings.Join(inTheWay, ", "))
	}
	for _, file := range files {
		text, err := fs.ReadFile(primus.Files(), file)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return durable.Explain(err)
		}
		err = durable.WriteFile(target, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return durable.Explain(err)
		}
		if _, err := fmt.Fprintln(prog.Out, target); err != nil {
			return err
		}
	}
	return nil
}
