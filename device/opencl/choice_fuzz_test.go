package opencl

import (
	"os"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzChoices reads files of choices: whatever they hold, another choice can be kept beside it and
// is found again.
func FuzzChoices(f *testing.F) {
	for _, text := range []string{`{"tiles": "large"}`, `{"tiles": 1}`, "null", "[]", "", `{"a": "\ud800"}`} {
		f.Add([]byte(text))
	}
	b := &Backend{options: Options{Cache: f.TempDir()}}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &Device{backend: b}
		require.NoError(t, os.WriteFile(d.choicesFile(), text, 0o600))
		primustest.Cost(t, len(text), 200, func() { d.Choices() })
		d.Choose("a choice", "b")
		again := &Device{backend: b}
		require.Equal(t, "b", again.Choice("a choice"))
		require.Equal(t, d.Choices(), again.Choices())
	})
}
