package openai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/internal/fair"
	"github.com/primus-fl/primus/internal/native/inference"
)

// Handler serves the paths that Patterns lists.
type Handler struct {
	name    string
	created int64
	opened  atomic.Pointer[opened]
	mux     *http.ServeMux

	admission admission
	observer  atomic.Pointer[Observer]
}

// largeWork is the size in bytes of a request that takes long to read: milliseconds.
const largeWork = 64 << 10

// rest gives back the place of work that began at a time. That of a large request stays empty for
// as long again, because the threads of an op wait for the slowest of them: while another goroutine
// computes all the time, each op of the model takes longer.
func rest(began time.Time, size int, done func()) {
	if size < largeWork {
		done()
		return
	}
	time.AfterFunc(time.Since(began), done)
}

// New returns a Handler for a model of this name, which it has after Open.
func New(name string, limits Limits) *Handler {
	h := &Handler{name: name, created: time.Now().Unix(), mux: http.NewServeMux()}
	h.admission = admission{limits: limits, work: fair.NewGate(runtime.GOMAXPROCS(0), largeWork), clients: map[string]*client{}}
	h.Observe(nobody{})
	for pattern, do := range h.routes() {
		h.mux.HandleFunc(pattern, do)
	}
	return h
}

func (h *Handler) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /v1/models":            h.models,
		"GET /v1/models/{model...}": h.oneModel,
		"POST /v1/completions":      h.observed("completions", answer(h, h.completion)),
		"POST /v1/chat/completions": h.observed("chat_completions", answer(h, h.chat)),
	}
}

// Patterns returns the patterns of the paths, for an http.ServeMux.
func (h *Handler) Patterns() []string {
	var all []string
	for pattern := range h.routes() {
		all = append(all, pattern)
	}
	slices.Sort(all)
	return all
}

// Name returns the name of the model.
func (h *Handler) Name() string { return h.name }

// opened is a model that answers.
type opened struct {
	*inference.Engine
	form *inference.Chat
}

// Open gives the handler the model, and the form of conversations with it, which may be nil. The
// caller closes the engine.
func (h *Handler) Open(e *inference.Engine, form *inference.Chat) { h.opened.Store(&opened{e, form}) }

// Ready returns an error until Open was called.
func (h *Handler) Ready() error {
	if h.opened.Load() == nil {
		return errors.New("the model is being loaded")
	}
	return nil
}

// Load returns how many texts are generated and how many wait, none before Open.
func (h *Handler) Load() (running, waiting int) {
	if e := h.opened.Load(); e != nil {
		return e.Engine.Load()
	}
	return 0, 0
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// ChatTemplate is what conversations become tokens by. It is empty for a model without one, and
	// while the model is loaded. OpenAI does not have it.
	ChatTemplate string `json:"chat_template"`
}

func (h *Handler) model() modelObject {
	m := modelObject{ID: h.name, Object: "model", Created: h.created, OwnedBy: "primus"}
	if e := h.opened.Load(); e != nil && e.form != nil {
		m.ChatTemplate = e.form.Template()
	}
	return m
}

func (h *Handler) models(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]any{"object": "list", "data": []modelObject{h.model()}})
}

func (h *Handler) oneModel(w http.ResponseWriter, r *http.Request) {
	if err := h.known(r.PathValue("model")); err != nil {
		fail(w, errorOf(err))
		return
	}
	write(w, http.StatusOK, h.model())
}

// known returns an error unless a name is that of the model.
func (h *Handler) known(name string) error {
	if name == h.name {
		return nil
	}
	param := "model"
	e := coded(http.StatusNotFound, invalidRequest, "model_not_found", fmt.Sprintf("the model %q does not exist, want %q", name, h.name))
	e.Param = &param
	return e
}

// job is a request that has been checked: the choices to compute, and how they are written.
type job struct {
	common
	id        string
	created   int64
	prompts   [][]int32
	request   inference.Request
	form      form
	usage     usage
	mu        sync.Mutex // guards usage and writing
	w         http.ResponseWriter
	began     bool // the first event has been written
	completed []choice
}

// choice is the result for one choice.
type choice struct {
	inference.Result
	events []inference.Event
}

