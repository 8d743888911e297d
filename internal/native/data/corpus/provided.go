package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/primus-fl/primus"
	"github.com/primus-fl/primus/internal/durable"
)

// Provided returns where the data of an example is: name, if it is on the disk or does not come
// with the program, and else a copy in the user's cache folder.
func Provided(name string) (string, error) {
	file := path.Clean(filepath.ToSlash(name))
	if info, err := fs.Stat(primus.Files(), file); err != nil || info.IsDir() {
		return name, nil
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	return unpackProvided(file)
}

// providedText returns the folder of the default corpus where there are no sources of Go: a copy of
// the documentation of the program.
func providedText() (string, error) { return unpackProvided("docs") }

// unpackProvided writes a file or a folder that comes with the program below the user's cache
// folder, unless it is there already, and returns its path. Other versions have other folders.
func unpackProvided(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	texts := map[string][]byte{}
	sum := sha256.New()
	err = fs.WalkDir(primus.Files(), name, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		texts[file], err = fs.ReadFile(primus.Files(), file)
		fmt.Fprintf(sum, "%q %d %s", file, len(texts[file]), texts[file])
		return err
	})
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "primus", "files", hex.EncodeToString(sum.Sum(nil)[:8]))
	for file, text := range texts {
		target := filepath.Join(root, filepath.FromSlash(file))
		if there, err := durable.ReadRegular(target, int64(len(text))); err == nil && bytes.Equal(there, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return "", fmt.Errorf("unpack %s, which comes with the program: %w", file, durable.Explain(err))
		}
		err := durable.WriteFile(target, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("unpack %s, which comes with the program: %w", file, durable.Explain(err))
		}
	}
	return filepath.Join(root, filepath.FromSlash(name)), nil
}
