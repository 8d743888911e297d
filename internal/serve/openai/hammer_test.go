package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// More clients than there are places ask at once, some leave in the middle and some ask for what
// cannot be. Everybody else gets the text that they get alone, and at the end nothing runs.
func TestManyClients(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{Slots: 3, Queue: 4})
	prompts := []string{"a", "bcd", "func main", "12345", "zzzzzzzz"}
	want := map[string]string{}
	for _, prompt := range prompts {
		got := ask[completion](s, "/v1/completions", fmt.Sprintf(`{"prompt": %q, "max_tokens": 12, "temperature": 0, "logprobs": 2}`, prompt)).Choices[0]
		for _, top := range got.Logprobs.Top {
			var both []float64
			for _, p := range top {
				both = append(both, p)
			}
			slices.Sort(both)
			require.True(t, len(both) < 2 || both[1]-both[0] > 1e-4, "rounding could decide: choose another prompt than %q", prompt)
		}
		want[prompt] = got.Text
	}
	r := &record{answers: map[string][]int{}}
	s.handler.Observe(r)

	// open posts a request until there is a place for it.
	open := func(ctx context.Context, body string) (*http.Response, error) {
		for {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/completions", strings.NewReader(body))
			if err != nil {
				return nil, err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusTooManyRequests {
				return resp, err
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	whole := func(prompt string) {
		resp, err := open(t.Context(), fmt.Sprintf(`{"prompt": %q, "max_tokens": 12, "temperature": 0}`, prompt))
		if !assert.NoError(t, err) {
			return
		}
		defer resp.Body.Close()
		var got completion
		assert.NoError(t, json.NewDecoder(resp.Body).Decode(&got))
		if assert.Len(t, got.Choices, 1) {
			assert.Equal(t, want[prompt], got.Choices[0].Text)
		}
	}
	stream := func(prompt string, leave bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := open(ctx, fmt.Sprintf(`{"prompt": %q, "max_tokens": 12, "temperature": 0, "stream": true}`, prompt))
		if !assert.NoError(t, err) {
			return
		}
		defer resp.Body.Close()
		var text strings.Builder
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			data, event := strings.CutPrefix(lines.Text(), "data: ")
			if event && leave {
				return
			}
			if !event || data == "[DONE]" {
				continue
			}
			var e completion
			if assert.NoError(t, json.Unmarshal([]byte(data), &e)) && assert.Len(t, e.Choices, 1) {
				text.WriteString(e.Choices[0].Text)
			}
		}
		assert.Equal(t, want[prompt], text.String())
	}
	wrong := func(prompt string) {
		resp, err := open(t.Context(), fmt.Sprintf(`{"prompt": %q, "max_tokens": -1}`, prompt))
		if assert.NoError(t, err) {
			assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
			assert.NoError(t, resp.Body.Close())
		}
	}
	var clients sync.WaitGroup
	for client := range 16 {
		clients.Go(func() {
			for round := range 8 {
				prompt := prompts[(client+3*round)%len(prompts)]
				switch (client + round) % 4 {
				case 0:
					whole(prompt)
				case 1:
					stream(prompt, false)
				case 2:
					stream(prompt, true)
				default:
					wrong(prompt)
				}
			}
		})
	}
	clients.Wait()
	require.Eventually(t, func() bool {
		running, waiting := s.engine.Load()
		return running == 0 && waiting == 0
	}, 2*time.Minute, time.Millisecond)
	s.server.Close() // waits for the handlers
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Len(t, r.finishes, len(r.prompts), "every text that began has ended")
	assert.GreaterOrEqual(t, len(r.finishes), 2*16*8/4)
	codes := slices.Compact(slices.Sorted(slices.Values(r.answers["completions"])))
	assert.Subset(t, []int{200, 400, 429, 499}, codes)
	assert.NotContains(t, r.finishes, "error")
}
