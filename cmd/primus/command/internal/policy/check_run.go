package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
)

const (
	// runPatience is how long a run may take to check a policy.
	runPatience = 30 * time.Second
	// maxAnswer bounds the answer of a run.
	maxAnswer = 4 << 20
)

// runClient asks the service of a run. It follows no redirection, because the answer is about that
// run.
func runClient() *http.Client {
	return &http.Client{Timeout: runPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// serviceURL returns the base of a service that was named by HOST:PORT or URL.
func serviceURL(name string) (*url.URL, error) {
	text := name
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("--for: given %q, want the address of the service of a run, such as 127.0.0.1:9400 or https://host:9400", name)
	}
	return u, nil
}

// runVerdict is the answer of a run about a policy.
type runVerdict struct {
	Changes  []opmanager.Change
	Warnings []string
	Refused  string

	Detail string // of an answer that is no success
	Errors []struct{ Message, Location string }
}

// checkForRun asks a run what a policy file would do there, with its own sources, plugins,
// quarantines and bound ops. The run does not use the file.
func checkForRun(ctx context.Context, service *url.URL, file string) (runVerdict, error) {
	var v runVerdict
	text, err := document.ReadFile(file)
	if err != nil {
		return v, fmt.Errorf("read the policy: %w", err)
	}
	target := service.JoinPath("v1/policy/proposal").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(text))
	if err != nil {
		return v, err
	}
	request.Header.Set("Content-Type", "application/yaml")
	client := runClient()
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return v, fmt.Errorf("ask the run at %s: %w; a run has a service with --serve", service, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return v, fmt.Errorf("ask the run at %s: %w", service, err)
	}
	if v, err = verdict(answer, response.StatusCode); err != nil {
		return v, fmt.Errorf("%s: the run at %s %w", file, service, err)
	}
	return v, nil
}

// verdict reads the answer of a run. The error goes on after the name of the run.
func verdict(answer []byte, status int) (runVerdict, error) {
	var v runVerdict
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("answers with status %d and no JSON, want the service of a run", status)
	}
	if status != http.StatusOK {
		parts := []string{cmp.Or(v.Detail, fmt.Sprintf("%d %s", status, http.StatusText(status)))}
		for _, e := range v.Errors {
			parts = append(parts, e.Message)
		}
		return v, fmt.Errorf("answers: %s", plaintext.Printable(strings.Join(parts, "; ")))
	}
	if v.Refused != "" {
		return v, fmt.Errorf("would refuse it: %s", plaintext.Printable(v.Refused))
	}
	return v, nil
}
