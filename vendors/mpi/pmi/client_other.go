//go:build !unix

package pmi

import (
	"context"
	"errors"
)

// Client is the connection of a rank.
type Client struct{}

// Join returns an error: there are no Unix sockets here.
func Join(context.Context, string, int, int, string, func(error)) (*Client, error) {
	return nil, errors.New("pmi: jobs without a launcher need a Unix system")
}

// FD is the descriptor for MPICH.
func (c *Client) FD() int { return -1 }

// Stuck does nothing.
func (c *Client) Stuck(string) {}

// Close does nothing.
func (c *Client) Close() error { return nil }
