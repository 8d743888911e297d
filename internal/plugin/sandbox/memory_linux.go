package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newMemory returns empty shared memory.
func newMemory() (*memory, error) {
	fd, err := unix.MemfdCreate("primus-plugin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: shared memory: %w", err)
	}
	return &memory{file: os.NewFile(uintptr(fd), "shared memory")}, nil
}

// remap unmaps old and maps the first bytes of a file; of none when size is 0.
func remap(file *os.File, old []byte, size int) ([]byte, error) {
	if len(old) > 0 {
		if err := unix.Munmap(old); err != nil {
			return nil, err
		}
	}
	if size == 0 {
		return nil, nil
	}
	return unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// socketPair returns two ends of a connection; ours has deadlines.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: socket: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("sandbox: socket: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "plugin"), os.NewFile(uintptr(fds[1]), "plugin"), nil
}
