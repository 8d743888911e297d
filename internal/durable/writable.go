package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MayWrite returns the reason why no file can be created in dir, which need not exist, as far as it
// can be determined without writing. It returns nil if there is no known reason.
func MayWrite(dir string) error {
	for path := filepath.Clean(dir); ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path):
			continue
		case err != nil:
			return Explain(err)
		case !info.IsDir():
			return fmt.Errorf("%s is a file: remove it or choose another directory", path)
		}
		return Explain(access(path))
	}
}
