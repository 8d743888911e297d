package command

import (
	"io"
	"os"

	"go.uber.org/fx"
	"golang.org/x/term"
)

// Streams are where a command writes: results to Out, everything else to Err.
type Streams struct {
	Out, Err io.Writer

	// In is what a command reads that was given - for a file; nil is the standard input of the process.
	In io.Reader

	// Width returns the columns of the terminal that Err is; nil says that Err is none, so that no progress bar appears.
	Width func() int

	extras []fx.Option // of Main; every command that has the streams has them
}

// usualWidth is for terminals that do not tell theirs.
const usualWidth = 80

// StandardStreams returns the standard output and error of the process.
func StandardStreams() Streams {
	s := Streams{Out: os.Stdout, Err: os.Stderr, In: os.Stdin}
	fd := int(os.Stderr.Fd())
	if !term.IsTerminal(fd) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.Width = func() int {
		width, _, err := term.GetSize(fd)
		if err != nil || width <= 0 {
			return usualWidth
		}
		return width
	}
	return s
}
