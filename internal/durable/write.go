package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
)

// TempMark is part of every temporary name that TempName makes.
const TempMark = ".tmp-"

const bufferSize = 1 << 18

// createIn is what errors call creating a file.
const createIn = "create a file in"

// TempName returns base with TempMark and a random suffix.
func TempName(base string) string {
	return base + TempMark + strconv.FormatUint(rand.Uint64(), 36)
}

// WriteFile replaces the file at path with the output of write. The parent directory must exist.
// When write or the disk fails, the temporary file is removed and the file at path is as it was. A
// new file gets the mode 0644 before the umask. A device is not replaced.
func WriteFile(path string, write func(w io.Writer) error) error {
	return replace(path, 0o644, write)
}

// WritePrivate is WriteFile for a file that only its owner may read: it gets the mode 0600.
func WritePrivate(path string, write func(w io.Writer) error) error {
	return replace(path, 0o600, write)
}

func replace(path string, mode fs.FileMode, write func(w io.Writer) error) error {
	if err := refuseDevice(path); err != nil {
		return err
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	temp := filepath.Join(dir, TempName("."+base))
	if err := create(temp, mode, write); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(Explain(err), remove(temp))
	}
	return SyncDir(dir)
}

// Create writes a new file and flushes it to the disk. It is an error when path
// exists. When write or the disk fails, the file is removed.
func Create(path string, write func(w io.Writer) error) error { return create(path, 0o644, write) }

// refuseDevice returns an error for a device, such as /dev/null, which others need.
func refuseDevice(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeDevice != 0 {
		return &IrregularError{Path: path, Mode: info.Mode()}
	}
	return nil
}

func create(path string, mode fs.FileMode, write func(w io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		at.Op, at.Path = createIn, filepath.Dir(path)
		return &explained{err, "make the directory, or choose another one"}
	}
	if err != nil {
		return Explain(err)
	}
	done := false
	defer func() {
		if done {
			return
		}
		err = errors.Join(err, ignoreClosed(f.Close()), remove(path))
	}()
	w := bufio.NewWriterSize(f, bufferSize)
	if err := write(w); err != nil {
		return Explain(err)
	}
	if err := w.Flush(); err != nil {
		return Explain(err)
	}
	if err := f.Sync(); err != nil {
		return Explain(err)
	}
	if err := f.Close(); err != nil {
		return Explain(err)
	}
	done = true
	return nil
}

// SyncDir flushes the entries of a directory to the disk. On Windows, where
// directories cannot be flushed, it does nothing.
func SyncDir(dir string) error {
	if goruntime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return Explain(err)
	}
	err = d.Sync()
	return Explain(errors.Join(err, d.Close()))
}

// CheckWritable returns the reason why no file can be created in dir, nil if files can be created.
func CheckWritable(dir string) error {
	probe := filepath.Join(dir, TempName(".probe"))
	if err := Create(probe, func(io.Writer) error { return nil }); err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			at.Op, at.Path = createIn, dir // nobody has named the probe
		}
		return err
	}
	return remove(probe)
}

// CheckFileWritable returns the reason why WriteFile could not write path, nil if it could.
func CheckFileWritable(path string) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, want the name of a file", path)
	}
	if err := refuseDevice(path); err != nil {
		return err
	}
	return CheckWritable(filepath.Dir(path))
}

// RemoveTemps removes the entries of dir whose names match pattern and contain TempMark, and
// returns these names. The caller ensures that no process is writing them. A directory that does
// not exist has none.
func RemoveTemps(dir string, pattern *regexp.Regexp) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Explain(err)
	}
	var removed []string
	var problems error
	for _, e := range entries {
		if !pattern.MatchString(e.Name()) || !strings.Contains(e.Name(), TempMark) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			problems = errors.Join(problems, Explain(err))
			continue
		}
		removed = append(removed, e.Name())
	}
	return removed, problems
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the temporary file: %w", Explain(err))
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
