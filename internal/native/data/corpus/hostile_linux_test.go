package corpus_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/primustest"
)

// hostileFile is a file of text that is not what it should be.
type hostileFile struct {
	name string // of the file
	put  func(path string) error
	want string // in the error; "" for a file that is read, or that has no text
}

func bytesOf(text []byte) func(path string) error {
	return func(path string) error { return os.WriteFile(path, text, 0o600) }
}

// table returns a file of Parquet after a change.
func table(t *testing.T, name string, edit func(text []byte) []byte) func(path string) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "parquet", "testdata", name))
	require.NoError(t, err)
	return bytesOf(edit(text))
}

// repeated returns n compressed copies of a text.
func repeated(t *testing.T, text string, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	part := []byte(strings.Repeat(text, 1<<16))
	for range n >> 16 {
		_, err := w.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// hostileData returns files of text that are not what they should be, by what is wrong.
func hostileData(t *testing.T) map[string]hostileFile {
	t.Helper()
	const good = `{"text": "good"}` + "\n"
	lines := func(text, want string) hostileFile { return hostileFile{"a.jsonl", bytesOf([]byte(text)), want} }
	all := map[string]hostileFile{
		"invalid UTF-8":                lines(good+"{\"text\": \"\xff\xfe\"}\n", "line 2"),
		"half a character":             lines("{\"text\": \"\xe2\x82\"}\n", "line 1"),
		"half of a surrogate pair":     lines(good+`{"text": "\ud800"}`, "line 2"),
		"the other half":               lines(good+`{"text": "\udc00 a"}`, "line 2"),
		"an escape that is none":       lines(`{"text": "\x41"}`, "line 1"),
		"a raw control character":      lines("{\"text\": \"a\x01b\"}", "line 1"),
		"a number for the text":        lines(`{"text": 7}`, `key "text": given 7, want a string`),
		"a list for the text":          lines(`{"text": ["a"]}`, "want a string"),
		"a deep value":                 lines(`{"text": `+strings.Repeat("[", 1<<20)+"\n", "line 1"),
		"a deep value beside the text": lines(`{"a": `+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`, "text": "a"}`, "line 1"),
		"many keys":                    lines("{"+strings.Repeat(`"k":1,`, 1<<19)+`"z":2}`, `no key "text"`),
		"a key of a megabyte":          lines(`{"`+strings.Repeat("k", 1<<20)+`":1}`, `no key "text"`),
		"a line that is not closed":    lines(good+`{"text": "`+strings.Repeat("a", 1<<20), "line 2"),
		"two objects in a line":        lines(`{"text": "a"}{"text": "b"}`, "line 1"),
		"a list of objects":            lines("[\n"+good, "line 1"),
		"a byte order mark":            lines("\xef\xbb\xbf"+good, "line 1"),
		"UTF-16":                       lines("\xff\xfe{\x00}\x00", "line 1"),
		"ends of lines of old Macs":    lines(strings.ReplaceAll(good+good, "\n", "\r"), "line 1"),
		"nothing but spaces":           lines(strings.Repeat(" \n", 1<<16), ""),
		"nothing but empty texts":      lines(strings.Repeat("{\"text\": \"\"}\n", 1<<12), ""),
		"NaN":                          lines(`{"text": NaN}`, "line 1"),
		"a number without end":         lines(`{"n": 1e999999999, "text": "a"}`, ""),
		"noise as gzip":                {"a.txt.gz", bytesOf(bytes.Repeat([]byte{0x1f, 0x8b, 8, 0xff}, 100)), "a.txt.gz"},
		"gzip without a checksum":      {"a.txt.gz", bytesOf(gzipped(t, good)[:20]), "ends too early"},
		"gzip with another checksum":   {"a.txt.gz", bytesOf(append(gzipped(t, good)[:len(gzipped(t, good))-8], 0, 0, 0, 0, 17, 0, 0, 0)), "damaged"},
		"gzip and more":                {"a.txt.gz", bytesOf(append(gzipped(t, good), "and more"...)), "a.txt.gz"},
		"gzip of a binary file":        {"a.jsonl.gz", bytesOf(gzipped(t, "\x7fELF\x00\x00")), "line 1"},
		"a line of a gigabyte":         {"a.jsonl.zst", bytesOf(repeated(t, "{", 1<<30)), "line 1"},
		"a text of a gigabyte":         {"a.jsonl.zst", bytesOf(append(zstded(t, `{"text": "`), repeated(t, "a", 1<<30)...)), "line 1"},
		"a window of a gigabyte":       {"a.txt.zst", bytesOf([]byte("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00")), "134217728 bytes"},
		"zstd of another dictionary":   {"a.txt.zst", bytesOf([]byte("\x28\xb5\x2f\xfd\x23\x01\x02\x03\x04\x01\x01\x00\x00a")), "a.txt.zst"},
		"zstd that ends first":         {"a.txt.zst", bytesOf(zstded(t, strings.Repeat(good, 100))[:20]), "a.txt.zst"},
		"a table of LZ4":               {"a.parquet", table(t, "lz4.parquet", bytes.Clone), "its compression is"},
	}
	for kind, put := range primustest.HostileFiles() {
		want := "a.txt"
		switch kind {
		case "an empty file", "a directory", "a terabyte of holes":
			want = "train_data_path"
		}
		all["text is "+kind] = hostileFile{"a.txt", put, want}
		all["a table is "+kind] = hostileFile{"a.parquet", put, "train_data_path"}
	}
	for _, name := range []string{"plain_snappy_v2.parquet", "dict_gzip_v2.parquet", "deltaopt_zstd_v2.parquet"} {
		for what, edit := range map[string]func(text []byte) []byte{
			"without its end":       func(text []byte) []byte { return text[:len(text)-1] },
			"without its beginning": func(text []byte) []byte { return text[1:] },
			"cut in the middle":     func(text []byte) []byte { return append(text[:len(text)/2:len(text)/2], text[len(text)-8:]...) },
			"with a long footer": func(text []byte) []byte {
				binary.LittleEndian.PutUint32(text[len(text)-8:], 1<<32-1)
				return text
			},
			"with pages of zeros": func(text []byte) []byte {
				clear(text[4 : len(text)/2])
				return text
			},
			"with a footer of noise": func(text []byte) []byte {
				for i := len(text) - 8 - int(binary.LittleEndian.Uint32(text[len(text)-8:])); i < len(text)-8; i++ {
					text[i] ^= 0x5a
				}
				return text
			},
		} {
			all[name+" "+what] = hostileFile{"a.parquet", table(t, name, edit), "a.parquet"}
		}
	}
	return all
}

// Whatever a file of text is, reading it ends soon, costs little, and gives the text or an error
// that says where it is and what is wrong.
func TestHostileData(t *testing.T) {
	primustest.Sequential(t, "it measures what the process allocates")
	all := hostileData(t)
	primustest.Documented(t, "data files", len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), all[name].name)
			require.NoError(t, all[name].put(path))
			length := int64(0)
			if info, err := os.Lstat(path); err == nil && info.Size() < 1<<30 {
				length = info.Size()
			}
			var err error
			most := int(length) + 16<<20
			if strings.Contains(name, "of a gigabyte") { // a line may have 256 MiB
				most += 512 << 20
			}
			primustest.Cost(t, most, 3, func() {
				var c *corpus.Corpus
				if c, err = corpus.Find(t.Context(), corpus.Settings{Path: path}); err == nil {
					err = c.Read(t.Context(), func(corpus.Piece) error { return nil })
				}
			})
			if all[name].want == "" && err == nil {
				return
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, all[name].want)
			assert.Less(t, len(err.Error()), 4<<10)
			t.Log(err)
		})
	}
}
