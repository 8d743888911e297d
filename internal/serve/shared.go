package serve

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// makeRate is the time per second that may be spent on making answers before clients share
	// them; up to makeBurst of unused time is saved.
	makeRate  = 5 * time.Millisecond
	makeBurst = 250 * time.Millisecond
	// staleFor is how old the figures in a shared answer may be.
	staleFor = 2 * time.Second
	// maxShared bounds the bytes of questions and answers that are kept; when there are more, all
	// are dropped.
	maxShared = 16 << 20
)

// shared lets clients share answers when there are many requests, so that answering takes only a
// bounded part of the CPUs from training. As long as making answers takes less than makeRate, every
// question gets an answer of its own. Above that rate, equal questions get the same answer for at
// most staleFor, and only until an event other than a call or a step. An explanation has no figures
// and is shared until such an event.
type shared struct {
	next    http.Handler
	version func() version

	mu      sync.Mutex
	left    time.Duration // time that making answers may still take; below 0, answers are shared
	at      time.Time     // when left was computed
	answers map[string]*sharedAnswer
	bytes   int // of all questions and answers kept
}

// version changes with the state that answers describe, except for calls and steps.
type version struct{ generation, changes uint64 }

// sharedAnswer is the answer to one question. While it is made for one client, others with the same
// question wait.
type sharedAnswer struct {
	mu      sync.Mutex
	version version
	began   time.Time // start of making the answer; zero when there is none
	recorded
}

func newShared(next http.Handler, version func() version) *shared {
	return &shared{next: next, version: version, left: makeBurst, at: time.Now(), answers: map[string]*sharedAnswer{}}
}

// sharable reports whether answers at a path may be shared. Streams and answers that depend on the
// client may not.
func sharable(path string) bool {
	return path == "/metrics" || strings.HasPrefix(path, "/v1/") && path != "/v1/events" && path != "/v1/sd"
}

// ServeHTTP answers a request, with a shared answer when the time for new ones is used up.
func (s *shared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !sharable(r.URL.Path) {
		s.next.ServeHTTP(w, r)
		return
	}
	asked := time.Now()
	question := strings.Join([]string{r.URL.RequestURI(), r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")}, "\n")
	answer := s.answer(s.place(question), r, asked)
	answer.write(w)
}

// place returns where the answer to a question is kept.
func (s *shared) place(question string) *sharedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes > maxShared {
		clear(s.answers)
		s.bytes = 0
	}
	a, known := s.answers[question]
	if !known {
		a = &sharedAnswer{}
		s.answers[question] = a
		s.bytes += len(question)
	}
	return a
}

// answer returns the answer that is kept, or makes it.
func (s *shared) answer(a *sharedAnswer, r *http.Request, asked time.Time) recorded {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.usable(a, asked, strings.HasSuffix(r.URL.Path, "/explain")) {
		return a.recorded
	}
	began, version := time.Now(), s.version()
	made := recorded{header: http.Header{}, status: http.StatusOK}
	s.next.ServeHTTP(&made, r)
	s.spend(time.Since(began), len(made.body))
	if made.status == http.StatusOK {
		a.version, a.began, a.recorded = version, began, made
	}
	return made
}

// usable reports whether an answer may be given to a question asked at a time. A timeless answer
// has no figures.
func (s *shared) usable(a *sharedAnswer, asked time.Time, timeless bool) bool {
	if a.began.IsZero() || a.version != s.version() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.left = min(makeBurst, s.left+time.Duration(now.Sub(s.at).Seconds()*float64(makeRate)))
	s.at = now
	return a.began.After(asked) || s.left < 0 && (timeless || now.Sub(a.began) < staleFor)
}

// spend counts the time and the bytes of an answer.
func (s *shared) spend(took time.Duration, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = max(-makeBurst, s.left-took)
	s.bytes += bytes
}

// recorded is an answer that is kept before it is sent.
type recorded struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorded) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

// write sends the answer.
func (r *recorded) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // an error means that the client is gone
}
