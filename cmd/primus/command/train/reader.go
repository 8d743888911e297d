package train

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"
)

// readWriter is where the log goes while somebody reads it.
type readWriter struct {
	io.Writer
	cancel context.CancelCauseFunc // when nobody does any more
}

// Write passes p on.
func (w readWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.cancel(errors.New("EPIPE: nobody reads the log"))
	}
	return n, err
}

// endWithReader returns out, and a context that also ends when nobody reads what is written there
// any more. Until the function that it returns is called, such a write does not end the process
// where it stands.
func endWithReader(parent context.Context, out io.Writer) (context.Context, io.Writer, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signal.Ignore(syscall.SIGPIPE)
	return ctx, readWriter{out, cancel}, func() {
		signal.Reset(syscall.SIGPIPE)
		cancel(nil)
	}
}
