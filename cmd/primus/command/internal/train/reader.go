package train

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"
)

// readWriter writes the log, and cancels the run when the reader of the log is gone.
type readWriter struct {
	io.Writer
	cancel context.CancelCauseFunc
}

// Write implements io.Writer.
func (w readWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.cancel(errors.New("EPIPE: nobody reads the log"))
	}
	return n, err
}

// endWithReader returns a writer to out, and a context that also ends when the reader of out is
// gone. Until the function that it returns is called, SIGPIPE does not end the process.
func endWithReader(parent context.Context, out io.Writer) (context.Context, io.Writer, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signal.Ignore(syscall.SIGPIPE)
	return ctx, readWriter{out, cancel}, func() {
		signal.Reset(syscall.SIGPIPE)
		cancel(nil)
	}
}
