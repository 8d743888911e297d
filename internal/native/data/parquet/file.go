package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/internal/meter"
)

const (
	magic     = "PAR1"
	encrypted = "PARE"

	// maxDescription bounds the memory of the description of a file: its bytes, and what is made of
	// them.
	maxDescription = 512 << 20
)

// The types of columns and the compressions of pages.
const typeByteArray = 6

type codec int64

const (
	uncompressed codec = 0
	snapped      codec = 1
	gzipped      codec = 2
	zstded       codec = 6
)

// String returns the name of the compression in the format.
func (c codec) String() string {
	names := []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("codec %d", int64(c))
	}
	return names[c]
}

// column is a leaf of the schema.
type column struct {
	name     string // with dots between the structures that it lies in
	kind     int64
	optional int  // how many of it and of its structures may be missing
	repeated bool // it is in a list
}

// chunk is the values of a column in a row group.
type chunk struct {
	kind, values           int64
	codec                  codec
	data, dictionary, size int64 // bytes of the file
	hasDictionary          bool
}

// rowGroup is some rows of a file.
type rowGroup struct {
	rows   int64
	chunks []chunk // of each column
}

// File is an open Parquet file.
type File struct {
	r       io.ReaderAt
	size    int64
	columns []column
	groups  []rowGroup
}

// Open reads the description of a file of some bytes. It ends with ctx, and with a *meter.Error if
// the description takes too much.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	tail := make([]byte, 8)
	if size < 12 {
		return nil, fmt.Errorf("it has %d bytes, want at least 12: this is no Parquet file", size)
	}
	if _, err := r.ReadAt(tail, size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case magic:
	case encrypted:
		return nil, errors.New("it is encrypted, which is not supported")
	default:
		return nil, fmt.Errorf("byte %d: given %q, want %q: this is no Parquet file, or it is not whole", size-4, tail[4:], magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > size-12 {
		return nil, fmt.Errorf("byte %d: given a description of %d bytes in a file of %d, want at most %d", size-8, n, size, size-12)
	}
	m := meter.New(ctx, "the description of the file", "write the rows to several files, with larger row groups", meter.Budget{Bytes: maxDescription})
	if err := m.Allocate(n); err != nil {
		return nil, err
	}
	footer := make([]byte, n)
	if err := m.ReadAt(r, footer, size-8-n); err != nil {
		return nil, err
	}
	if err := f.parse(footer, m); err != nil {
		return nil, fmt.Errorf("byte %d: the description of the file: %w", size-8-n, err)
	}
	return f, nil
}

// element is a node of the schema, in the order of a walk.
type element struct {
	name                       string
	kind, repetition, children int64
}

func (f *File) parse(footer []byte, m *meter.Meter) error {
	t := &thrift{b: footer, meter: m}
	var schema []element
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 2 && kind == typeList:
			t.list(int64(unsafe.Sizeof(element{})), func(byte) { schema = append(schema, t.element()) })
		case id == 4 && kind == typeList:
			t.list(int64(unsafe.Sizeof(rowGroup{})), func(byte) { f.groups = append(f.groups, t.rowGroup()) })
		default:
			return false
		}
		return true
	})
	if t.err != nil {
		return t.err
	}
	if len(schema) == 0 {
		return errors.New("it has no schema")
	}
	rest, err := f.walk(schema[1:], schema[0].children, column{}, 0)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("the schema has %d elements that belong to nothing", len(rest))
	}
	for i, g := range f.groups {
		if len(g.chunks) != len(f.columns) {
			return fmt.Errorf("row group %d has %d columns, and the schema %d", i, len(g.chunks), len(f.columns))
		}
	}
	return nil
}

// walk adds the columns below some elements of the schema and returns the elements after them.
func (f *File) walk(schema []element, children int64, above column, depth int) ([]element, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema has more than %d levels", maxDepth)
	}
	for range children {
		if len(schema) == 0 {
			return nil, errors.New("the schema is not whole")
		}
		e := schema[0]
		schema = schema[1:]
		c := column{name: strings.TrimPrefix(above.name+"."+e.name, "."), kind: e.kind, optional: above.optional, repeated: above.repeated || e.repetition == 2}
		if e.repetition == 1 {
			c.optional++
		}
		if e.children == 0 {
			f.columns = append(f.columns, c)
			continue
		}
		var err error
		if schema, err = f.walk(schema, e.children, c, depth+1); err != nil {
			return nil, err
		}
	}
	return schema, nil
}

func (t *thrift) element() (e element) {
	e.kind = -1
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeI32:
			e.kind = t.int()
		case id == 3 && kind == typeI32:
			e.repetition = t.int()
		case id == 4 && kind == typeBinary:
			e.name = string(t.bytes())
		case id == 5 && kind == typeI32:
			e.children = t.int()
		default:
			return false
		}
		return true
	})
	return e
}

func (t *thrift) rowGroup() (g rowGroup) {
	t.structure(func(id int, kind byte) bool {
		switch {
		case id == 1 && kind == typeList:
			t.list(int64(unsafe.Sizeof(chunk{})), func(byte) { g.chunks = append(g.chunks, t.chunk()) })
		case id == 3 && kind == typeI64:
			g.rows = t.int()
		default:
			return false
		}
		return true
	})
	return g
}

func (t *thrift) chunk() (c chunk) {
	t.structure(func(id int, kind byte) bool {
		if id != 3 || kind != typeStruct {
			return false
		}
		t.structure(func(id int, kind byte) bool {
			into := map[int]*int64{1: &c.kind, 4: (*int64)(&c.codec), 5: &c.values, 7: &c.size, 9: &c.data, 11: &c.dictionary}[id]
			if into == nil || kind != typeI32 && kind != typeI64 {
				return false
			}
			*into = t.int()
			c.hasDictionary = c.hasDictionary || id == 11
			return true
		})
		return true
	})
	return c
}

// Columns returns the names of the columns of text.
func (f *File) Columns() []string {
	var names []string
	for _, c := range f.columns {
		if c.kind == typeByteArray && !c.repeated {
			names = append(names, c.name)
		}
	}
	return names
}

// Texts passes the values of a column to yield, in the order of the rows. A missing value is nil.
// The memory of a value belongs to the caller until the next one. It ends with ctx, and with a
// *meter.Error if a page takes too much.
func (f *File) Texts(ctx context.Context, name string, yield func(text []byte) error) error {
	at := slices.IndexFunc(f.columns, func(c column) bool { return c.name == name })
	if at < 0 || f.columns[at].kind != typeByteArray || f.columns[at].repeated {
		return fmt.Errorf("it has no column %q of text, it has %s: name the column of the text with text_key", name, strings.Join(f.Columns(), ", "))
	}
	for i, g := range f.groups {
		r := &pages{f: f, column: f.columns[at], chunk: g.chunks[at]}
		if err := r.read(ctx, yield); err != nil {
			return fmt.Errorf("row group %d, column %s: %w", i, name, err)
		}
		if r.done != g.rows {
			return fmt.Errorf("row group %d, column %s: it has %d values, want %d", i, name, r.done, g.rows)
		}
	}
	return nil
}
