package opregistry_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/require"
)

// FuzzOptional reads optional parameters as recordings hold them: what is read is written and read
// the same.
//
// Oracle: round trip.
func FuzzOptional(f *testing.F) {
	for _, text := range []string{`{"bool": true, "float": -1.5}`, `{"bool": null, "float": 1e-50}`, `{"float": 1e99}`, `{"bool": 1}`, `{"bool": {}, "float": []}`} {
		f.Add([]byte(text))
	}
	type options struct {
		Bool  opregistry.OptionalBool
		Float opregistry.OptionalFloat
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o, again options
		var err error
		primustest.Cost(t, len(text), 100, func() { err = json.Unmarshal(text, &o) })
		if err != nil {
			return
		}
		written, err := json.Marshal(o)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, o, again)
	})
}
