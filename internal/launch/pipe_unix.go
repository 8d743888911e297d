//go:build unix

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// open makes the pipe and opens both ends.
func (r *rankPipe) open() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syscall.Mkfifo(r.path, 0o600); err != nil {
		return fmt.Errorf("pipe %s: %w", r.path, err)
	}
	var err error
	if r.read, err = os.OpenFile(r.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return err
	}
	if r.write, err = os.OpenFile(r.path, os.O_WRONLY, 0); err != nil {
		return errors.Join(err, r.read.Close())
	}
	return nil
}
