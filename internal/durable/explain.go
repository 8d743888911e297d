package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// hint is an operating system error and what to do about it.
type hint struct {
	err  error
	text string
}

func hints() []hint {
	return []hint{
		{syscall.ENOSPC, "free space on this disk or choose a directory on another one"},
		{errQuota, "the disk quota is used up: free space or choose a directory on another disk"},
		{syscall.EFBIG, "the file would pass the size limit of the process or of the file system (see ulimit -f)"},
		{syscall.EROFS, "the file system is mounted read-only: choose another directory"},
		{syscall.ENOTDIR, "a part of the path is a file: remove it or choose another directory"},
		{fs.ErrPermission, "check the owner and the mode of the path or choose another one"},
	}
}

// explained marks an error that carries a hint, so that it gets only one.
type explained struct {
	err  error
	text string
}

func (e *explained) Error() string { return e.err.Error() + ": " + e.text }

func (e *explained) Unwrap() error { return e.err }

// Explain adds to a file system error what the user can do about it: for a full
// disk, a used-up quota, a read-only file system, a missing permission. Other
// errors, and those that were explained before, come back as they are.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*explained](err); done {
		return err
	}
	for _, h := range hints() {
		if errors.Is(err, h.err) {
			return &explained{err: err, text: h.text}
		}
	}
	return err
}

// LockedError reports that another process holds a lock.
type LockedError struct {
	Path string // the lock file
	PID  int    // the process that holds it, 0 if unknown
}

// Error names the lock file and the process.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}
