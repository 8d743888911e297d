package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/opregistry"
)

// Piece is a range of the bytes of a file, from byte At on.
type Piece struct {
	At   int64
	Data []byte
}

// SizeOf returns the memory that CopyPieces needs.
func SizeOf(pieces []Piece) (n int) {
	for _, p := range pieces {
		n += aligned(len(p.Data))
	}
	return n
}

// CopyPieces returns pieces whose data are copies in memory, made by the workers of a pool, and the
// rest of that memory. Numbers are aligned if memory is.
func CopyPieces(memory []byte, pieces []Piece, pool opregistry.Pool) (copies []Piece, rest []byte) {
	copies = slices.Clone(pieces)
	var parts copying
	for i, p := range pieces {
		n := len(p.Data)
		to := memory[:n:n]
		for at := 0; at < n; at += partSize {
			end := min(at+partSize, n)
			parts = append(parts, struct{ to, from []byte }{to[at:end], p.Data[at:end]})
		}
		copies[i].Data, memory = to, memory[aligned(n):]
	}
	pool.Run(len(parts), parts)
	return copies, memory
}

// partSize is how many bytes of a piece a worker copies at a time.
const partSize = 1 << 20

// copying is the task of copying parts of pieces.
type copying []struct{ to, from []byte }

func (c copying) Do(i int) { copy(c[i].to, c[i].from) }

func aligned(n int) int { return (n + 7) &^ 7 }

// Written is a piece that lies in a file, with its CRC-32C.
type Written struct {
	At   int64  `json:"at"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc"`
}

// Dir returns the directory to which the files are written.
func (w *Writer) Dir() string { return w.dir }

// Reserve adds a file of tensors whose data WritePieces writes, in this process or in others. When
// that is done, Complete has to follow.
func (w *Writer) Reserve(name string, layout safetensors.Layout) error {
	err := w.File(name, func(out io.Writer) error {
		_, err := out.Write(layout.Header)
		return err
	})
	if err != nil {
		return err
	}
	if err := extend(filepath.Join(w.dir, name), layout.Size); err != nil {
		w.err = fmt.Errorf("checkpoint: write %s: %w", name, durable.Explain(err))
	}
	return w.err
}

func extend(path string, size int64) error {
	f, err := durable.OpenWrite(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// WritePieces writes pieces of a file that a Writer has reserved, and flushes them.
func WritePieces(path string, pieces []Piece) (written []Written, err error) {
	f, err := durable.OpenWrite(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", durable.Explain(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, p := range pieces {
		if _, err := f.WriteAt(p.Data, p.At); err != nil {
			return nil, fmt.Errorf("checkpoint: write %s: %w", filepath.Base(path), durable.Explain(err))
		}
		written = append(written, Written{p.At, int64(len(p.Data)), crc32.Checksum(p.Data, castagnoli())})
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("checkpoint: flush %s: %w", filepath.Base(path), durable.Explain(err))
	}
	return written, nil
}

// Complete ends a file that was reserved. The pieces have to be all of its data, each byte once.
func (w *Writer) Complete(name string, layout safetensors.Layout, written []Written) error {
	if w.err != nil {
		return w.err
	}
	written = slices.SortedFunc(slices.Values(written), func(a, b Written) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Size, b.Size))
	})
	end, crc := int64(len(layout.Header)), crc32.Checksum(layout.Header, castagnoli())
	for _, p := range written {
		if p.At != end {
			break
		}
		end, crc = end+p.Size, joinCRC(crc, p.CRC, p.Size)
	}
	at := slices.IndexFunc(w.files, func(f manifestFile) bool { return f.Name == name })
	if end != layout.Size || at < 0 {
		w.err = fmt.Errorf("checkpoint: write %s: the pieces fit together up to byte %d, want %d", name, end, layout.Size)
		return w.err
	}
	w.files[at].Size, w.files[at].CRC32C = end, hex32(crc)
	return nil
}

// joinCRC returns the CRC-32C of two texts, one after the other, of which the second has size
// bytes.
//
// A CRC is a remainder of polynomials over the integers modulo 2, so that size zero bytes after the
// first text multiply its remainder by x^(8·size). The power is found by repeated squaring.
func joinCRC(first, second uint32, size int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<30 // x^0 and x^1: the highest bit is that of x^0
	for n := uint64(size) * 8; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return multiply(power, first) ^ second
}

// multiply returns the product of two remainders.
func multiply(a, b uint32) uint32 {
	product := uint32(0)
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return product
}
