package commandtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
)

// Background is a command line that runs until it is stopped or ends by itself.
type Background struct {
	Out, Stderr *primustest.Buffer

	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Start runs a command line in this process until the end of the test at most.
func Start(t *testing.T, args ...string) *Background {
	t.Helper()
	b := &Background{Out: &primustest.Buffer{}, Stderr: &primustest.Buffer{}, t: t, ended: make(chan struct{})}
	root := command.NewRoot(command.Streams{Out: b.Out, Err: b.Stderr})
	root.SetArgs(args)
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(t.Context())
	go func() {
		b.err = root.ExecuteContext(ctx)
		close(b.ended)
	}()
	t.Cleanup(func() { _ = b.Stop() })
	return b
}

// Wait returns the error with which the command line ends.
func (b *Background) Wait() error {
	b.t.Helper()
	b.wait("the end of the command line", func() bool {
		select {
		case <-b.ended:
			return true
		default:
			return false
		}
	})
	return b.err
}

// WaitFor returns when the command line has written some text.
func (b *Background) WaitFor(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("the text %q", text), func() bool { return b.Out.Contains(text) || b.Stderr.Contains(text) })
}

func (b *Background) wait(what string, until func() bool) {
	b.t.Helper()
	primustest.Wait{
		What: what, Until: until, Ended: b.ended,
		Progress: func() int64 { return int64(b.Out.Len() + b.Stderr.Len()) },
		Report: func() string {
			return "the command line has written:\n" + b.Out.String() + b.Stderr.String() + "\n" + primustest.Stacks()
		},
	}.Do(b.t)
}

// Stop interrupts the command line and returns its error.
func (b *Background) Stop() error {
	b.t.Helper()
	b.cancel()
	return b.Wait()
}

// Fails runs a command line whose output goes to a full disk and returns its error.
func Fails(args ...string) error {
	root := command.NewRoot(command.Streams{Out: FullDisk{}, Err: &primustest.Buffer{}})
	root.SetArgs(args)
	return root.Execute()
}
