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

	// In is what a command reads for the file name -; nil is the standard input of the process.
	In io.Reader

	// Width returns the columns of the terminal that Err is. If it is nil, Err is no terminal, and
	// there is no progress bar.
	Width func() int

	// Height returns the lines of that terminal; nil without one.
	Height func() int

	// Color says that Err shows colours.
	Color bool
}

// Program is what every command has: where it writes, and what another program adds with Main.
type Program struct {
	Streams
	Extras []fx.Option
	Ending *Ending // of the process; nil for a command line that is only looked at
}

// usualWidth and usualHeight are used for terminals that do not report their size.
const (
	usualWidth  = 80
	usualHeight = 24
)

// StandardStreams returns the standard output and error of the process. With the variable CI in the
// environment they are no terminal, and with NO_COLOR a terminal has no colours.
func StandardStreams() Streams {
	s := Streams{Out: newScreen(os.Stdout), Err: os.Stderr, In: os.Stdin}
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
	s.Height = func() int {
		_, height, err := term.GetSize(fd)
		if err != nil || height <= 0 {
			return usualHeight
		}
		return height
	}
	return s
}

// Lines returns a handler that writes log lines for people to out, which is Err or a console on it.
func (s Streams) Lines(out io.Writer, level slog.Leveler) *lineHandler {
	h := NewLineHandler(out, level, TimeOfDay)
	h.color = s.Color
	return h
}
