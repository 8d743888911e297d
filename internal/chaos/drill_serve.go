//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// attackTime is how long a run is attacked through its service.
const attackTime = 6 * time.Second

const token = "0123456789abcdef0123456789abcdef"

// served is a run with a service.
type served struct {
	*process
	address string
}

var servedAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts a run with a service, which trains until endsEarly.
func (l *lab) serve(ctx context.Context) (*served, error) {
	l.args = []string{"train_iters=1000000", "save_interval=5000", "eval_interval=1000", "log_interval=1000"}
	file := filepath.Join(l.dir, "tokens")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return nil, err
	}
	p, err := l.start(ctx, "--serve", "127.0.0.1:0", "--serve-token-file", file, "--linger", "0s")
	if err != nil {
		return nil, err
	}
	p.Reach("step 1/")
	address := servedAt.FindString(p.Log.String())
	if address == "" {
		return nil, fmt.Errorf("no service\n%s", p.Tail())
	}
	return &served{p, address}, nil
}

// ask makes a request, with the token or without it, and returns the status and the body.
func (s *served) ask(client *http.Client, method, path, body string, authorised bool) (int, string, error) {
	request, err := http.NewRequest(method, s.address+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/yaml")
	if authorised {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// put asks the service to put a policy into force, and returns the status and the body of the
// answer.
func (s *served) put(client *http.Client, body string) (int, string, error) {
	_, text, err := s.ask(client, http.MethodGet, "/v1/policy", "", true)
	var state struct{ Generation uint64 }
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		return 0, text, err
	}
	return s.ask(client, http.MethodPut, fmt.Sprint("/v1/policy?expected_generation=", state.Generation), body, true)
}

// endsEarly interrupts a run and compares it with an undisturbed one of the same number of steps.
func (l *lab) endsEarly(ctx context.Context, s *served) error {
	s.Process.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	code, err := s.wait()
	if err == nil && code != 130 {
		err = fmt.Errorf("exit code %d, want 130\n%s", code, s.Tail())
	}
	if err != nil {
		return err
	}
	saved, err := filepath.Glob(l.path("checkpoints", "step-*"))
	if err != nil || len(saved) == 0 {
		return errors.Join(err, fmt.Errorf("nothing is saved\n%s", s.Tail()))
	}
	if _, err := fmt.Sscanf(filepath.Base(saved[len(saved)-1]), "step-%d", &l.steps); err != nil {
		return err
	}
	return l.endsAsUndisturbed(ctx)
}

// flood sends requests of strangers as fast as possible. It counts the requests that were refused
// although they have a token, or are probes or scrapes.
func flood(ctx context.Context, l *lab, _ *rand.Rand) (int, error) {
	s, err := l.serve(ctx)
	if err != nil {
		return 0, err
	}
	flooding, stop := context.WithCancel(ctx)
	var strangers sync.WaitGroup
	var asked atomic.Int64
	for i := range 8 {
		strangers.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second}
			for flooding.Err() == nil && s.Running() {
				method, path := http.MethodPut, "/v1/policy?expected_generation=1"
				if i%2 == 0 {
					method, path = http.MethodGet, "/v1/explain"
				}
				s.ask(client, method, path, "prefer: reference", false) // any answer is fine
				asked.Add(1)
			}
		})
	}
	refused := s.friends(&asked)
	stop()
	strangers.Wait()
	if len(refused) > 0 {
		err = fmt.Errorf("%d refused among the authorised, the first: %s", len(refused), refused[0])
	}
	return int(asked.Load()), errors.Join(err, l.endsEarly(ctx, s))
}

// friends makes requests that must be answered while strangers make theirs, and returns those that
// were not.
func (s *served) friends(asked *atomic.Int64) (refused []string) {
	client := &http.Client{Timeout: 10 * time.Second}
	until := time.Now().Add(attackTime)
	for i := 0; (time.Now().Before(until) || asked.Load() < 2000) && s.Running(); i++ {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			if code, text, err := s.ask(client, http.MethodGet, path, "", false); code != http.StatusOK {
				refused = append(refused, fmt.Sprintf("GET %s: %d %v %.100s", path, code, err, text))
			}
		}
		if i < 20 {
			code, text, err := s.put(client, calm)
			if code != http.StatusOK {
				refused = append(refused, fmt.Sprintf("PUT /v1/policy: %d %v %.100s", code, err, text))
			}
		}
	}
	return refused
}

// policyTexts are contents of the policy of a run. The usable ones select among impls whose results
// have the same bits.
var policyTexts = []string{
	calm,
	calm + "prefer: vendor\n",
	calm + "prefer: flagos\nstrict: true\n",
	calm + "per_op: {generic_gemm: vendor:chaos|flagos}\n",
	calm + "per_op: {'*_bwd': [flagos, vendor]}\n",
	calm + "per_op: {generic_gemm: vendor:nvidia}\n",
	calm + "per_op: {rmsnorm_fwd: impl:nobody}\nstrict: true\n",
	"allow_vendors: []\nprefer: vendor\n",
	calm + "deny_vendors: [chaos]\n",
	calm + "quarantine: {failures: 1, backoff: 1ms}\n",
	calm + "rules: [{layers: 0, prefer: vendor}, {phase: backward, prefer: flagos}]\n",
	calm + "prefr: vendor\n",
	"prefer: [\n",
	"\x00\xff",
	"",
}

// policies changes the policy of a run through its service and its file.
func policies(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	s, err := l.serve(ctx)
	if err != nil {
		return 0, err
	}
	attacks := 0
	client := &http.Client{Timeout: 10 * time.Second}
	until := time.Now().Add(attackTime)
	for i := 0; time.Now().Before(until) && s.Running(); i++ {
		body := policyTexts[random.IntN(len(policyTexts))]
		if i%10 == 0 { // the run reads the file every second
			err = l.setPolicy(policyTexts[random.IntN(len(policyTexts))])
			attacks++
		}
		code, text, failed := s.put(client, body)
		attacks++
		if failed != nil || code >= http.StatusInternalServerError {
			err = errors.Join(err, failed, fmt.Errorf("PUT /v1/policy %q: %d %s", body, code, text))
		}
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
	}
	return attacks, errors.Join(err, l.endsEarly(ctx, s))
}
