//go:build unix

package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Client is the connection of a rank.
type Client struct {
	link    *link
	local   net.Conn // the other end of FD
	fd      int
	lost    func(error)
	closing atomic.Bool
	serving sync.WaitGroup
}

// Join connects a rank with the server at an address, for which it waits until ctx ends. lost is
// called once, when the job cannot go on.
func Join(ctx context.Context, address string, rank, ranks int, secret string, lost func(error)) (*Client, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("reach rank 0 at %s: %w", address, err)
	}
	l := newLink(conn)
	word, nonce, err := l.receive()
	if err == nil && word != "primus" {
		err = fmt.Errorf("got %q, want the greeting of primus", word)
	}
	if err == nil {
		l.send("rank", fmt.Sprintf("%d of %d %s", rank, ranks, proof(secret, nonce, rank, ranks)))
		if word, nonce, err = l.receive(); err == nil && word == lineLost {
			err = errors.New(nonce)
		}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("join the job at %s: %w", address, err)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		l.close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	file := os.NewFile(uintptr(pair[1]), "pmi")
	local, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		l.close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	c := &Client{link: l, local: local, fd: pair[0], lost: lost}
	c.serving.Go(l.keepAlive)
	c.serving.Go(c.forward)
	c.serving.Go(c.listen)
	return c, nil
}

// dial connects with the server, which may start later than this rank.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second / 10):
		}
	}
}

// FD is the descriptor for MPICH, which closes it.
func (c *Client) FD() int { return c.fd }

// forward passes on what MPICH says.
func (c *Client) forward() {
	lines := bufio.NewScanner(c.local)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		c.link.send(lineMessage, lines.Text())
	}
}

// listen passes on what the server says.
func (c *Client) listen() {
	for {
		word, rest, err := c.link.receive()
		switch {
		case c.closing.Load():
			return
		case err != nil:
			c.lost(fmt.Errorf("rank 0 is gone: %s", reason(err)))
			return
		case word == lineLost:
			c.lost(errors.New(rest))
			return
		case word == lineMessage:
			_, _ = c.local.Write([]byte(rest + "\n")) // an error is the end of MPICH
		}
	}
}

// Close ends the part of the rank in the job.
func (c *Client) Close() error {
	c.closing.Store(true)
	c.link.send(lineBye, "")
	c.link.close()
	err := c.local.Close()
	c.serving.Wait()
	return err
}
