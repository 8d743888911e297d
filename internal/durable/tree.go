package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DirFS is [os.DirFS] for files that somebody else may have put there: opening what is neither a
// regular file nor a directory is an *IrregularError, and does not block.
func DirFS(dir string) fs.FS { return tree{below(dir)} }

// RootFS is DirFS for a root, which no link leads out of.
func RootFS(root *os.Root) fs.FS { return tree{rooted{root}} }

// place opens what a name below it leads to, and looks at it.
type place interface {
	open(name string) (*os.File, error)
	stat(name string) (fs.FileInfo, error)
}

type below string

func (b below) open(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(string(b), name), os.O_RDONLY|nonBlocking, 0)
}

func (b below) stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.Join(string(b), name)) }

type rooted struct{ *os.Root }

func (r rooted) open(name string) (*os.File, error) {
	return r.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
}

func (r rooted) stat(name string) (fs.FileInfo, error) { return r.Root.Stat(name) }

// tree is what DirFS and RootFS return.
type tree struct{ in place }

// Open opens a regular file or a directory.
func (t tree) Open(name string) (fs.File, error) {
	if _, err := t.Stat(name); err != nil {
		return nil, err
	}
	f, err := t.in.open(filepath.FromSlash(name)) // it may have been replaced since
	if err != nil {
		return nil, named(err, name)
	}
	info, err := f.Stat()
	if err = usable(name, info, err); err != nil {
		f.Close()
		return nil, named(err, name)
	}
	return f, nil
}

// Stat describes a regular file or a directory.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := t.in.stat(filepath.FromSlash(name))
	if err = usable(name, info, err); err != nil {
		return nil, named(err, name)
	}
	return info, nil
}

// usable returns err, or an error for what is neither a regular file nor a directory.
func usable(name string, info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &IrregularError{Path: name, Mode: info.Mode()}
	}
	return err
}

// named returns an error with the name of a file below the directory for its path.
func named(err error, name string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Path = name
	}
	return err
}

var _ fs.StatFS = tree{}
