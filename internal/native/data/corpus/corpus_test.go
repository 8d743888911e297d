package corpus_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data/corpus"

	"github.com/primus-fl/primus/internal/primustest"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zstded(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll([]byte(text), nil)
}

func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), content, 0o644))
	}
	return root
}

// documents reads a corpus and puts the pieces of documents together.
func documents(t *testing.T, s corpus.Settings) ([]string, error) {
	t.Helper()
	c, err := corpus.Find(t.Context(), s)
	require.NoError(t, err)
	var all []string
	open := false
	err = c.Read(t.Context(), func(p corpus.Piece) error {
		assert.Equal(t, !open, p.Begins)
		assert.LessOrEqual(t, len(p.Text), corpus.PieceSize)
		if p.Begins {
			all = append(all, "")
		}
		all[len(all)-1] += string(p.Text)
		open = !p.Ends
		return nil
	})
	if err == nil {
		assert.False(t, open, "the last document ends")
	}
	return all, err
}

func TestFormats(t *testing.T) {
	t.Parallel()
	lines := `{"text": "one\nline", "id": 1}` + "\n\n" + `{"id": 2, "text": "Z\u00fcrich"}` + "\r\n" + `{"text": ""}` + "\n" + `{"text": null}` + "\n" + `{"text":"last"}`
	want := []string{"one\nline", "Zürich", "last"}
	long := strings.Repeat("a long line of text, ", 400_000)
	for _, tt := range []struct {
		name, file string
		content    []byte
		settings   corpus.Settings
		want       []string
	}{
		{"lines", "a.jsonl", []byte(lines), corpus.Settings{}, want},
		{"lines of another name", "a.NDJSON", []byte(lines), corpus.Settings{}, want},
		{"lines by format", "a.json", []byte(lines), corpus.Settings{Format: corpus.JSONL}, want},
		{"lines as text", "a.jsonl", []byte(lines), corpus.Settings{Format: corpus.Text}, []string{lines}},
		{"gzip of lines", "a.jsonl.gz", gzipped(t, lines), corpus.Settings{}, want},
		{"zstd of lines", "a.jsonl.zst", zstded(t, lines), corpus.Settings{}, want},
		{"two members", "a.jsonl.gz", append(gzipped(t, lines+"\n"), gzipped(t, `{"text":"more"}`)...), corpus.Settings{}, append(want, "more")},
		{"gzip of text", "a.txt.gz", gzipped(t, "all of\n\nit"), corpus.Settings{}, []string{"all of\n\nit"}},
		{"zstd of text", "a.zst", zstded(t, "all of it"), corpus.Settings{}, []string{"all of it"}},
		{"empty gzip", "a.gz", gzipped(t, ""), corpus.Settings{}, nil},
		{"key", "a.jsonl", []byte(`{"content": "x", "text": "y"}`), corpus.Settings{TextKey: "content"}, []string{"x"}},
		{"long text", "a.txt", []byte(long), corpus.Settings{}, []string{long}},
		{"long line", "a.jsonl", []byte(`{"text": "` + long + `"}` + "\n" + `{"text": "next"}`), corpus.Settings{}, []string{long, "next"}},
		{"limited lines", "a.jsonl", []byte(lines), corpus.Settings{MaxBytes: 11}, []string{"one\nline", "Zü"}},
		{"limited gzip", "a.gz", gzipped(t, long), corpus.Settings{MaxBytes: 300_000}, []string{long[:300_000]}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.settings.Path = filepath.Join(folder(t, map[string][]byte{tt.file: tt.content}), tt.file)
			got, err := documents(t, tt.settings)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestFaultsHaveAPlace(t *testing.T) {
	t.Parallel()
	good := `{"text": "good"}` + "\n"
	packed := gzipped(t, strings.Repeat(good, 1000))
	flipped := bytes.Clone(packed)
	flipped[len(flipped)/2] ^= 0xff
	for _, tt := range []struct {
		name, file string
		content    []byte
		want       []string
	}{
		{"no JSON", "a.jsonl", []byte(good + good + "{oops}\n"), []string{"a.jsonl: line 3 (byte 34)", "want a JSON object", "at byte 2 of the line"}},
		{"cut line", "a.jsonl", []byte(good + `{"text": "go`), []string{"line 2 (byte 17)", "unexpected end"}},
		{"no object", "a.jsonl", []byte("[1]\n"), []string{"line 1 (byte 0)", "want a JSON object"}},
		{"no key", "a.jsonl", []byte(good + "\n" + `{"a": 1, "b": 2}`), []string{"line 3 (byte 18)", `no key "text", it has a, b`, "text_key"}},
		{"no string", "a.jsonl", []byte(`{"text": [1, 2]}`), []string{`key "text": given [1, 2], want a string`}},
		{"line in gzip", "a.jsonl.gz", gzipped(t, good+"x"), []string{"a.jsonl.gz: line 2 (byte 17)"}},
		{"cut gzip", "a.jsonl.gz", packed[:len(packed)-9], []string{"gzip data ends too early", fmt.Sprintf("after %d bytes", len(packed)-9)}},
		{"cut gzip of text", "a.gz", packed[:len(packed)/2], []string{"a.gz: the gzip data ends too early"}},
		{"no gzip", "a.gz", []byte("hello, this is no gzip"), []string{"a.gz: the gzip data is damaged before byte"}},
		{"damaged gzip", "a.jsonl.gz", flipped, []string{"a.jsonl.gz"}},
		{"cut zstd", "a.zst", zstded(t, strings.Repeat(good, 1000))[:40], []string{"a.zst: the zstd data"}},
		{"no zstd", "a.zst", []byte("hello, this is no zstd"), []string{"a.zst: the zstd data is damaged"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := folder(t, map[string][]byte{tt.file: tt.content})
			_, err := documents(t, corpus.Settings{Path: filepath.Join(root, tt.file)})
			require.Error(t, err)
			for _, want := range append(tt.want, "train_data_path: "+root) {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestMixedFolder(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string][]byte{
		"a.txt": []byte("plain"), "b.jsonl": []byte(`{"text":"b1"}` + "\n" + `{"text":"b2"}`), "c.txt.gz": gzipped(t, "packed"), "d.bin": {0, 1},
	})
	got, err := documents(t, corpus.Settings{Path: root})
	require.NoError(t, err)
	assert.Equal(t, []string{"plain", "b1", "b2", "packed"}, got)
	c, err := corpus.Find(t.Context(), corpus.Settings{Path: root, Key: "valid_data_path"})
	require.NoError(t, err)
	assert.Equal(t, 3, c.Report().Files)
	assert.Equal(t, 1, c.Report().Skipped.Binary)
	assert.False(t, c.Report().Plain)

	_, err = corpus.Find(t.Context(), corpus.Settings{Path: root, Format: "csv"})
	require.ErrorContains(t, err, `train_data_format: given "csv", want auto, text, jsonl, parquet`)
	_, err = corpus.Find(t.Context(), corpus.Settings{Path: root + "/none", Key: "valid_data_path"})
	require.ErrorContains(t, err, "valid_data_path: ")
}

func TestParquet(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "parquet", "testdata", "dict_snappy_v1.parquet")
	got, err := documents(t, corpus.Settings{Path: path})
	require.NoError(t, err)
	assert.Len(t, got, 240, "rows without a text are left out")
	assert.Equal(t, []string{"value 1", "value 2", "value 3", "value 4", "value 6"}, got[:5])
	got, err = documents(t, corpus.Settings{Path: path, TextKey: "meta.title", MaxBytes: 10})
	require.NoError(t, err)
	assert.Equal(t, []string{"title 0", "tit"}, got)
	_, err = documents(t, corpus.Settings{Path: path, TextKey: "body"})
	require.ErrorContains(t, err, `train_data_path: `+path+`: it has no column "body" of text, it has text, meta.title`)
	root := folder(t, map[string][]byte{"a.parquet": []byte("PAR1 is not enough"), "b.parquet.gz": gzipped(t, "")})
	_, err = documents(t, corpus.Settings{Path: filepath.Join(root, "a.parquet")})
	require.ErrorContains(t, err, "a.parquet: byte 14: given")
	_, err = documents(t, corpus.Settings{Path: filepath.Join(root, "b.parquet.gz")})
	require.ErrorContains(t, err, "unpack it")
}

// A long text is cut where a tokenizer cuts it, too.
func TestPiecesEndWithLines(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Words of a line.\n\n  Indented\nlast line of a paragraph\n", 20_000)
	c, err := corpus.Find(t.Context(), corpus.Settings{Path: filepath.Join(folder(t, map[string][]byte{"a": []byte(text)}), "a")})
	require.NoError(t, err)
	at := 0
	require.NoError(t, c.Read(t.Context(), func(p corpus.Piece) error {
		at += len(p.Text)
		if !p.Ends {
			assert.Equal(t, byte('\n'), p.Text[len(p.Text)-1])
			assert.Contains(t, "Wl", text[at:at+1])
			assert.NotEqual(t, byte('\n'), p.Text[len(p.Text)-2])
		}
		return nil
	}))
	assert.Equal(t, len(text), at)
}

// What encoding/json would silently replace by U+FFFD is an error that names the place.
func TestTextThatIsNotUnicode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"text":"a` + "\xff" + `"}`:                          "byte 11 of the line: given the byte 0xff, want UTF-8",
		`{"other":"` + "\xe2\x82" + `","text":"a"}`:           "byte 11 of the line: given the byte 0xe2, want UTF-8",
		`{"text":"\ud800"}`:                                   `byte 10 of the line: given \ud800, which is half of a surrogate pair`,
		`{"text":"x\udc00\ud800"}`:                            `byte 11 of the line: given \udc00, which`,
		`{"text":"\ud800\ud800\udc00"}`:                       `byte 10 of the line: given \ud800, which`,
		`{"text":"\n\u0041\uD800x"}`:                          `byte 18 of the line: given \uD800, which`,
		`{"text":"\ud83d\ude00 \\ud800 \ufffd ` + "\ufffd\"}": "",
		`{"text":"a","other":"\ud800"}`:                       "",
	} {
		root := folder(t, map[string][]byte{"a.jsonl": []byte("\n" + line + "\n")})
		_, err := documents(t, corpus.Settings{Path: filepath.Join(root, "a.jsonl")})
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, "a.jsonl: line 2 ", line)
		assert.ErrorContains(t, err, want, line)
	}
}

// FuzzLines feeds any bytes as lines of JSON: whatever is read without an error has only documents
// of whole lines, and the reader does not panic.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"text":"a"}` + "\n" + `{"text":"b","x":{"text":1}}`))
	f.Add([]byte("\r\n\n{}"))
	f.Add([]byte(`{"text":"\ud800"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		defer primustest.Measured(t, len(content))()
		if len(content) == 0 {
			return
		}
		root := folder(t, map[string][]byte{"a.jsonl": content})
		got, err := documents(t, corpus.Settings{Path: filepath.Join(root, "a.jsonl")})
		if err == nil {
			assert.LessOrEqual(t, len(got), bytes.Count(content, []byte("\n"))+1)
		}
	})
}
