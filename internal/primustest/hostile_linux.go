package primustest

import (
	"errors"
	"os"
	"syscall"
)

// HostileFiles are what may be in the place of a file, by name. Each is made at a path where
// nothing is.
func HostileFiles() map[string]func(path string) error {
	link := func(to string) func(string) error {
		return func(path string) error { return os.Symlink(to, path) }
	}
	return map[string]func(path string) error{
		"a named pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a socket":            func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
		"a directory":         func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to zeros":     link("/dev/zero"),
		"a link to a device":  link("/dev/tty"),
		"a link to memory":    link("/proc/self/mem"),
		"a link to a listing": link("/proc/self/fd"),
		"a link to nothing":   link("nothing"),
		"a link to itself":    func(path string) error { return os.Symlink(path, path) },
		"an empty file":       func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a terabyte of holes": func(path string) error { return holes(path, 1<<40) },
	}
}

// holes makes a file without content that takes no space.
func holes(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
