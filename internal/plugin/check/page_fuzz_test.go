package check

import (
	"bytes"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzReport reads published reports and makes the page of each: its cost is in proportion to the
// length, and nothing in a report becomes an element of the page.
func FuzzReport(f *testing.F) {
	for _, text := range []string{
		`{"sha256": "ab", "checks": [{"op": "rmsnorm_fwd", "impl": "vendor.<script>"}]}`, `{"sha256": "ab", "checks": []}`, `{"sha256": "<script>alert(1)</script>", "checks": [null, {}]}`, `{"sha256": 1}`, "null",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r *Report
		var err error
		primustest.Cost(t, len(text), 200, func() { r, err = Read(bytes.NewReader(text)) })
		if err != nil {
			return
		}
		var page bytes.Buffer
		primustest.Cost(t, len(text), 2000, func() { err = Page(&page, []*Report{r}) })
		require.NoError(t, err)
		require.NotContains(t, page.String(), "<script>")
	})
}
