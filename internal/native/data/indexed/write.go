package indexed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/primus-fl/primus/internal/durable"
)

// ExistsError says that a dataset is already there.
type ExistsError struct{ Path string }

// Error names the file.
func (e *ExistsError) Error() string { return e.Path + " exists already" }

// Writer writes the documents of a dataset.
type Writer struct {
	w       io.Writer
	dtype   DType
	lengths []int32
	now     int64 // tokens of the document that is being written
	buf     []byte
}

// Write writes a dataset: it calls fill, which writes the documents, and then writes the index.
// Both files appear under their names when they are whole; without an index there is no dataset. A
// dataset that is there already is an *ExistsError, unless it may be replaced.
func Write(prefix string, dtype DType, replace bool, fill func(*Writer) error) error {
	if dtype.Width() == 0 {
		return fmt.Errorf("indexed: given tokens of %v, want uint8, uint16 or int32", dtype)
	}
	bin, idx := Paths(prefix)
	for _, path := range []string{idx, bin} {
		if _, err := os.Lstat(path); err == nil && !replace {
			return &ExistsError{path}
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return durable.Explain(err)
		}
	}
	w := &Writer{dtype: dtype}
	temp := bin + durable.TempName("")
	if err := durable.Create(temp, func(to io.Writer) error {
		w.w = to
		if err := fill(w); err != nil {
			return err
		}
		return w.whole()
	}); err != nil {
		return err
	}
	err := os.Remove(idx) // it does not belong to the new tokens
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Rename(temp, bin)
	}
	if err != nil {
		return errors.Join(durable.Explain(err), os.Remove(temp))
	}
	return durable.WriteFile(idx, w.index)
}

// Add appends tokens to the present document. An id that the type cannot hold is an error.
func (w *Writer) Add(ids []int32) error {
	limit := int32(math.MaxInt32)
	switch w.dtype {
	case Uint8:
		limit = math.MaxUint8
	case Uint16:
		limit = math.MaxUint16
	}
	for _, id := range ids {
		if id < 0 || id > limit {
			return fmt.Errorf("indexed: given the token %d, want 0 to %d, which %v holds", id, limit, w.dtype)
		}
	}
	w.buf = Append(w.buf[:0], ids, w.dtype.Width())
	if w.now += int64(len(ids)); w.now > math.MaxInt32 {
		return fmt.Errorf("indexed: document %d has more than %d tokens: cut it", len(w.lengths), math.MaxInt32)
	}
	_, err := w.w.Write(w.buf)
	return err
}

// EndDocument ends the present document.
func (w *Writer) EndDocument() {
	w.lengths = append(w.lengths, int32(w.now))
	w.now = 0
}

// Documents returns the number of documents written.
func (w *Writer) Documents() int { return len(w.lengths) }

// whole returns an error if the last document has no end.
func (w *Writer) whole() error {
	if w.now > 0 {
		return fmt.Errorf("indexed: the last document has %d tokens and no end", w.now)
	}
	return nil
}

// index writes the index.
func (w *Writer) index(to io.Writer) error {
	n := uint64(len(w.lengths))
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint64(b, version)
	b = append(b, byte(w.dtype))
	b = binary.LittleEndian.AppendUint64(b, n)
	b = binary.LittleEndian.AppendUint64(b, n+1)
	put := func(v uint64, width int) error {
		if width == 4 {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		} else {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		if len(b) < 1<<16 {
			return nil
		}
		_, err := to.Write(b)
		b = b[:0]
		return err
	}
	for _, length := range w.lengths {
		if err := put(uint64(length), 4); err != nil {
			return err
		}
	}
	at := uint64(0)
	for _, length := range w.lengths {
		if err := put(at, 8); err != nil {
			return err
		}
		at += uint64(length) * uint64(w.dtype.Width())
	}
	for i := range n + 1 {
		if err := put(i, 8); err != nil {
			return err
		}
	}
	_, err := to.Write(b)
	return err
}
