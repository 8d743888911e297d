package data_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"
)

// ending is a tokenizer with a token that ends documents.
type ending struct{ shifted }

const endOfDocument = 1256

func (ending) Name() string   { return "ending" }
func (ending) VocabSize() int { return 1257 }
func (ending) EOS() int32     { return endOfDocument }

func lines(documents ...string) string {
	var b strings.Builder
	for _, d := range documents {
		fmt.Fprintf(&b, "{\"text\": %q}\n", d)
	}
	return b.String()
}

func ids(t *testing.T, tokens *data.Tokens) []int32 {
	t.Helper()
	all := make([]int32, tokens.Len())
	require.NoError(t, tokens.Read(all, 0))
	return all
}

func TestDocumentsEnd(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a.jsonl": lines("ab", "", "c"), "b.txt": "d"})
	tokens, report, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}, Tokenizer: ending{}})
	require.NoError(t, err)
	assert.Equal(t, []int32{1097, 1098, endOfDocument, 1099, endOfDocument, 1100, endOfDocument}, ids(t, tokens))
	assert.Equal(t, 7, report.Tokens)
	got, _ := load(t, data.Settings{Settings: corpus.Settings{Path: root}})
	assert.Equal(t, "ab\n\nc\n\nd", got, "bytes have separators in place of ends")
}

// The tokens do not depend on the number of workers, nor on how documents are cut into pieces.
func TestWorkersDoNotMatter(t *testing.T) {
	t.Parallel()
	var documents []string
	for i := range 300 {
		documents = append(documents, strings.Repeat(fmt.Sprint("document ", i, "\n"), 1+i*i%5000))
	}
	c, err := corpus.Find(t.Context(), corpus.Settings{Path: filepath.Join(tree(t, map[string]string{"a.jsonl": lines(documents...)}), "a.jsonl")})
	require.NoError(t, err)
	var want []int32
	var ends []int
	for _, d := range documents {
		want = ending{}.Encode(want, []byte(d))
		want = append(want, endOfDocument)
		ends = append(ends, len(want))
	}
	for _, workers := range []int{1, 2, 7} {
		var got []int32
		var at []int
		require.NoError(t, data.Encoding{Tokenizer: ending{}, EOD: endOfDocument, Workers: workers}.Encode(t.Context(), c, func(ids []int32, ends []int) error {
			for _, end := range ends {
				at = append(at, len(got)+end)
			}
			got = append(got, ids...)
			return nil
		}))
		require.True(t, slices.Equal(want, got), workers)
		assert.Equal(t, ends, at)
	}
}

func TestEncodeEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(tree(t, map[string]string{"a.jsonl": strings.Repeat(lines(strings.Repeat("x", 1000)), 1000) + "oops"}), "a.jsonl")
	c, err := corpus.Find(t.Context(), corpus.Settings{Path: broken})
	require.NoError(t, err)
	e := data.Encoding{Tokenizer: ending{}, EOD: endOfDocument, Workers: 2}
	require.ErrorContains(t, e.Encode(t.Context(), c, func([]int32, []int) error { return nil }), "line 1001")
	stop := errors.New("stop")
	require.ErrorIs(t, e.Encode(t.Context(), c, func([]int32, []int) error { return stop }), stop)
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, e.Encode(ctx, c, func([]int32, []int) error { cancel(); return nil }), context.Canceled)

	// A corpus that cannot be read leaves no cache.
	dir := t.TempDir()
	_, _, err = loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: broken}, CacheDir: dir})
	require.ErrorContains(t, err, "train_data_path: "+broken+": line 1001 (byte 1013000)")
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Large vocabularies have tokens of four bytes.
type large struct{ ending }

func (large) Name() string   { return "large" }
func (large) VocabSize() int { return 200_000 }
func (large) Encode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, 100_000+int32(b))
	}
	return dst
}

func TestLargeVocabulary(t *testing.T) {
	t.Parallel()
	s := data.Settings{Settings: corpus.Settings{Path: tree(t, map[string]string{"a": "xy"})}, Tokenizer: large{}, CacheDir: t.TempDir()}
	for _, fromCache := range []bool{false, true} {
		tokens, report, err := loadCorpus(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, fromCache, report.FromCache)
		assert.Equal(t, []int32{100_120, 100_121, endOfDocument}, ids(t, tokens))
		require.NoError(t, tokens.Close())
	}
}
