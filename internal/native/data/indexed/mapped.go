package indexed

import (
	"fmt"
	"runtime/debug"

	"github.com/primus-fl/primus/internal/durable"
)

// File is the content of a file.
type File struct {
	Bytes   []byte
	release func() error
}

// OpenMapped maps a regular file. On a system that cannot map files, it reads the file.
func OpenMapped(path string) (*File, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, release, err := mapWhole(f)
	if err != nil {
		return nil, durable.Explain(err)
	}
	return &File{Bytes: content, release: release}, nil
}

// Close unmaps the file. Its content must not be read any more.
func (f *File) Close() error {
	f.Bytes = nil
	return f.release()
}

// Guard calls read and returns its error, or one for memory of a file that can no longer be read.
// what names the file. Other panics continue.
func Guard(what string, read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if _, ofMemory := fault.(interface{ Addr() uintptr }); !ofMemory {
			panic(fault)
		}
		err = fmt.Errorf("%s can no longer be read: %v", what, fault)
	}()
	return read()
}
