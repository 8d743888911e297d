package commandtest

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Serving is a command line that serves until it is stopped.
type Serving struct {
	*Background
	T    *testing.T
	Base string
}

// StartServing runs a command that serves until the end of the test.
func StartServing(t *testing.T, args ...string) *Serving {
	t.Helper()
	s := &Serving{Background: Start(t, args...), T: t}
	s.WaitFor("service on ")
	s.Base = ServiceIn(s.Stderr.String())
	return s
}

// ServiceIn returns where a service is that has said so.
func ServiceIn(log string) string {
	return regexp.MustCompile(`service on (\S+)/`).FindStringSubmatch(log)[1]
}

// Ask sends a request to the service and returns the status and the body.
func (s *Serving) Ask(method, path, body string) (int, string) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), method, s.Base+path, strings.NewReader(body))
	require.NoError(s.T, err)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	req.Header.Set("Content-Type", "application/yaml")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.T, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.T, err)
	return resp.StatusCode, string(text)
}

// TokenFile writes a file with a token and returns its name.
func TokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("alice 0123456789abcdef\n"), 0o600))
	return file
}