// answer decodes a request, makes its job and runs it.
func answer[R any](h *Handler, prepare func(ctx context.Context, e *opened, r *R) (*job, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e := h.opened.Load()
		if e == nil {
			fail(w, coded(http.StatusServiceUnavailable, serverError, "loading", "the model is being loaded; try again later"))
			return
		}
		control, name := http.NewResponseController(w), clientOf(r)
		// After cut, neither the handler nor the server waits for the rest of the body.
		cut := func() { _ = control.SetReadDeadline(past) } // without deadlines, a body is read to its end
		held, err := h.admission.enter(name, cut)
		if err != nil {
			cut()
			w.Header().Set("Connection", "close")
			fail(w, errorOf(err))
			return
		}
		defer held.leave()
		j, err := take(h, e, held, w, r, prepare)
		if err != nil {
			fail(w, errorOf(err)) // the context may have ended because the body was cut off
			return
		}
		// The time of an answer is limited by its tokens, not by the deadlines of the server.
		err = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
		if err == nil {
			j.w, j.request.Client = w, name
			err = j.run(r.Context(), e.Engine, h)
		}
		if err != nil && r.Context().Err() == nil {
			j.fail(w, errorOf(err))
		}
	}
}

// take reads a request and makes its job.
func take[R any](h *Handler, e *opened, held *held, w http.ResponseWriter, r *http.Request, prepare func(ctx context.Context, e *opened, r *R) (*job, error)) (*job, error) {
	body, err := held.read(w, r)
	if err != nil {
		return nil, err
	}
	done, err := h.admission.work.Acquire(r.Context(), held.client, len(body))
	if displaced := held.keep(); displaced != nil {
		err = displaced
	}
	if err != nil {
		if done != nil {
			done()
		}
		return nil, err
	}
	defer rest(time.Now(), len(body), done)
	defer held.free()
	var request R
	if err := decode(body, &request); err != nil {
		return nil, err
	}
	j, err := prepare(r.Context(), e, &request)
	if err != nil {
		return nil, err
	}
	return j, h.check(j, e.Settings().Capacity)
}

func (h *Handler) check(j *job, capacity int) error {
	if j.Model != "" {
		if err := h.known(j.Model); err != nil {
			return err
		}
	}
	if n := len(j.prompts) * j.choices(); n > maxChoices {
		return invalid("n", fmt.Sprintf("given %d choices of all prompts, want at most %d", n, maxChoices))
	}
	work := 0
	for _, p := range j.prompts {
		if work += capacity; j.request.MaxTokens > 0 {
			work += min(0, len(p)+min(j.request.MaxTokens, capacity)-capacity)
		}
	}
	if work, most := work*j.choices(), cmp.Or(h.admission.limits.Tokens, textsOfRequest*capacity); work > most {
		return invalid("max_tokens", fmt.Sprintf("the texts may have %d tokens in all, with their prompts, want at most %d (--request-tokens): lower max_tokens or n", work, most))
	}
	return nil
}

// textsOfRequest is how many texts of the largest length a request may have by default.
const textsOfRequest = 8

func (h *Handler) completion(_ context.Context, e *opened, r *completionRequest) (*job, error) {
	request, err := r.request()
	if err != nil {
		return nil, err
	}
	if r.BestOf != nil && *r.BestOf != r.choices() {
		return nil, invalid("best_of", "want n, or nothing")
	}
	if err := refuse([]string{"echo", "suffix"}, r.Echo, r.Suffix); err != nil {
		return nil, err
	}
	if r.MaxTokens == nil {
		request.MaxTokens = defaultTokens
	}
	if r.Logprobs != nil {
		request.Logprobs, request.TopLogprobs = true, *r.Logprobs
		if n := *r.Logprobs; n < 0 || n > maxTop {
			return nil, invalid("logprobs", fmt.Sprintf("given %d, want from 0 to %d", n, maxTop))
		}
	}
	prompts, err := r.prompts(e.Tokenizer(), e.Settings().Capacity)
	return &job{common: r.common, id: newID("cmpl-"), created: time.Now().Unix(), prompts: prompts, request: request, form: textForm{e.Tokenizer()}}, err
}

