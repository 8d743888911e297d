package corpus

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/primus-fl/primus/internal/durable"
)

// File describes a file without its content.
type File struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Blocks   uint32    `json:"blocks"` // checksum of the first, the middle and the last bytes
}

// Paths returns the paths of the files.
func (c *Corpus) Paths() []string {
	paths := make([]string, len(c.sources))
	for i, s := range c.sources {
		paths[i] = s.path
	}
	return paths
}

// Describe describes files as they are now.
func Describe(paths []string) ([]File, error) {
	all := make([]File, len(paths))
	for i, path := range paths {
		f, err := durable.OpenRegular(path)
		if err != nil {
			return nil, durable.Explain(err)
		}
		info, err := f.Stat()
		if err == nil {
			all[i] = File{Path: path, Size: info.Size(), Modified: info.ModTime()}
			all[i].Blocks, err = blocks(f, info.Size())
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, durable.Explain(err)
		}
	}
	return all, nil
}

// Changes says how files differ from what they were, a line each.
func Changes(before, now []File) []string {
	was := map[string]File{}
	for _, f := range before {
		was[f.Path] = f
	}
	var all []string
	for _, f := range now {
		old, known := was[f.Path]
		delete(was, f.Path)
		switch {
		case !known:
			all = append(all, f.Path+" is new")
		case old.Size != f.Size:
			all = append(all, fmt.Sprintf("%s has %d bytes, it had %d", f.Path, f.Size, old.Size))
		case old.Blocks != f.Blocks:
			all = append(all, fmt.Sprintf("%s has other content of the same size, of %s", f.Path, f.Modified.Format(time.DateTime)))
		case !old.Modified.Equal(f.Modified):
			all = append(all, fmt.Sprintf("%s was written at %s", f.Path, f.Modified.Format(time.DateTime)))
		}
	}
	for _, f := range before {
		if _, gone := was[f.Path]; gone {
			all = append(all, f.Path+" is gone")
		}
	}
	return all
}

// block is how much of a file's beginning, middle and end tells it from others.
const block = 4 << 10

// blocks returns the CRC-32C of three blocks of a file, of all of a short one.
func blocks(f io.ReaderAt, size int64) (uint32, error) {
	at, buf := []int64{0, size/2 - block/2, size - block}, make([]byte, block)
	if size <= 3*block {
		at, buf = at[:1], make([]byte, size)
	}
	sum := uint32(0)
	for _, from := range at {
		n, err := f.ReadAt(buf, from)
		if err != nil && err != io.EOF { // the file may have become shorter
			return 0, err
		}
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), buf[:n])
	}
	return sum, nil
}
