package durable

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// IrregularError reports that a path is not a regular file but a directory, a named pipe, a socket,
// a device, or a symbolic link where none is followed.
type IrregularError struct {
	Path string
	Mode fs.FileMode
}

// Error names the path and what it is.
func (e *IrregularError) Error() string {
	return fmt.Sprintf("%s is %s, want a regular file", e.Path, e.Kind())
}

// Kind describes the kind of the file.
func (e *IrregularError) Kind() string {
	switch {
	case e.Mode.IsDir():
		return "a directory"
	case e.Mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case e.Mode&fs.ModeSocket != 0:
		return "a socket"
	case e.Mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	default:
		return "a device"
	}
}

// OpenRegular opens the regular file at path for reading. Anything else is an *IrregularError: a
// named pipe without a writer, which blocks whoever opens it, does not block OpenRegular.
func OpenRegular(path string) (*os.File, error) {
	return openRegular(path, os.O_RDONLY)
}

// OpenAppend opens the regular file at path for appending, a new one when there is none; see
// OpenRegular. It does not follow a symbolic link, which is an *IrregularError.
func OpenAppend(path string) (*os.File, error) {
	return openRegular(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow)
}

// OpenWrite opens an existing file for writing in place; see OpenAppend.
func OpenWrite(path string) (*os.File, error) {
	return openRegular(path, os.O_WRONLY|noFollow)
}

func openRegular(path string, flag int) (*os.File, error) {
	look := os.Stat
	if flag != os.O_RDONLY {
		look = os.Lstat
	}
	if info, err := look(path); err == nil && !info.Mode().IsRegular() {
		return nil, &IrregularError{Path: path, Mode: info.Mode()}
	}
	// The file may have been replaced since.
	f, err := os.OpenFile(path, flag|nonBlocking, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &IrregularError{Path: path, Mode: info.Mode()}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadRegular returns the content of the regular file at path, of which it reads at most limit
// bytes; see OpenRegular. A longer file is an error.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit { // as much may be a hole
		return nil, &LengthError{Path: path, Limit: limit}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &LengthError{Path: path, Limit: limit}
	}
	return text, nil
}

// LengthError reports that a file is longer than its content can be.
type LengthError struct {
	Path  string
	Limit int64
}

// Error names the path and the limit.
func (e *LengthError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.Path, e.Limit)
}
