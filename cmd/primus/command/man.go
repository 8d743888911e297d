package command

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
func writeManual(cmd *cobra.Command, dir string) error {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManual(sub, dir); err != nil {
				return err
			}
		}
	}
	date, err := manualDate()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, manualName(cmd)+".1"), []byte(manualPage(cmd, date)), 0o644); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	return nil
}

// manualDate returns the date of SOURCE_DATE_EPOCH, or now.
func manualDate() (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("write manual pages: given SOURCE_DATE_EPOCH %q, want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// manualName returns the name of the page of a command.
func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage returns the page of a command in roff, with the macros of man(7).
func manualPage(cmd *cobra.Command, date time.Time) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".nh\n.TH %q \"1\" %q %q \"Primus-FL\"\n", strings.ToUpper(manualName(cmd)), date.Format("Jan 2006"), "primus "+buildinfo.Read().Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", manualName(cmd), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", roffText(cmp.Or(cmd.Long, cmd.Short)))
	if flags := cmd.LocalFlags(); flags.HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		flags.VisitAll(func(f *pflag.Flag) { b.WriteString(roffFlag(f)) })
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLE\n.EX\n%s\n.EE\n", roff(cmd.Example))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, manualName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			others = append(others, manualName(sub))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n\\fB%s(1)\\fP\n", strings.Join(others, `(1)\fP, \fB`))
	}
	return b.String()
}

// roffFlag returns the entry of a flag: its names, the word for its value, and what it does.
func roffFlag(f *pflag.Flag) string {
	if f.Hidden || f.Deprecated != "" {
		return ""
	}
	names := `\fB--` + f.Name + `\fP`
	if f.Shorthand != "" {
		names = `\fB-` + f.Shorthand + `\fP, ` + names
	}
	value, usage := pflag.UnquoteUsage(f)
	switch {
	case value == "":
	case f.NoOptDefVal != "":
		names += `[=\fI` + roff(value) + `\fP]`
	default:
		names += ` \fI` + roff(value) + `\fP`
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
		usage += " (default " + f.DefValue + ")"
	}
	return ".TP\n" + names + "\n" + roff(usage) + "\n"
}

// roffText returns paragraphs. Lines that begin with white space are printed as they are, and a
// line after #### is a heading, as in the help that cobra brings.
func roffText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		heading, isHeading := strings.CutPrefix(paragraph, "#### ")
		switch {
		case isHeading:
			fmt.Fprintf(&b, ".SS %s\n", roff(heading))
		case strings.HasPrefix(paragraph, " ") || strings.HasPrefix(paragraph, "\t"):
			fmt.Fprintf(&b, ".PP\n.EX\n%s\n.EE\n", roff(paragraph))
		case i == 0:
			fmt.Fprintf(&b, "%s\n", roff(paragraph))
		default:
			fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
		}
	}
	return b.String()
}

// roff escapes text, whose lines must not be taken for requests.
func roff(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, `\`, `\e`), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
