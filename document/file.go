package document

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadFile returns the content of a regular file. Of one that is too large for [Parse] it returns
// as much as shows that. What is not a regular file, such as a pipe, is an [*Error] and is not
// opened, because that may block.
func ReadFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Origin: Origin{File: file}, Problem: fmt.Sprintf("given %s, want a regular file", fileKind(info.Mode()))}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

func fileKind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return mode.Type().String()
	}
}
