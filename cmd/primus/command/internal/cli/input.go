package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// longInput is how long an input may last before a word is said about it.
const longInput = 5 * time.Second

// input is an input whose reads end with a context.
type input struct {
	ctx  context.Context
	in   io.Reader
	out  io.Writer
	word func() *time.Timer // that of a long input, begun by the first read
}

// Interruptible returns an input whose reads end with the error of ctx when that ends. If it is no
// terminal and has not ended after some seconds, out says so. Reads must not be concurrent.
func Interruptible(ctx context.Context, in io.Reader, out io.Writer) io.Reader {
	i := &input{ctx: ctx, in: in, out: out}
	i.word = sync.OnceValue(func() *time.Timer {
		if IsTerminal(in) {
			return nil
		}
		return time.AfterFunc(longInput, func() {
			fmt.Fprintln(out, "still reading standard input, which has not ended")
		})
	})
	return i
}

// Read reads from the input. What a read that the context has ended would return is lost.
func (i *input) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	word := i.word()
	type result struct {
		n   int
		err error
	}
	own, read := make([]byte, len(p)), make(chan result, 1)
	go func() {
		n, err := i.in.Read(own)
		read <- result{n, err}
	}()
	select {
	case r := <-read:
		if r.err != nil && word != nil {
			word.Stop()
		}
		return copy(p, own[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}

// IsTerminal reports whether an input is a terminal.
func IsTerminal(in io.Reader) bool {
	if i, ok := in.(*input); ok {
		in = i.in
	}
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
