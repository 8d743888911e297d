//go:build unix

package indexed

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapWhole maps a file into memory and returns its content and a function that unmaps it.
func mapWhole(f *os.File) (content []byte, release func() error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	if size == 0 { // an empty file cannot be mapped
		return nil, func() error { return nil }, nil
	}
	if int64(int(size)) != size {
		return nil, nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: unix.EFBIG}
	}
	content, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return content, func() error { return unix.Munmap(content) }, nil
}
