package firstrun

import (
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzExtension looks at the beginning of standard input: its extension is one that a corpus can
// have, and data that grows when it is unpacked costs no more than other.
func FuzzExtension(f *testing.F) {
	for _, head := range []string{
		"", "PAR1", frame(false, "{\"text\": 1}"), " \n{\"text\": 1}", "a text", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a", "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x1f\x8b",
	} {
		f.Add([]byte(head))
	}
	known := []string{".txt", ".parquet", ".jsonl", ".txt.gz", ".parquet.gz", ".jsonl.gz", ".txt.zst", ".parquet.zst", ".jsonl.zst"}
	f.Fuzz(func(t *testing.T, head []byte) {
		var found string
		primustest.Cost(t, len(head), 100, func() { found = extension(head) })
		require.True(t, slices.Contains(known, found), found)
	})
}

// frame returns a frame of zstd that holds a text as it is, and says that its data refers back by
// up to 128 MiB: of a stream, or of one segment of that size.
func frame(segment bool, text string) string {
	header := "\x28\xb5\x2f\xfd\x00\x88"
	if segment {
		header = "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x08"
	}
	size := len(text)<<3 | 1
	return header + string([]byte{byte(size), byte(size >> 8), byte(size >> 16)}) + text
}

// What a large file of zstd begins with is found without the memory that the whole takes.
func TestExtensionOfLargeFrames(t *testing.T) {
	for _, segment := range []bool{false, true} {
		for text, want := range map[string]string{"{\"text\": 1}": ".jsonl.zst", "PAR1": ".parquet.zst", "a text": ".txt.zst"} {
			head := frame(segment, text)
			var got string
			primustest.Cost(t, len(head), 100, func() { got = extension([]byte(head)) })
			require.Equal(t, want, got)
		}
	}
}
