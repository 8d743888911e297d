package mlflow

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// answers gives every request the same reply.
type answers struct {
	status int
	body   []byte
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// FuzzReply begins a run at a server that answers anything: it has an id, or there is an error that
// is not much longer than the reply.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"experiment": {"experiment_id": "1"}, "run": {"info": {"run_id": "a"}}}`), 200)
	f.Add([]byte(`{"experiment_id": 1, "run": null}`), 200)
	f.Add([]byte(`{"error_code": "X", "message": "no such experiment"}`), 404)
	f.Add([]byte("<html>\x00\xff"), 502)
	f.Add([]byte("null"), 200)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		c := &Client{base: "http://a", http: &http.Client{Transport: answers{status, body}}, set: Settings{Params: []Param{{"lr", "1"}}}}
		var err error
		primustest.Cost(t, len(body), 200, func() { err = c.begin(t.Context()) })
		if err == nil {
			require.NotEmpty(t, c.runID)
			return
		}
		require.Empty(t, c.runID)
		require.LessOrEqual(t, len(err.Error()), 500+4*len(body))
	})
}
