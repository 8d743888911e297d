package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/durable"
)

const (
	// MaxHeader is the largest header in bytes that the format allows.
	MaxHeader = 100_000_000

	metadataKey = "__metadata__"
	lengthBytes = 8
)

// Layout says where the bytes of a file lie.
type Layout struct {
	Header []byte           // the bytes before those of the tensors
	Begin  map[string]int64 // of each tensor, from the beginning of the file
	Size   int64            // of the file

	order []Entry
}

// Arrange returns the layout of a file, which programs that write parts of one file have in common.
// It does not look at the data of the entries. Names must be unique, not empty, valid UTF-8 and not
// __metadata__. metadata may be nil.
func Arrange(entries []Entry, metadata map[string]string) (Layout, error) {
	if err := checkByteOrder(); err != nil {
		return Layout{}, err
	}
	order := slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.dtype.Size(), a.dtype.Size()), cmp.Compare(a.name, b.name))
	})
	header, err := buildHeader(order, metadata)
	if err != nil {
		return Layout{}, err
	}
	l := Layout{Header: header, Begin: make(map[string]int64, len(order)), Size: int64(len(header)), order: order}
	for _, e := range order {
		l.Begin[e.name] = l.Size
		l.Size += e.size
	}
	return l, nil
}

// Write writes a complete file to w, arranged as by Arrange. After an error w holds a part of a
// file.
func Write(w io.Writer, entries []Entry, metadata map[string]string) error {
	l, err := Arrange(entries, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(l.Header); err != nil {
		return fmt.Errorf("safetensors: write the header: %w", err)
	}
	for _, e := range l.order {
		if err := e.writeTo(w); err != nil {
			return fmt.Errorf("safetensors: write tensor %q: %w", e.name, err)
		}
	}
	return nil
}

// WriteFile replaces the file at path by one with these tensors; a crash or a
// full disk leaves the old one.
func WriteFile(path string, entries []Entry, metadata map[string]string) error {
	return durable.WriteFile(path, func(w io.Writer) error { return Write(w, entries, metadata) })
}

func (e Entry) writeTo(w io.Writer) error {
	if e.write == nil {
		_, err := w.Write(e.data)
		return err
	}
	limited := &exactWriter{w: w, left: e.size}
	if err := e.write(limited); err != nil {
		return err
	}
	if limited.left != 0 {
		return fmt.Errorf("given %d bytes from its stream, want %d", e.size-limited.left, e.size)
	}
	return nil
}

// exactWriter refuses bytes beyond the announced number.
type exactWriter struct {
	w    io.Writer
	left int64
}

func (x *exactWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > x.left {
		return 0, fmt.Errorf("given %d bytes more than its dtype and shape ask for", int64(len(p))-x.left)
	}
	n, err := x.w.Write(p)
	x.left -= int64(n)
	return n, err
}

// buildHeader returns the length, the JSON and the padding for tensors whose
// data follows in the order given.
func buildHeader(layout []Entry, metadata map[string]string) ([]byte, error) {
	if err := checkHeaderSize(textSize(layout, metadata)); err != nil {
		return nil, err
	}
	begins := make(map[string]int64, len(layout))
	byName := make(map[string]Entry, len(layout))
	at := int64(0)
	for _, e := range layout {
		if err := checkName(e.name); err != nil {
			return nil, err
		}
		if _, twice := byName[e.name]; twice {
			return nil, fmt.Errorf("safetensors: tensor %q was given twice: names must be unique", e.name)
		}
		if !e.dtype.Valid() {
			return nil, fmt.Errorf("safetensors: tensor %q: given a zero Entry, want one made by FromTensor, FromSlice or Stream", e.name)
		}
		byName[e.name], begins[e.name] = e, at
		at += e.size
		if at < 0 {
			return nil, fmt.Errorf("safetensors: tensor %q: the data passes 2^63 bytes", e.name)
		}
	}

	header := make([]byte, lengthBytes, lengthBytes+96*(len(layout)+1))
	header = append(header, '{')
	if len(metadata) > 0 {
		text, err := metadataJSON(metadata)
		if err != nil {
			return nil, err
		}
		header = append(header, `"`+metadataKey+`":`...)
		header = append(header, text...)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		e := byName[name]
		if len(header) > lengthBytes+1 {
			header = append(header, ',')
		}
		header = appendTensor(header, e, begins[name])
	}
	header = append(header, '}')
	for len(header)%lengthBytes != 0 {
		header = append(header, ' ')
	}
	n := len(header) - lengthBytes
	if err := checkHeaderSize(n); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(header, uint64(n))
	return header, nil
}

// textSize returns the bytes of all names and metadata, which the header takes at least.
func textSize(layout []Entry, metadata map[string]string) int {
	n := 0
	for _, e := range layout {
		n += len(e.name)
	}
	for key, value := range metadata {
		n += len(key) + len(value)
	}
	return n
}

func checkHeaderSize(n int) error {
	if n > MaxHeader {
		return fmt.Errorf("safetensors: the header takes %d bytes or more, the format allows %d: write fewer tensors a file or less metadata", n, MaxHeader)
	}
	return nil
}

func appendTensor(header []byte, e Entry, begin int64) []byte {
	header = append(header, jsonString(e.name)...)
	header = fmt.Appendf(header, `:{"dtype":"%s","shape":[`, nameOf(e.dtype))
	for i, n := range e.shape {
		if i > 0 {
			header = append(header, ',')
		}
		header = fmt.Append(header, n)
	}
	return fmt.Appendf(header, `],"data_offsets":[%d,%d]}`, begin, begin+e.size)
}

func metadataJSON(metadata map[string]string) ([]byte, error) {
	text := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
			return nil, fmt.Errorf("safetensors: metadata %q: given %q, want valid UTF-8", key, metadata[key])
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, jsonString(key)...)
		text = append(text, ':')
		text = append(text, jsonString(metadata[key])...)
	}
	return append(text, '}'), nil
}

func checkName(name string) error {
	if name == "" || name == metadataKey || !utf8.ValidString(name) {
		return fmt.Errorf("safetensors: given the tensor name %q, want valid UTF-8 that is not empty and not %s", name, metadataKey)
	}
	return nil
}

// jsonString quotes valid UTF-8, which cannot be an error.
func jsonString(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic("BUG: safetensors: quote a string: " + err.Error())
	}
	return text
}
