package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends with the first interrupt or termination signal; the second one ends the
// process. The function that it returns restores the usual effect of these signals.
func interruptible(out io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			if ctx.Err() != nil {
				fmt.Fprintln(out, "\nprimus: interrupted twice: exit at once")
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}
