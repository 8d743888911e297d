package parquet_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/native/data/parquet"
)

// The types of the compact protocol.
const (
	i32        = 5
	i64        = 6
	binaryText = 8
	listOf     = 9
	record     = 12
)

// structure writes fields of the compact protocol, given as number, type and content.
func structure(fields ...any) []byte {
	var b []byte
	last := 0
	for i := 0; i < len(fields); i += 3 {
		id := fields[i].(int)
		b = append(b, byte(id-last)<<4|byte(fields[i+1].(int)))
		last = id
		switch v := fields[i+2].(type) {
		case int:
			b = binary.AppendVarint(b, int64(v))
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return append(b, 0)
}

// list writes a list of structures.
func list(n int, items ...[]byte) []byte {
	return append(binary.AppendUvarint([]byte{15<<4 | record}, uint64(n)), bytes.Join(items, nil)...)
}

// file returns a file with a page of a column of text whose values may be missing. The page has
// size bytes without compression.
func file(codec, values, encoding, size int, page []byte) []byte {
	if codec == 0 {
		size = len(page)
	}
	header := structure(1, i32, 0, 2, i32, size, 3, i32, len(page), 5, record, structure(1, i32, values, 2, i32, encoding, 3, i32, 3))
	chunk := structure(3, record, structure(1, i32, 6, 4, i32, codec, 5, i64, values, 7, i64, len(header)+len(page), 9, i64, 4))
	return whole(append(header, page...), structure(
		2, listOf, list(2, structure(4, binaryText, "root", 5, i32, 1), structure(1, i32, 6, 3, i32, 1, 4, binaryText, "text")),
		4, listOf, list(1, structure(1, listOf, list(1, chunk), 3, i64, values)),
	))
}

func whole(pages, description []byte) []byte {
	b := append(append([]byte("PAR1"), pages...), description...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(description))), "PAR1"...)
}

// leveled returns the content of a page: a run of equal levels, and values.
func leveled(n int, level byte, values []byte) []byte {
	levels := append(binary.AppendUvarint(nil, uint64(n)<<1), level)
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...), values...)
}

// deltas returns n numbers that are all 0.
func deltas(n int) []byte {
	b := binary.AppendVarint(binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), 1), uint64(n)), 0)
	for range n>>20 + 1 {
		b = append(b, 0, 0)
	}
	return b
}

// zeros returns n zeros, compressed.
func zeros(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	require.NoError(t, err)
	_, err = io.Copy(w, io.LimitReader(endless{}, int64(n)))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// endless gives zeros.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A small file that stands for much costs no more than the budgets.
func TestBudgets(t *testing.T) {
	t.Parallel()
	const many = 1<<31 - 1
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"elements of the schema": {whole(nil, structure(2, listOf, list(16<<20, make([]byte, 16<<20)))), "the description of the file takes more than 536870912 bytes: write the rows to several files"},
		"row groups":             {whole(nil, structure(4, listOf, list(20<<20, make([]byte, 20<<20)))), "the description of the file takes more than 536870912 bytes"},
		"bytes of a page":        {file(6, 1, 0, many, leveled(1, 1, nil)), "the page takes more than 536870912 bytes: write the file with smaller pages"},
		"missing values":         {file(0, many, 0, 0, leveled(many, 0, nil)), "the page takes more than 67108864 steps"},
		"lengths":                {file(0, 1<<26, 6, 0, leveled(1<<26, 1, deltas(1<<26))), "the page takes more than 67108864 steps"},
		"prefixes":               {file(0, 1<<25, 7, 0, leveled(1<<25, 1, append(deltas(1<<25), deltas(1<<25)...))), "the page takes more than 67108864 steps"},
	} {
		_, err := read(t, tt.file, "text")
		limit := &meter.Error{}
		require.ErrorAs(t, err, &limit, name)
		assert.ErrorContains(t, err, tt.want, name)
	}
}

// counted calls a function before each read, with the number of reads before it.
type counted struct {
	io.ReaderAt
	n    int
	each func(n int)
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	c.each(c.n)
	c.n++
	return c.ReaderAt.ReadAt(b, off)
}

// The end of the context ends the work at the next read or within some thousand values, wherever it
// is.
func TestCancel(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	const values = 1 << 22
	plain := leveled(values, 1, make([]byte, 4*values))
	for name, b := range map[string][]byte{
		"missing values": file(0, values, 0, 0, leveled(values, 0, nil)),
		"plain values":   file(0, values, 0, 0, plain),
		"lengths":        file(0, values, 6, 0, leveled(values, 1, deltas(values))),
		"unpacking":      file(6, values, 0, 64<<20, zeros(t, 64<<20)),
		"description":    whole(nil, structure(2, listOf, list(4<<20, make([]byte, 4<<20)))),
	} {
		reads := 0
		for at := 0; ; at++ { // at each read in turn
			ctx, cancel := context.WithCancelCause(t.Context())
			in := &counted{ReaderAt: bytes.NewReader(b), each: func(n int) {
				if n == at {
					cancel(gone)
				}
			}}
			after := 0
			f, err := parquet.Open(ctx, in, int64(len(b)))
			if err == nil {
				err = f.Texts(ctx, "text", func([]byte) error {
					if ctx.Err() != nil {
						after++
					}
					return nil
				})
			}
			cancel(nil)
			if in.n <= at {
				reads = at
				break
			}
			require.ErrorIs(t, err, gone, "%s: read %d", name, at)
			assert.LessOrEqual(t, in.n, at+1, "%s: read %d", name, at)
			assert.LessOrEqual(t, after, 4096, "%s: read %d", name, at)
		}
		assert.Greater(t, reads, 1, name)
	}
	ctx, cancel := context.WithCancelCause(t.Context()) // while values are passed on
	b := file(0, values, 0, 0, plain)
	f, err := parquet.Open(ctx, bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	n := 0
	err = f.Texts(ctx, "text", func([]byte) error {
		if n++; n == 1000 {
			cancel(gone)
		}
		return nil
	})
	require.ErrorIs(t, err, gone)
	assert.LessOrEqual(t, n, 1000+4096)
}
