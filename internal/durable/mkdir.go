package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// MkdirAll makes a directory and those above it that do not exist, and flushes the entry of each to
// the disk: what is synced below a new directory is lost with the name of that.
func MkdirAll(dir string) error {
	var missing []string
	for path := filepath.Clean(dir); path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Explain(err)
	}
	for _, path := range slices.Backward(missing) {
		if err := SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}
