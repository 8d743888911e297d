//go:build unix

package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Join connects a rank with the server at an address, for which it waits until ctx ends, and makes
// a descriptor for MPICH.
func Join(ctx context.Context, address string, rank, ranks int, secret string, guest Guest) (*Client, error) {
	c, err := dial(ctx, address, rank, ranks, secret, guest)
	if err != nil {
		return nil, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		c.link.Close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	file := os.NewFile(uintptr(pair[1]), "pmi")
	c.local, err = net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		c.link.Close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	c.fd = pair[0]
	c.serving.Go(c.forward)
	c.start()
	return c, nil
}

// forward passes on what MPICH says.
func (c *Client) forward() {
	lines := bufio.NewScanner(c.local)
	lines.Buffer(nil, 16<<10)
	for lines.Scan() {
		c.link.Send(lineMessage, lines.Text())
	}
}
