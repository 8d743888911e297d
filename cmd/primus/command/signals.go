package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
)

// endSignals ask a process to end. They come from the keyboard, from a scheduler, and from a
// terminal that was closed.
var endSignals = map[os.Signal]string{os.Interrupt: "", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}

// sameSignal is how long signals of programs count as the first one: a process below srun or in a
// container gets one from the scheduler and again from its parent.
const sameSignal = 2 * time.Second

// interruptible returns a context that ends with the first signal that asks the process to end. The
// signal is its cause unless it came from the keyboard. The second signal ends the process, and so
// does the end of the grace period after the first one. SIGHUP stays ignored if the process was
// started with it ignored, as nohup does. The other signals do not, because scripts start
// background processes with SIGINT ignored and then end them with it. The function that it returns
// restores the usual effect of these signals.
func interruptible(out io.Writer, ending *cli.Ending) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	for s := range endSignals {
		if s != syscall.SIGHUP || !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var first time.Time
		var end *time.Timer // of the first signal
		for s := range signals {
			if s == os.Interrupt && ending.Interrupted() {
				continue
			}
			if ctx.Err() != nil && s != os.Interrupt && time.Since(first) < sameSignal {
				continue
			}
			if ctx.Err() != nil {
				fmt.Fprintln(out, "\nprimus: interrupted twice: exit at once")
				ending.Exit(cli.ExitInterrupted)
			}
			first = time.Now()
			cancel(signalCause(s))
			grace := ending.Grace()
			end = time.AfterFunc(grace, func() {
				fmt.Fprintf(out, "\nprimus: interrupted, and not ended %v later: exit at once; what was not saved is lost\n", grace)
				ending.Exit(cli.ExitInterrupted)
			})
		}
		if end != nil {
			end.Stop()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel(nil)
	}
}

// signalCause returns the cause of a context that a signal ends, nil for the interrupt key.
func signalCause(s os.Signal) error {
	if name := endSignals[s]; name != "" {
		return signalError{s.(syscall.Signal), name}
	}
	return nil
}

// signalError is the cause of a context that a signal has ended. It is forwarded to the processes
// of a run.
type signalError struct {
	signal syscall.Signal
	name   string
}

// Error is the name of the signal.
func (e signalError) Error() string { return e.name }

// Signal implements launch.Signaled.
func (e signalError) Signal() syscall.Signal { return e.signal }
