package cpu

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

func TestCloseWaitsForStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate, result := New(), make(chan struct{}), make(chan error, 3)
		s := mustStream(t, b)
		p := mustAlloc(t, b, 100)
		require.NoError(t, b.Submit(s, func() { <-gate; assert.NoError(t, b.Free(p)) }))
		e := mustRecord(t, b, s)
		go func() { result <- b.SyncEvent(e) }()
		synctest.Wait()
		for range 2 {
			go func() { result <- b.Close() }()
		}
		synctest.Wait()
		assert.Empty(t, result)
		close(gate)
		for range 3 {
			require.NoError(t, <-result)
		}
	})
}

func TestCloseWaitsForStreamsBeingFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate, result := New(), make(chan struct{}), make(chan error, 2)
		s := mustStream(t, b)
		require.NoError(t, b.Submit(s, func() { <-gate }))
		go func() { result <- b.FreeStream(s) }()
		synctest.Wait()
		go func() { result <- b.Close() }()
		synctest.Wait()
		assert.Empty(t, result)
		close(gate)
		require.NoError(t, <-result)
		require.NoError(t, <-result)
	})
}

func TestCloseReportsFailures(t *testing.T) {
	t.Parallel()
	b := New()
	s := mustStream(t, b)
	require.NoError(t, b.Submit(s, func() { panic("bang") }))
	require.NoError(t, b.Submit(device.DefaultStream, func() { panic("boom") }))
	p := mustAlloc(t, b, 100)
	require.EqualError(t, b.Close(), "cpu: work in the default stream of device 0: panic: boom\n"+
		"cpu: work in stream 2: panic: bang\n"+
		"cpu: close: still allocated: 1 blocks, 100 bytes; free them first")
	require.NoError(t, b.Free(p))
	require.NoError(t, b.Close())
}

func TestUseAfterClose(t *testing.T) {
	t.Parallel()
	b := New()
	e, s := mustRecord(t, b, device.DefaultStream), mustStream(t, b)
	require.NoError(t, b.Usable())
	require.NoError(t, b.Close())
	tests := []struct {
		name string
		call func() error
		want string
	}{
		{"usable", b.Usable, "device: backend is closed: make another with cpu.New"},
		{"alloc", func() error { _, err := b.Alloc(1); return err }, "device: backend is closed: alloc of 1 bytes"},
		{"create event", func() error { _, err := b.CreateEvent(); return err }, "device: backend is closed: create event"},
		{"record event", func() error { return b.RecordEvent(e, s) }, "device: backend is closed: record event"},
		{"sync event", func() error { return b.SyncEvent(e) }, "device: backend is closed: sync event"},
		{"free event", func() error { return b.FreeEvent(e) }, "device: backend is closed: free event"},
		{"create stream", func() error { _, err := b.CreateStream(); return err }, "device: backend is closed: create stream"},
		{"submit", func() error { return b.Submit(s, func() {}) }, "device: backend is closed: submit to stream"},
		{"submit to default", func() error { return b.Submit(0, func() {}) }, "device: backend is closed: submit to stream"},
		{"free stream", func() error { return b.FreeStream(s) }, "device: backend is closed: free stream"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.call()
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, device.ErrClosed)
		})
	}
}

// TestCloseHammer closes the backend while it is used: calls succeed or report that the backend is
// closed, and nothing is left afterwards.
func TestCloseHammer(t *testing.T) {
	t.Parallel()
	for range 20 {
		b, start := New(), make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				<-start
				for {
					p, err := b.Alloc(4096)
					if err != nil {
						assert.ErrorIs(t, err, device.ErrClosed)
						return
					}
					assert.NoError(t, b.Free(p))
				}
			})
			wg.Go(func() {
				<-start
				for {
					if err := useStream(b); err != nil {
						assert.ErrorIs(t, err, device.ErrClosed)
						return
					}
				}
			})
		}
		wg.Go(func() {
			<-start
			_ = b.Close()
		})
		close(start)
		wg.Wait()
		require.NoError(t, b.Close())
		require.Zero(t, b.Stats().MappedBytes)
	}
}

// useStream uses streams and events of b until the first error.
func useStream(b *Backend) error {
	s, err := b.CreateStream()
	if err != nil {
		return err
	}
	e, err := b.CreateEvent()
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return b.Submit(device.DefaultStream, func() {}) },
		func() error { return b.Submit(s, func() {}) },
		func() error { return b.RecordEvent(e, s) },
		func() error { return b.SyncEvent(e) },
		func() error { return b.FreeEvent(e) },
		func() error { return b.FreeStream(s) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
