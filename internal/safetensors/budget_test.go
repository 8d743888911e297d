package safetensors_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/safetensors"
)

// A header with more tokens than any model has is refused before it is read to its end.
func TestHeaderBudget(t *testing.T) {
	t.Parallel()
	header := `{"a":{"dtype":"U8","data_offsets":[0,0],"shape":[` + strings.Repeat("1,", 9<<20) + `1]}}`
	_, err := parse(file(header, 0))
	limit := &meter.Error{}
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "m.safetensors: the header takes more than 8388608 tokens: is this a safetensors file? If it is, divide its tensors among several files")
	for _, n := range []uint64{safetensors.MaxHeader + 1, math.MaxInt64, math.MaxUint64} {
		_, err := parse(binary.LittleEndian.AppendUint64(nil, n))
		require.ErrorAs(t, err, &limit)
		assert.ErrorContains(t, err, fmt.Sprintf("given a header of %d bytes: the header takes more than 100000000 bytes: is this a safetensors file?", n))
	}
}

// ending ends a context before a read. It counts the bytes that are read after it.
type ending struct {
	io.ReaderAt
	reads, at, after int
	end              func()
}

func (e *ending) ReadAt(b []byte, off int64) (int, error) {
	if e.reads == e.at {
		e.end()
	}
	if e.reads >= e.at {
		e.after += len(b)
	}
	e.reads++
	return e.ReaderAt.ReadAt(b, off)
}

// The end of the context ends the reading of a header and of tensors at any moment.
func TestCancel(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	const size = 20 << 20
	var header strings.Builder
	fmt.Fprintf(&header, `{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}`, size, size)
	for i := range 2000 { // more tokens than are read between two looks at the context
		fmt.Fprintf(&header, `,"%d":{"dtype":"U8","shape":[0],"data_offsets":[%d,%d]}`, i, size, size)
	}
	content := file(header.String()+"}", size)
	for at := 30; at >= 0; at-- {
		ctx, cancel := context.WithCancelCause(t.Context())
		in := &ending{ReaderAt: bytes.NewReader(content), at: at, end: func() { cancel(gone) }}
		f, err := safetensors.NewFile(ctx, "m.safetensors", in, int64(len(content)))
		if err == nil {
			_, err = f.Bytes("w")
		}
		if in.reads <= at+1 && err == nil { // the last read, or none
			assert.GreaterOrEqual(t, at, 20)
			continue
		}
		require.ErrorIs(t, err, gone, "read %d", at)
		assert.LessOrEqual(t, in.after, 1<<20, "read %d", at)
	}
}
