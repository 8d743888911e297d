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

	"github.com/primus-fl/primus/internal/heartbeat"
)

// Client is the connection of a rank.
type Client struct {
	link    *heartbeat.Conn
	local   net.Conn // the other end of FD
	fd      int
	lost    func(error)
	closing atomic.Bool
	serving sync.WaitGroup
}

// Join connects a rank with the server at an address, for which it waits until ctx ends. lost is
// called once, when the job cannot go on.
func Join(ctx context.Context, address string, rank, ranks int, secret string, lost func(error)) (*Client, error) {
	l, err := heartbeat.Dial(ctx, address, secret, claimOf(rank, ranks))
	if err != nil {
		return nil, fmt.Errorf("join the job at %s, where rank 0 is: %w", address, err)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	file := os.NewFile(uintptr(pair[1]), "pmi")
	local, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		l.Close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	c := &Client{link: l, local: local, fd: pair[0], lost: lost}
	c.serving.Go(l.KeepAlive)
	c.serving.Go(c.forward)
	c.serving.Go(c.listen)
	return c, nil
}

// FD is the descriptor for MPICH, which closes it.
func (c *Client) FD() int { return c.fd }

// forward passes on what MPICH says.
func (c *Client) forward() {
	lines := bufio.NewScanner(c.local)
	lines.Buffer(nil, 16<<10)
	for lines.Scan() {
		c.link.Send(lineMessage, lines.Text())
	}
}

// listen passes on what the server says.
func (c *Client) listen() {
	for {
		word, rest, err := c.link.Receive()
		switch {
		case c.closing.Load():
			return
		case err != nil:
			c.lost(fmt.Errorf("rank 0 is gone: %s", heartbeat.Reason(err)))
			return
		case word == lineLost:
			c.lost(errors.New(rest))
			return
		case word == lineMessage:
			_, _ = c.local.Write([]byte(rest + "\n")) // an error is the end of MPICH
		}
	}
}

// Stuck says that this rank waits too long somewhere. The server finds out which ranks hang, and
// ends the job.
func (c *Client) Stuck(where string) { c.link.Send(lineStuck, where) }

// Close ends the part of the rank in the job.
func (c *Client) Close() error {
	c.closing.Store(true)
	c.link.Send(lineBye, "")
	c.link.Close()
	err := c.local.Close()
	c.serving.Wait()
	return err
}
