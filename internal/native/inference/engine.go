package inference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/internal/fair"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/tensor"
)

// Settings are the limits of an Engine.
type Settings struct {
	Slots    int     // sequences at the same time; 0 means 1
	Capacity int     // tokens of a sequence with its prompt, at most; 0 means seq_length, but at most DefaultCapacity
	Rows     int     // tokens of a step, at most; 0 means 256
	Queue    int     // requests that wait for a slot, at most; more end with ErrBusy; 0 sets no limit
	EOS      []int32 // tokens that end a text

	// BatchInvariant makes the logits of a text have the same bits alone and beside others,
	// however its prompt is divided: Rows and Slots are at most InvariantRows, and New fails
	// where impls compute other bits all the same.
	BatchInvariant bool
}

// Request asks for the continuation of a prompt.
type Request struct {
	Client    string // those who share a client share its part of the work
	Prompt    []int32
	MaxTokens int // of the continuation; 0 means as many as fit
	Sampling
	Stop        []string // the text ends before the first of these
	Logprobs    bool     // with each token, its log probability
	TopLogprobs int      // and those of this many of the most likely tokens
	Slide       bool     // a text that reaches the capacity goes on with the later half of its tokens
}

// Event is what one token of a request adds.
type Event struct {
	ID      int32
	Text    string // whole characters; a token may add none, and the last event may add more than its own
	Logprob Logprob
	Top     []Logprob
}

// Finish says why a text ended.
type Finish string

// The reasons, with OpenAI's names.
const (
	FinishStop   Finish = "stop"   // a token or a string that ends texts
	FinishLength Finish = "length" // the limit of tokens
)

// Result is a whole continuation.
type Result struct {
	Text   string
	IDs    []int32 // the generated tokens, without the one that ended the text
	Finish Finish
}

// RequestError says what is wrong with a request.
type RequestError struct{ Param, Text string }

// Error names the parameter.
func (e *RequestError) Error() string { return e.Param + ": " + e.Text }

// Errors of Generate.
var (
	ErrBusy   = errors.New("too many requests wait for the model")
	ErrClosed = errors.New("the model is closed")
)

// Engine generates text for several requests at once.
type Engine struct {
	decoder  *model.Decoder
	tok      tokenizer.Tokenizer
	settings Settings
	columns  int // of the logits
	vocab    int // of the columns that stand for tokens

	mu      sync.Mutex
	ledger  fair.Ledger // the tokens that were computed for each client
	waiting []*sequence
	active  []*sequence // by slot; nil is free
	closed  bool
	wake    chan struct{}
	done    chan struct{}
	err     error // of closing the decoder
}

// sequence is a request with a slot, or that waits for one.
type sequence struct {
	Request
	ctx     context.Context
	pending []int32 // tokens that are not in the cache yet: of the prompt, or the last one
	tokens  []int32 // prompt and continuation
	made    int
	sampler *sampler
	text    *textStream
	events  events
	finish  Finish
	err     error

	computed int  // tokens of the prompt that were computed
	kept     int  // tokens made since it got its slot
	resumed  bool // it has lost a slot
}

// unread reports whether the caller is late with taking events.
func (s *sequence) unread() bool { return s.events.unread() >= maxUnread }

