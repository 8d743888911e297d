package pmi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/internal/heartbeat"
)

// Client is the connection of a rank.
type Client struct {
	link    *heartbeat.Conn
	local   net.Conn // the other end of FD; nil without
	fd      int
	guest   Guest
	closing atomic.Bool
	came    atomic.Pointer[string]
	all     chan struct{} // closed when all ranks are there
	serving sync.WaitGroup
}

// Guest is what a Client needs of its process. Its functions are called at any time.
type Guest struct {
	Lost  func(error)   // is called once, when the job cannot go on
	State func() string // says in one line what the rank does; nil says nothing
}

// Attend connects a rank that a launcher of MPI has started with the server at an address, for
// which it waits until ctx ends. There is no FD: the launcher speaks with the library.
func Attend(ctx context.Context, address string, rank, ranks int, secret string, guest Guest) (*Client, error) {
	c, err := dial(ctx, address, rank, ranks, secret, guest)
	if err != nil {
		return nil, err
	}
	c.start()
	return c, nil
}

func dial(ctx context.Context, address string, rank, ranks int, secret string, guest Guest) (*Client, error) {
	l, err := heartbeat.Dial(ctx, address, secret, claimOf(rank, ranks))
	if err != nil {
		return nil, fmt.Errorf("join the job at %s, where rank 0 is: %w", address, err)
	}
	return &Client{link: l, fd: -1, guest: guest, all: make(chan struct{})}, nil
}

func (c *Client) start() {
	c.serving.Go(c.link.KeepAlive)
	c.serving.Go(c.listen)
}

// FD is the descriptor for MPICH, which closes it.
func (c *Client) FD() int { return c.fd }

// listen passes on what the server says.
func (c *Client) listen() {
	complete := sync.OnceFunc(func() { close(c.all) })
	for {
		word, rest, err := c.link.Receive()
		switch {
		case c.closing.Load():
			return
		case err != nil:
			c.guest.Lost(fmt.Errorf("rank 0 is gone: %s", heartbeat.Reason(err)))
			return
		case word == lineLost:
			c.guest.Lost(errors.New(rest))
			return
		case word == lineAsk && c.guest.State != nil:
			c.link.Send(lineState, c.guest.State())
		case word == lineCame:
			c.came.Store(&rest)
		case word == lineAll:
			complete()
		case word == lineMessage && c.local != nil:
			_, _ = c.local.Write([]byte(rest + "\n")) // an error is the end of MPICH
		}
	}
}

// All is closed when all ranks have come.
func (c *Client) All() <-chan struct{} { return c.all }

// Came returns the numbers of the ranks that had come when the server last told, "" before that.
func (c *Client) Came() string {
	if text := c.came.Load(); text != nil {
		return *text
	}
	return ""
}

// Leave ends the job for all ranks, which hear why. FD is not closed: MPICH, which may wait in
// MPI_Init_thread, would end the process.
func (c *Client) Leave(why string) error {
	c.closing.Store(true)
	c.link.Send(lineLeave, why)
	c.link.Close()
	var err error
	if c.local != nil {
		err = c.local.SetReadDeadline(time.Now()) // ends forward
	}
	c.serving.Wait()
	return err
}

// Stuck says that this rank waits too long somewhere. The server finds out which ranks hang, and
// ends the job.
func (c *Client) Stuck(where string) { c.link.Send(lineStuck, where) }

// Close ends the part of the rank in the job.
func (c *Client) Close() error {
	c.closing.Store(true)
	c.link.Send(lineBye, "")
	c.link.Close()
	var err error
	if c.local != nil {
		err = c.local.Close()
	}
	c.serving.Wait()
	return err
}
