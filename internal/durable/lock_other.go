//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package durable

import (
	"errors"
	"os"
)

func tryLock(*os.File) (lockOutcome, error) {
	return lockUnsupported, errors.ErrUnsupported
}

func unlock(*os.File) error { return errors.ErrUnsupported }
