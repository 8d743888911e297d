//go:build !unix

package pmi

import (
	"context"
	"errors"
)

// Join returns an error: there are no Unix sockets here.
func Join(context.Context, string, int, int, string, Guest) (*Client, error) {
	return nil, errors.New("pmi: jobs without a launcher need a Unix system")
}
