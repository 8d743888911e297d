package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A signal ends a command that reads standard input, which may never end.
func TestInterruptible(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	in := cli.Interruptible(ctx, from, io.Discard)
	assert.False(t, cli.IsTerminal(in))
	_, err = to.WriteString("abc")
	require.NoError(t, err)
	part := make([]byte, 2)
	n, err := io.ReadFull(in, part)
	require.NoError(t, err)
	assert.Equal(t, "ab", string(part[:n]))

	ended := make(chan error)
	go func() {
		_, err := io.ReadAll(in)
		ended <- err
	}()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = in.Read(part)
	require.ErrorIs(t, err, context.Canceled)

	whole, err := io.ReadAll(cli.Interruptible(t.Context(), bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20)), io.Discard))
	require.NoError(t, err)
	assert.Len(t, whole, 1<<20)
}
