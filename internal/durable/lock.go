package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// LockFile is a file under an exclusive advisory lock. The lock ends with Unlock
// or with the process, however that dies; the file itself stays.
type LockFile struct {
	path    string
	warning string

	mu sync.Mutex
	// f is nil after Unlock. Guarded by mu.
	f *os.File
}

// Lock creates the file at path when it does not exist and locks it without waiting. When another
// process (or another LockFile of this one) has it, the error is a *LockedError. The file holds the
// process id of its holder unless the disk is full.
//
// A symbolic link is not followed, and a file that holds something else than a process id, such as
// one that is another file under a second name, is an error: locking it would end its content.
//
// On a file system without locks the result is not locked and Warning says so.
func Lock(path string) (*LockFile, error) {
	f, err := openRegular(path, os.O_RDWR|os.O_CREATE|noFollow)
	if _, irregular := errors.AsType[*IrregularError](err); irregular {
		return nil, err
	}
	if err != nil {
		return nil, Explain(err)
	}
	l := &LockFile{path: path, f: f}
	switch outcome, err := tryLock(f); outcome {
	case lockTaken:
		pid := readPID(f)
		f.Close()
		return nil, &LockedError{Path: path, PID: pid}
	case lockUnsupported:
		l.warning = fmt.Sprintf("%s: this file system has no locks (%v): nothing keeps a second process out", path, err)
	case lockBroken:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, Explain(err))
	}
	if err := heldPID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), l.close())
	}
	writePID(f)
	return l, nil
}

// Warning returns the reason why the lock has no effect, "" if it has.
func (l *LockFile) Warning() string { return l.warning }

// Unlock ends the lock. Further calls do nothing.
func (l *LockFile) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	// The process id is removed first, so that nobody reads the id of a process without the lock.
	err := errors.Join(l.f.Truncate(0), l.close())
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, Explain(err))
	}
	return nil
}

// close ends the lock and leaves the content. The caller holds l.mu, or nobody else has l.
func (l *LockFile) close() (err error) {
	// Closing alone is not enough: a child process that is being started holds
	// the descriptor too, until it executes its program.
	if l.warning == "" {
		err = unlock(l.f)
	}
	err = errors.Join(err, l.f.Close())
	l.f = nil
	return err
}

// lockOutcome is the result of an attempt to lock.
type lockOutcome int

const (
	lockHeld lockOutcome = iota
	lockTaken
	lockUnsupported
	lockBroken
)

// writePID ignores errors. On a full disk the lock holds without the id, and its holder may be
// about to free space.
func writePID(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

// maxPID is the largest size of a lock file.
const maxPID = 32

// heldPID returns an error for a file that is no lock file. A loss of power may leave zeros in
// place of the process id or of a part of it, before or behind the rest.
func heldPID(f *os.File) error {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxPID+1))
	if err != nil || len(text) <= maxPID && strings.Trim(string(text), "\x000123456789\n") == "" {
		return err
	}
	return errors.New("given a file that holds more than a process id, want a lock file: remove it if nothing needs it")
}

func readPID(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxPID))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
