// Package cli holds what all commands share: where they write, the formats of their output, tables,
// the status line and log lines of a terminal, usage errors, and the defaults of flags.
package cli

import (
	"io"
	"log/slog"
	"os"

	"go.uber.org/fx"
	"golang.org/x/term"
)

// Streams are where a command writes: results to Out, everything else to Err.
type Streams struct {
	Out, Err io.Writer

	// In is what a command reads that was given - for a file; nil is the standard input of the
	// process.
	In io.Reader

	// Width returns the columns of the terminal that Err is; nil says that Err is none, so that no
	// progress bar appears.
	Width func() int

	// Color says that Err shows colours.
	Color bool
}

// Program is what every command has: where it writes, and what another program adds with Main.
type Program struct {
	Streams
	Extras []fx.Option
}

// usualWidth is for terminals that do not tell theirs.
const usualWidth = 80

// StandardStreams returns the standard output and error of the process. CI in the environment
// stands for no terminal, and NO_COLOR for one without colours.
func StandardStreams() Streams {
	s := Streams{Out: os.Stdout, Err: os.Stderr, In: os.Stdin}
	fd := int(os.Stderr.Fd())
	if !term.IsTerminal(fd) || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return s
	}
	s.Color = os.Getenv("NO_COLOR") == ""
	s.Width = func() int {
		width, _, err := term.GetSize(fd)
		if err != nil || width <= 0 {
			return usualWidth
		}
		return width
	}
	return s
}

// Lines returns a handler of log lines for people who watch, on Err or on the console that is
// there.
func (s Streams) Lines(out io.Writer, level slog.Leveler) *lineHandler {
	h := NewLineHandler(out, level, TimeOfDay)
	h.color = s.Color
	return h
}
