package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
)

// ErrOutsideRoots marks a path that leaves the configuration roots.
var ErrOutsideRoots = errors.New("config: path outside the configuration roots")

// Root is a directory tree that configuration files may be read from. A preset root holds
// modules/<framework>/, models/<framework>/ and platforms/. Paths that lead out of the tree are
// refused; symbolic links in it are followed.
type Root struct {
	// Name is the name of the root in messages, before the paths below it.
	Name string
	// FS is the tree.
	FS fs.FS
	// dir is the absolute directory of a root on disk, else empty.
	dir string
}

// DirRoot returns the root for a directory on disk, which need not exist.
func DirRoot(dir string) (Root, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Root{}, fmt.Errorf("config: root %q: %w", dir, err)
	}
	return Root{Name: dir, FS: durable.DirFS(absolute), dir: absolute}, nil
}

// location is a path below one of the roots of a [reader].
type location struct {
	root int
	path string
}

// display is the path of f as users see it.
func (r *reader) display(f location) string {
	root := r.roots[f.root]
	if root.dir != "" {
		return filepath.Join(root.Name, filepath.FromSlash(f.path))
	}
	return path.Join(root.Name, f.path)
}

// read returns the content of f; at most one byte more than a configuration file may have.
func (r *reader) read(f location) ([]byte, error) {
	handle, err := r.roots[f.root].FS.Open(f.path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(handle, document.MaxSize+1))
	return data, errors.Join(err, handle.Close())
}

func (r *reader) exists(f location) bool {
	info, err := fs.Stat(r.roots[f.root].FS, f.path)
	return err == nil && !info.IsDir()
}

// resolve finds the file that `extends: name` in the file from means: relative to the directory of
// from or absolute, inside one of the roots. A preset may also extend a file at the same place
// below another preset root.
func (r *reader) resolve(from location, name string) (location, error) {
	if filepath.IsAbs(name) {
		return r.locate(name)
	}
	relative := path.Join(path.Dir(from.path), filepath.ToSlash(name))
	if !fs.ValidPath(relative) {
		dir := r.roots[from.root].dir
		if dir == "" {
			return location{}, ErrOutsideRoots
		}
		return r.locate(filepath.Join(dir, filepath.FromSlash(relative)))
	}
	wanted := location{from.root, relative}
	if from.root == experimentRoot || r.exists(wanted) {
		return wanted, nil
	}
	for i := experimentRoot + 1; i < len(r.roots); i++ {
		if other := (location{i, relative}); r.exists(other) {
			return other, nil
		}
	}
	return wanted, nil
}

// locate maps an absolute path to the root that contains it.
func (r *reader) locate(absolute string) (location, error) {
	for i, root := range r.roots {
		if root.dir == "" {
			continue
		}
		relative, err := filepath.Rel(root.dir, absolute)
		if slashed := filepath.ToSlash(relative); err == nil && fs.ValidPath(slashed) {
			return location{i, slashed}, nil
		}
	}
	return location{}, ErrOutsideRoots
}

// rootNames lists the roots for messages.
func (r *reader) rootNames() string {
	names := make([]string, len(r.roots))
	for i, root := range r.roots {
		names[i] = root.Name
	}
	return strings.Join(names, ", ")
}

// Checkout returns the checkout of Primus that a file lies in, as an absolute path: the nearest
// directory above it with primus/configs/modules, "" for none.
func Checkout(file string) string {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "primus", "configs", "modules")); err == nil && info.IsDir() {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
