package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand returns a hidden command for packagers of the program.
func newManCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "man --dir DIR",
		Short:   "Write a manual page for each command",
		Long:    "Write a manual page for each command, dated by SOURCE_DATE_EPOCH where it is set.",
		Example: "  primus man --dir share/man/man1",
		Args:    cli.NoArgs,
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return cli.Usagef(cmd, "no directory given: want --dir DIR")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return writeManual(cmd.Root(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write to `DIR`, which is made where it is missing")
	cli.WithoutVariable(cmd.Flags(), "dir")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

// writeManual writes the page of a command and of each one below it that is listed.
func writeManual(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	plainHelp(root)
	v := buildinfo.Read()
	header := doc.GenManHeader{Section: "1", Source: "primus " + v.Version, Manual: "Primus-FL"}
	if err := doc.GenManTree(root, &header, dir); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	return nil
}

// plainHelp escapes help texts, because manual pages are made from Markdown.
func plainHelp(cmd *cobra.Command) {
	if cmd.Name() == "completion" {
		return // its help, which cobra brings, is Markdown
	}
	cmd.Long = strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`", "|", `\|`).Replace(cmd.Long)
	for _, sub := range cmd.Commands() {
		plainHelp(sub)
	}
}
