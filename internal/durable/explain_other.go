//go:build !unix

package durable

import "errors"

// errQuota matches no error, since the system has none for quotas.
var errQuota = errors.New("disk quota exceeded")
