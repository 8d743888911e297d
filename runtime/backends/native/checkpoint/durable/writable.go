package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MayWrite reports why no file could be created in dir, which need not exist, as far as that can be seen without writing
// anything; nil when nothing speaks against it.
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
