package policy

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzVerdict reads what a run answers about a policy. Whatever it says, an error has no control
// characters that a terminal obeys.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte(`{"Changes": [{"Op": "rmsnorm_fwd", "Before": ["a"], "After": []}], "Warnings": ["w"]}`), 200)
	f.Add([]byte(`{"Refused": "no \u001b[2J\nimpl"}`), 200)
	f.Add([]byte(`{"detail": "no", "errors": [{"message": "a\u0000", "location": "b"}]}`), 422)
	f.Add([]byte("null"), 500)
	f.Add([]byte("<html>"), 404)
	f.Fuzz(func(t *testing.T, answer []byte, status int) {
		var v runVerdict
		var err error
		primustest.Cost(t, len(answer), 1000, func() { v, err = verdict(answer, status) })
		if err == nil {
			require.Equal(t, http.StatusOK, status)
			require.Empty(t, v.Refused)
			return
		}
		require.Negative(t, strings.IndexFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }), "%q", err)
	})
}
