package parquet

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/primustest"
)

func unlimited(ctx context.Context) *meter.Meter {
	return meter.New(ctx, "the page", "", meter.Budget{})
}

// unsnap decodes a block of at most some bytes.
func unsnap(m *meter.Meter, block []byte, most int64) ([]byte, error) {
	n, elements, err := snappyLen(block)
	if err != nil || n > most {
		return nil, errSnappy
	}
	out := make([]byte, n)
	return out, snappyDecode(m, out, elements)
}

func TestSnappy(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{7})
	_, _ = random.Read(noise)
	for _, text := range [][]byte{{}, {1}, bytes.Repeat([]byte("a"), 1<<21), bytes.Repeat([]byte("abcdefg"), 10_000), noise, noise[:61], append(noise[:70_000:70_000], noise[:70_000]...)} {
		got, err := unsnap(unlimited(t.Context()), snappy.Encode(nil, text), 1<<30)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(text, got), "%d bytes", len(text))
	}
	for name, block := range map[string][]byte{
		"no length":                {},
		"a length without end":     {0xff, 0xff},
		"a length of 2^32":         {0x80, 0x80, 0x80, 0x80, 0x10},
		"fewer bytes than it says": {2, 0, 'a'},
		"more bytes than it says":  {1, 4, 'a', 'b'},
		"half a literal":           {4, 3 << 2, 'a'},
		"half a length":            {4, 61 << 2, 1},
		"half an offset":           {4, 0, 'a', 2},
		"an offset before it":      {5, 0, 'a', 1, 2},
		"an offset of zero":        {5, 0, 'a', 1, 0},
		"a copy beyond its end":    {4, 0, 'a', 1, 1},
	} {
		_, err := unsnap(unlimited(t.Context()), block, 1<<33)
		require.ErrorIs(t, err, errSnappy, name)
	}
}

// gone is a context that ends when it was asked some times.
type gone struct {
	context.Context
	after int
}

var errGone = errors.New("gone")

// Value hides the context below, whose cause is another.
func (g *gone) Value(any) any { return nil }

func (g *gone) Err() error {
	if g.after--; g.after < 0 {
		return errGone
	}
	return nil
}

// Each megabyte is decoded with a look at the context.
func TestSnappyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 16<<20)
	random := rand.NewChaCha8([32]byte{7})
	_, _ = random.Read(noise)
	literal := append([]byte{0x80, 0x80, 0x80, 0x08, 63 << 2, 0xff, 0xff, 0xff, 0}, noise...)
	for name, block := range map[string][]byte{"copies": snappy.Encode(nil, make([]byte, 16<<20)), "literals": snappy.Encode(nil, noise), "a literal": literal} {
		for _, after := range []int{0, 3, 12} {
			ctx := &gone{t.Context(), after}
			_, err := unsnap(unlimited(ctx), block, 1<<30)
			require.ErrorIs(t, err, errGone, "%s, %d", name, after)
		}
		_, err := unsnap(unlimited(&gone{t.Context(), 20}), block, 1<<30)
		require.NoError(t, err, name)
	}
}

// FuzzSnappy decodes anything. What it accepts is what another decoder makes of it, and what that
// accepts, it accepts, but for an offset of zero, which Snappy does not have.
//
// Oracle: second decoder.
func FuzzSnappy(f *testing.F) {
	f.Add(snappy.Encode(nil, []byte("abcabcabcabcabc, abcabcabc")))
	f.Add(snappy.Encode(nil, bytes.Repeat([]byte{0}, 300)))
	f.Add([]byte{5, 0, 'a', 1, 1})
	f.Fuzz(func(t *testing.T, block []byte) {
		const most = 1 << 20
		var got []byte
		var err error
		primustest.Cost(t, len(block)+most, 1, func() { got, err = unsnap(unlimited(t.Context()), block, most) })
		n, lenErr := snappy.DecodedLen(block)
		if lenErr != nil || n > most {
			require.Error(t, err)
			return
		}
		want, wantErr := snappy.Decode(nil, block)
		if err == nil {
			require.NoError(t, wantErr)
			require.True(t, bytes.Equal(want, got))
		}
	})
}
