//go:build !unix

package indexed

import (
	"fmt"
	"io"
	"os"

	"github.com/primus-fl/primus/internal/sysmem"
)

// mapWhole returns the content of a file, which this system reads into memory.
func mapWhole(f *os.File) (content []byte, release func() error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if limit, err := sysmem.Read(); err == nil && uint64(info.Size()) > limit.Bytes {
		return nil, nil, fmt.Errorf("%s: this system reads the file whole, which takes %s, and this process can have %s (%s)",
			f.Name(), sysmem.Text(float64(info.Size())), sysmem.Text(float64(limit.Bytes)), limit.Source)
	}
	content, err = io.ReadAll(f)
	return content, func() error { return nil }, err
}
