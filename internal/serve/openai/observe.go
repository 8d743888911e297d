package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/primus-fl/primus/internal/native/inference"
)

// Observer is told what the handler does, from several goroutines at once.
type Observer interface {
	// Answered says that a request to an endpoint has its answer, with an HTTP status.
	Answered(endpoint string, code int, took time.Duration)

	// Began says that a text with a prompt of so many tokens has begun.
	Began(prompt int)

	// Token says that a token has come, and how long after the request or after the token before.
	Token(first bool, took time.Duration)

	// Ended says why a text has ended: "stop", "length", "cancelled" by its client, or "error".
	Ended(finish string)
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Answered(string, int, time.Duration) {}
func (nobody) Began(int)                           {}
func (nobody) Token(bool, time.Duration)           {}
func (nobody) Ended(string)                        {}

// Observe tells o, and nobody else, what the handler does from now on.
func (h *Handler) Observe(o Observer) { h.observer.Store(&o) }

// text is a text that the observer is told of.
type text struct {
	observer Observer
	prompt   int
	began    bool
	last     time.Time // of the request, then of the last token
}

func (h *Handler) text(prompt int) *text {
	return &text{observer: *h.observer.Load(), prompt: prompt, last: time.Now()}
}

// begin is called before the first token, so that what is refused does not count.
func (t *text) begin() (first bool) {
	if t.began {
		return false
	}
	t.began = true
	t.observer.Began(t.prompt)
	return true
}

func (t *text) token() {
	now := time.Now()
	t.observer.Token(t.begin(), now.Sub(t.last))
	t.last = now
}

func (t *text) end(result inference.Result, err error) {
	finish := string(result.Finish)
	switch {
	case err == nil:
		t.begin()
	case !t.began:
		return
	case errors.Is(err, context.Canceled), errors.Is(err, errGone):
		finish = "cancelled"
	default:
		finish = "error"
	}
	t.observer.Ended(finish)
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// observed tells the observer of each request. A client that has gone away without an answer counts
// as 499, as in nginx.
func (h *Handler) observed(endpoint string, do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin, status := time.Now(), &statusWriter{ResponseWriter: w}
		do(status, r)
		if status.code == 0 {
			status.code = 499
		}
		(*h.observer.Load()).Answered(endpoint, status.code, time.Since(begin))
	}
}
