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
		"", "PAR1", " \n{\"text\": 1}", "a text", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00a", "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x1f\x8b",
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
