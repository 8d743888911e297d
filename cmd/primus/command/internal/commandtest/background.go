package commandtest

import (
	"context"
	"sync"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
)

// Background is a command line that runs until it is stopped or ends by itself.
type Background struct {
	Out, Stderr *primustest.Buffer

	cancel context.CancelFunc
	wait   func() error
}

// Start runs a command line in this process until the end of the test at most.
func Start(t *testing.T, args ...string) *Background {
	t.Helper()
	b := &Background{Out: &primustest.Buffer{}, Stderr: &primustest.Buffer{}}
	root := command.NewRoot(command.Streams{Out: b.Out, Err: b.Stderr})
	root.SetArgs(args)
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	b.wait = sync.OnceValue(func() error { return <-ended })
	go func() { ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(func() { _ = b.Stop() })
	return b
}

// Wait returns the error with which the command line ends.
func (b *Background) Wait() error { return b.wait() }

// Stop interrupts the command line and returns its error.
func (b *Background) Stop() error {
	b.cancel()
	return b.wait()
}

// Fails runs a command line whose output goes to a full disk and returns its error.
func Fails(args ...string) error {
	root := command.NewRoot(command.Streams{Out: FullDisk{}, Err: &primustest.Buffer{}})
	root.SetArgs(args)
	return root.Execute()
}