// New returns an engine for a model. Ids at or above the tokenizer's are never chosen. The caller
// closes the model after the engine.
func New(m *model.Model, tok tokenizer.Tokenizer, mgr *opmanager.Manager, s Settings) (*Engine, error) {
	s.Slots, s.Capacity = cmp.Or(s.Slots, 1), capacityOf(m.Config(), s.Capacity)
	if s.BatchInvariant {
		if s.Slots > InvariantRows {
			return nil, fmt.Errorf("given %d texts at once, want at most %d whose bits do not depend on the others", s.Slots, InvariantRows)
		}
		s.Rows = InvariantRows
	}
	if err := checkCache(m, s.Slots, s.Capacity); err != nil {
		return nil, err
	}
	d, err := m.NewDecoder(mgr, model.DecoderSettings{Slots: s.Slots, Capacity: s.Capacity, Rows: s.Rows})
	if err != nil {
		return nil, err
	}
	if s.BatchInvariant {
		if err := checkInvariance(d, min(tok.VocabSize(), m.Config().VocabSize)); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	e := &Engine{
		decoder: d, tok: tok, settings: s, columns: m.Config().VocabSize, vocab: min(tok.VocabSize(), m.Config().VocabSize), active: make([]*sequence, s.Slots),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	e.settings.Capacity, e.settings.Rows = d.Settings().Capacity, d.Settings().Rows
	go e.run()
	return e, nil
}

// Tokenizer returns the tokenizer.
func (e *Engine) Tokenizer() tokenizer.Tokenizer { return e.tok }

// Settings returns the limits, without defaults.
func (e *Engine) Settings() Settings { return e.settings }

// Load returns how many requests generate and how many wait.
func (e *Engine) Load() (active, waiting int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.active {
		if s != nil {
			active++
		}
	}
	return active, len(e.waiting)
}

// Close ends all requests with ErrClosed and returns the memory of the cache.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.signal()
	<-e.done
	return e.err
}

func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// check returns the first fault of a request.
func (e *Engine) check(r *Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	switch {
	case len(r.Prompt) == 0:
		return &RequestError{"prompt", "given no tokens, want at least one"}
	case len(r.Prompt) >= e.settings.Capacity && !r.Slide:
		return &RequestError{"prompt", fmt.Sprintf("given %d tokens, want fewer than the %d that a text may have", len(r.Prompt), e.settings.Capacity)}
	case r.MaxTokens < 0:
		return &RequestError{"max_tokens", fmt.Sprintf("given %d, want a number >= 1, or 0 for as many as fit", r.MaxTokens)}
	case r.MaxTokens == 0 && r.Slide:
		return &RequestError{"max_tokens", "given 0, want a number >= 1 for a text without an end"}
	case slices.Contains(r.Stop, ""):
		return &RequestError{"stop", "given an empty string"}
	}
	if i := slices.IndexFunc(r.Prompt, func(id int32) bool { return id < 0 || int(id) >= e.vocab }); i >= 0 {
		return &RequestError{"prompt", fmt.Sprintf("given token %d, want ids below %d", r.Prompt[i], e.vocab)}
	}
	if fits := e.settings.Capacity - len(r.Prompt); !r.Slide && (r.MaxTokens == 0 || r.MaxTokens > fits) {
		r.MaxTokens = fits
	}
	return nil
}

// Generate continues a prompt and calls emit, which may be nil, with each token. When ctx ends or
// emit returns an error, the request ends with that error and its slot is free again.
func (e *Engine) Generate(ctx context.Context, r Request, emit func(Event) error) (Result, error) {
	if err := e.check(&r); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, e.signal)()
	s := &sequence{
		Request: r, ctx: ctx, pending: r.Prompt, tokens: slices.Clone(r.Prompt), sampler: newSampler(r.Sampling),
		text: newTextStream(e.tok, r.Prompt, r.Stop), events: newEvents(),
	}
	s.forget(e.settings.Capacity)
	if err := e.queue(s); err != nil {
		return Result{}, err
	}
	var result Result
	var text strings.Builder
	var failed error
	for event := range s.events.all(e.signal) {
		text.WriteString(event.Text)
		if event.ID >= 0 {
			result.IDs = append(result.IDs, event.ID)
		}
		if emit != nil && failed == nil {
			if failed = emit(event); failed != nil {
				cancel()
			}
		}
	}
	result.Text, result.Finish = text.String(), s.finish
	return result, cmp.Or(failed, s.err)
}

// run computes steps until the engine is closed.
func (e *Engine) run() {
	defer close(e.done)
	for {
		running, closed := e.admit()
		if closed {
			e.err = e.decoder.Close()
			return
		}
		if !running {
			<-e.wake
			continue
		}
		e.step()
	}
}

// step computes the next tokens of the active sequences.
func (e *Engine) step() {
	var chunks []model.Chunk
	for slot, n := range e.rows() {
		if n == 0 {
			continue
		}
		s := e.active[slot]
		c := model.Chunk{Slot: slot, Tokens: s.pending[:n], From: n}
		if n == len(s.pending) {
			c.From = n - 1
		}
		chunks = append(chunks, c)
	}
	logits, err := e.logits(chunks)
	row := 0
	for _, c := range chunks {
		s := e.active[c.Slot]
		if err != nil {
			s.err = err
			continue
		}
		s.pending = s.pending[len(c.Tokens):]
		fresh := min(len(c.Tokens), len(s.Prompt)-s.computed) // what is computed again costs others, but not the client
		s.computed += fresh
		e.charge(s, fresh)
		if c.From < len(c.Tokens) {
			e.accept(s, c.Slot, logits[row*e.columns:][:e.vocab])
			row++
		}
	}
}

// logits computes a step and returns the rows of the logits that are wanted.
func (e *Engine) logits(chunks []model.Chunk) ([]float32, error) {
	logits, err := e.decoder.Step(chunks)
	if err != nil {
		return nil, err
	}
	return tensor.Read[float32](logits)
}

// accept chooses the next token of a sequence.
func (e *Engine) accept(s *sequence, slot int, logits []float32) {
	id := s.sampler.next(logits)
	s.made++
	s.kept++
	e.charge(s, 1)
	if slices.Contains(e.settings.EOS, id) {
		s.end(FinishStop)
		return
	}
	event := Event{ID: id, Text: string(s.text.add(id))}
	if s.Logprobs {
		event.Logprob, event.Top = logprobs(logits, id, s.TopLogprobs)
	}
	s.tokens = append(s.tokens, id)
	s.events.add(event)
	s.pending = s.tokens[len(s.tokens)-1:]
	switch {
	case s.text.ended:
		s.end(FinishStop)
	case s.made == s.MaxTokens:
		s.end(FinishLength)
	case e.decoder.Length(slot) == e.settings.Capacity: // only with Slide
		e.decoder.Truncate(slot, 0)
		s.forget(e.settings.Capacity)
	}
}

// forget makes a sequence that has reached the capacity begin anew with the later half of it.
func (s *sequence) forget(capacity int) {
	if len(s.tokens) >= capacity {
		s.pending = s.tokens[len(s.tokens)-(capacity+1)/2:]
	}
}

// end sends the text that was held back.
func (s *sequence) end(f Finish) {
	if rest := s.text.rest(); len(rest) > 0 {
		s.events.add(Event{ID: -1, Text: string(rest)})
	}
	s.finish = f
}