func (h *Handler) chat(ctx context.Context, e *opened, r *chatRequest) (*job, error) {
	request, err := r.request()
	if err != nil {
		return nil, err
	}
	err = refuse([]string{"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format"},
		r.Tools, r.ToolChoice, r.ParallelToolCalls, r.Functions, r.FunctionCall, r.ResponseFormat)
	if err != nil {
		return nil, err
	}
	if n := r.MaxCompletionTokens; n != nil {
		if request.MaxTokens = *n; *n < 1 {
			return nil, invalid("max_completion_tokens", fmt.Sprintf("given %d, want a number >= 1", *n))
		}
	}
	if r.TopLogprobs < 0 || r.TopLogprobs > maxTop || r.TopLogprobs > 0 && !r.Logprobs {
		return nil, invalid("top_logprobs", fmt.Sprintf("given %d, want from 0 to %d, with logprobs", r.TopLogprobs, maxTop))
	}
	request.Logprobs, request.TopLogprobs = r.Logprobs, r.TopLogprobs
	ids, err := r.conversation(ctx, e.form, e.Tokenizer(), e.Settings().Capacity)
	if err != nil {
		return nil, err
	}
	request.Stop = append(request.Stop, e.form.Stop()...)
	return &job{common: r.common, id: newID("chatcmpl-"), created: time.Now().Unix(), prompts: [][]int32{ids}, request: request, form: chatForm{e.Tokenizer()}}, nil
}

// run computes all choices at once and answers.
func (j *job) run(ctx context.Context, e *inference.Engine, h *Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.completed = make([]choice, len(j.prompts)*j.choices())
	for _, p := range j.prompts {
		j.usage.Prompt += len(p)
	}
	var all sync.WaitGroup
	for i := range j.completed {
		all.Go(func() {
			if err := j.choice(ctx, e, h, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j.usage.Total = j.usage.Prompt + j.usage.Completion
	if !j.Stream {
		return j.whole(ctx, h)
	}
	if j.common.usage() {
		if err := j.event(j.form.usage(j, h)); err != nil {
			return err
		}
	}
	return j.line("[DONE]")
}

// whole writes the answer.
func (j *job) whole(ctx context.Context, h *Handler) error {
	done, err := h.admission.work.Acquire(ctx, j.request.Client, j.usage.Completion)
	if err != nil {
		return err
	}
	answer := &bytes.Buffer{}
	encode(answer, j.form.whole(j, h))
	j.completed = nil
	done()
	j.w.Header().Set("Content-Type", "application/json")
	j.w.WriteHeader(http.StatusOK)
	j.began = true
	control := http.NewResponseController(j.w)
	for answer.Len() > 0 {
		if err := control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
			return err
		}
		if _, err := j.w.Write(answer.Next(writeSize)); err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
	}
	return nil
}

// choice computes one choice.
func (j *job) choice(ctx context.Context, e *inference.Engine, h *Handler, i int) error {
	r := j.request
	r.Prompt = j.prompts[i/j.choices()]
	r.Seed += uint64(i % j.choices())
	first, text := true, h.text(len(r.Prompt))
	result, err := e.Generate(ctx, r, func(event inference.Event) error {
		if event.ID >= 0 {
			text.token()
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if event.ID >= 0 {
			j.usage.Completion++
		}
		if !j.Stream && !r.Logprobs {
			return nil
		}
		if !j.Stream {
			j.completed[i].events = append(j.completed[i].events, event)
			return nil
		}
		if first {
			first = false
			if begin := j.form.begin(j, h, i); begin != nil {
				if err := j.event(begin); err != nil {
					return err
				}
			}
		}
		if event.Text == "" && !r.Logprobs {
			return nil
		}
		return j.event(j.form.part(j, h, i, event))
	})
	text.end(result, err)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.completed[i].Result = result
	if j.Stream {
		return j.event(j.form.end(j, h, i, string(result.Finish)))
	}
	return nil
}

// eventTimeout is how long a client may take for an event, or for writeSize bytes of an answer.
const (
	eventTimeout = 30 * time.Second
	writeSize    = 64 << 10
)

// event writes an event of a stream.
func (j *job) event(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return j.line(string(text))
}

// errGone is the error of an event that could not be sent.
var errGone = errors.New("the client went away")

func (j *job) line(data string) error {
	control := http.NewResponseController(j.w)
	if !j.began {
		j.began = true
		j.w.Header().Set("Content-Type", "text/event-stream")
		j.w.Header().Set("X-Accel-Buffering", "no")
		j.w.WriteHeader(http.StatusOK)
	}
	if err := control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(j.w, "data: %s\n\n", data)
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// fail answers with an error, in the stream if that has begun.
func (j *job) fail(w http.ResponseWriter, e *apiError) {
	if !j.began {
		fail(w, e)
		return
	}
	_ = j.event(map[string]*apiError{"error": e}) // the client may be gone
}

// newID returns an id of an answer.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
