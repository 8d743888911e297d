package cli

import (
	"io"
	"os"
	"strconv"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screen is a standard output whose width bounds tables.
type screen struct {
	*os.File
	width func() int
	wide  bool // --wide is given
}

var _ plaintext.Screen = (*screen)(nil)

// newScreen returns a standard output. Its width is that of the terminal; without one it is what
// the variable COLUMNS says, and without that there is no limit.
func newScreen(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return &screen{File: f, width: func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return width
		}}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return &screen{File: f, width: func() int { return columns }}
	}
	return f
}

// Columns implements [plaintext.Screen].
func (s *screen) Columns() int {
	if s.wide {
		return 0
	}
	return s.width()
}

// Inherited returns the file that a child process is to write to where out is a standard output.
// Through any other writer the child would not see the terminal.
func Inherited(out io.Writer) io.Writer {
	if s, ok := out.(*screen); ok {
		return s.File
	}
	return out
}

// addWide gives a command that prints tables the flag --wide.
func addWide(cmd *cobra.Command) {
	cmd.Flags().Bool(wideFlag, false, "print all columns of tables, however narrow the terminal is")
}

const wideFlag = "wide"

// applyWide lets the tables of a command with --wide be as wide as they are.
func applyWide(cmd *cobra.Command) {
	s, ok := cmd.OutOrStdout().(*screen)
	if f := cmd.Flags().Lookup(wideFlag); ok && f != nil {
		s.wide = f.Value.String() == "true"
	}
}
