package heartbeat_test

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair returns both ends of a connection after a claim.
func pair(t *testing.T, claim string) (own, other *heartbeat.Conn) {
	t.Helper()
	near, far := net.Pipe()
	accepted := make(chan *heartbeat.Conn, 1)
	go func() {
		c, got, err := heartbeat.Accept(far, "secret")
		assert.NoError(t, err)
		assert.Equal(t, claim, got)
		c.Welcome()
		accepted <- c
	}()
	own, err := heartbeat.Join(near, "secret", claim)
	require.NoError(t, err)
	return own, <-accepted
}

func TestLines(t *testing.T) {
	own, other := pair(t, "rank 1 of 2")
	go own.KeepAlive()
	go own.Send("word", "two\nlines")
	word, rest, err := other.Receive()
	require.NoError(t, err)
	assert.Equal(t, "word: two lines", word+": "+rest)
	own.Close()
	own.Close()
	_, _, err = other.Receive()
	require.Error(t, err)
	assert.Equal(t, "its connection is closed", heartbeat.Reason(err))
}

// A process that ends before it has read everything resets its connection.
func TestReset(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	far, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, far.(*net.TCPConn).SetLinger(0))
	require.NoError(t, far.Close())
	_, err = heartbeat.Join(near, "secret", "rank 1 of 2")
	require.Error(t, err)
	assert.Equal(t, "its connection is closed", heartbeat.Reason(err))
}

func TestRefused(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		_, _, err := heartbeat.Accept(far, "secret")
		assert.EqualError(t, err, "rank 1 does not know the secret of the job")
	}()
	_, err := heartbeat.Join(near, "other", "rank 1")
	assert.EqualError(t, err, "rank 1 does not know the secret of the job")
}

// Whatever a stranger sends, no claim of it is accepted.
func FuzzAccept(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("claim 0000 rank 1 of 2\n"))
	f.Add([]byte("alive\nalive\n\n"))
	f.Add([]byte("a line that is no claim\n" + strings.Repeat("more", 4096))) // than is read before the refusal
	f.Fuzz(func(t *testing.T, sent []byte) {
		defer primustest.Measured(t, len(sent))()
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, near) }() // the greeting and the refusal
		go func() {
			_, _ = near.Write(sent)
			_ = near.Close()
		}()
		_, _, err := heartbeat.Accept(far, "secret")
		assert.Error(t, err)
	})
}

// A side that says nothing is lost after some time.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, other := pair(t, "rank 1 of 2")
		begun := time.Now()
		_, _, err := other.Receive()
		require.Error(t, err)
		assert.Equal(t, "nothing was heard of it for 15s", heartbeat.Reason(err))
		assert.Equal(t, heartbeat.Silence, time.Since(begun))
		own.Close()
	})
}

// A stranger that sends byte by byte takes no longer than one that sends nothing.
func TestSlowStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		var stranger sync.WaitGroup
		defer stranger.Wait()
		stranger.Go(func() {
			_, _ = near.Read(make([]byte, 1024)) // the greeting
			for _, err := near.Write([]byte("c")); err == nil; _, err = near.Write([]byte("c")) {
				time.Sleep(time.Second / 2)
			}
		})
		begun := time.Now()
		go func() { _, _ = io.Copy(io.Discard, near) }() // the refusal
		_, _, err := heartbeat.Accept(far, "secret")
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Less(t, time.Since(begun), 2*heartbeat.Silence)
	})
}

// stopped is a connection of a process that is stopped for an hour while it reads.
type stopped struct {
	net.Conn
	reads int
}

func (s *stopped) Read(b []byte) (int, error) {
	if s.reads++; s.reads == 3 { // the greeting and the welcome come before
		time.Sleep(time.Hour)
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Read(b)
}

// The time in which a process was stopped itself does not count.
func TestOwnSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			c, _, err := heartbeat.Accept(far, "secret")
			assert.NoError(t, err)
			c.Welcome()
			time.Sleep(time.Hour + time.Second/2)
			c.Send("word", "after all")
		}()
		own, err := heartbeat.Join(&stopped{Conn: near}, "secret", "rank 1")
		require.NoError(t, err)
		word, rest, err := own.Receive()
		require.NoError(t, err)
		assert.Equal(t, "word after all", word+" "+rest)
		own.Close()
	})
}
