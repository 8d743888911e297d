package shards

import (
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzWritten reads what two ranks say that they have written. Whatever they say, it is that of
// each file or an error.
func FuzzWritten(f *testing.F) {
	f.Add([]byte(`{"written": [[], [{}]]}`), []byte(`{"written": [[{}], null]}`), uint8(2))
	f.Add([]byte(`{"written": [[]]}`), []byte(`{"Written": []}`), uint8(2))
	f.Add([]byte(`{"failure": "no space"}`), []byte("null"), uint8(0))
	f.Fuzz(func(t *testing.T, first, second []byte, files uint8) {
		defer primustest.Measured(t, len(first)+len(second))()
		all, err := written([][]byte{first, second}, int(files))
		if err == nil && len(all) != int(files) {
			t.Fatalf("given %d files, want %d", len(all), files)
		}
	})
}
