//go:build !unix

package durable

import "errors"

// errQuota matches nothing: the system has no such error.
var errQuota = errors.New("disk quota exceeded")
