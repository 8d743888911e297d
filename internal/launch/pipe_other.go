//go:build !unix

package launch

import "errors"

// open fails: there are no pipes with names.
func (r *rankPipe) open() error {
	return errors.New("--launcher torchrun: this system has no named pipes; use --launcher direct")
}
