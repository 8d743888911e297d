package attention_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/stretchr/testify/require"
)

// FuzzWindow reads windows as recordings hold them: what is read is written and read the same.
//
// Oracle: round trip.
func FuzzWindow(f *testing.F) {
	for _, text := range []string{"[1, 2]", "[-1, 0]", "null", "[1]", "[1, 2, 3]", "[9223372036854775808, 0]", "[null, 1]", "{}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var w, again attention.WindowSize
		var err error
		primustest.Cost(t, len(text), 100, func() { err = json.Unmarshal(text, &w) })
		if err != nil {
			require.Equal(t, attention.WindowSize{}, w)
			return
		}
		written, err := json.Marshal(w)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, w, again)
	})
}
