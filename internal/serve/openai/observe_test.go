package openai_test

import (
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/assert"
)

// record is what an observer was told.
type record struct {
	mu       sync.Mutex
	answers  map[string][]int // codes by endpoint
	prompts  []int
	first    int
	tokens   int
	finishes []string
}

func (r *record) Answered(endpoint string, code int, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[endpoint] = append(r.answers[endpoint], code)
}

func (r *record) Began(prompt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts = append(r.prompts, prompt)
}

func (r *record) Token(first bool, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens++
	if first {
		r.first++
	}
}

func (r *record) Ended(finish string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finishes = append(r.finishes, finish)
}

func TestObserver(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{})
	r := &record{answers: map[string][]int{}}
	s.handler.Observe(r)
	ask[map[string]any](s, "/v1/completions", `{"prompt": "abc", "max_tokens": 5, "n": 2}`)
	status, _ := s.post("/v1/completions", `{"prompt": "abc", "max_tokens": 4, "stream": true}`)
	assert.Equal(t, 200, status)
	status, _ = s.post("/v1/completions", `{"prompt": "abc", "max_tokens": -1}`)
	assert.Equal(t, 400, status)
	status, _ = s.post("/v1/chat/completions", `{"messages": []}`)
	assert.Equal(t, 400, status)
	s.server.Close() // waits for the handlers
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Equal(t, map[string][]int{"completions": {200, 200, 400}, "chat_completions": {400}}, r.answers)
	assert.Equal(t, []int{3, 3, 3}, r.prompts)
	assert.Equal(t, 14, r.tokens)
	assert.Equal(t, 3, r.first)
	assert.Equal(t, []string{"length", "length", "length"}, r.finishes)
}
