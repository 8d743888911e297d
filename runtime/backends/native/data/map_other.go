//go:build !unix

package data

import (
	"io"
	"os"
)

// mapFile returns the content of a file, which this system reads into memory.
func mapFile(f *os.File) (content []byte, release func() error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := fits(info.Size(), "this system reads the token cache whole"); err != nil {
		return nil, nil, err
	}
	content, err = io.ReadAll(f)
	return content, func() error { return nil }, err
}
