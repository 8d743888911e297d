//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

var errPlatform = errors.New("sandbox: plugins run in a process of their own on linux only")

func newMemory() (*memory, error) { return nil, errPlatform }

func remap(*os.File, []byte, int) ([]byte, error) { return nil, errPlatform }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errPlatform }
