package inference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/tensor"
)

// Scorer computes how likely a model finds given tokens. A Scorer is used by one goroutine at a
// time.
type Scorer struct {
	decoder     *model.Decoder
	memory      memory.Arena // of targets, losses and lse
	vocab       int
	rows        int
	fwd         *opmanager.Bound[loss.CrossEntropyFwdArgs]
	targets     *tensor.Tensor // i32 [rows]
	losses, lse *tensor.Tensor // [rows]
	saved       *opregistry.Saved
}

// noIgnore is a target that never occurs.
const noIgnore = -100

// NewScorer returns a scorer for texts of at most capacity tokens; 0 means seq_length, but at most
// DefaultCapacity. Close returns the memory.
func NewScorer(m *model.Model, mgr *opmanager.Manager, capacity int) (*Scorer, error) {
	const rows = 256
	capacity = capacityOf(m.Config(), capacity)
	if err := checkCache(m, 1, capacity); err != nil {
		return nil, err
	}
	d, err := m.NewDecoder(mgr, model.DecoderSettings{Slots: 1, Capacity: capacity, Rows: rows})
	if err != nil {
		return nil, err
	}
	s := &Scorer{
		decoder: d, memory: memory.Arena{Backend: m.Backend()}, vocab: m.Config().VocabSize, rows: rows, saved: new(opregistry.Saved),
		fwd: opmanager.MustBind(mgr, loss.CrossEntropyFwd),
	}
	s.targets, s.losses, s.lse = s.memory.New(tensor.I32, rows), s.memory.New(tensor.F32, rows), s.memory.New(tensor.F32, rows)
	if s.memory.Err != nil {
		return nil, errors.Join(fmt.Errorf("allocate the losses of %d tokens: %w", rows, s.memory.Fail()), d.Close())
	}
	return s, nil
}

// Capacity returns how many tokens a text may have.
func (s *Scorer) Capacity() int { return s.decoder.Settings().Capacity }

// Close returns the memory.
func (s *Scorer) Close() error { return errors.Join(s.memory.Close(), s.decoder.Close()) }

// Score is the result for some tokens.
type Score struct {
	Nats   float64 // the sum of −ln p
	Tokens int
	Greedy bool // every token is the likeliest one
}

// extend appends tokens to the text and adds the score of those that follow the tokens from from
// on: of tokens[from+1], … and, after the last one, of next unless it is negative.
func (s *Scorer) extend(ctx context.Context, score *Score, tokens []int32, from int, next int32) error {
	for at := 0; at < len(tokens); at += s.rows {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		part := tokens[at:min(at+s.rows, len(tokens))]
		chunk := model.Chunk{Tokens: part, From: min(max(from-at, 0), len(part))}
		logits, err := s.decoder.Step([]model.Chunk{chunk})
		if err != nil {
			return err
		}
		targets := make([]int32, 0, len(part))
		for i := at + chunk.From; i < at+len(part); i++ {
			switch {
			case i+1 < len(tokens):
				targets = append(targets, tokens[i+1])
			case next >= 0:
				targets = append(targets, next)
			}
		}
		if err := s.add(score, logits, targets); err != nil {
			return err
		}
	}
	return nil
}

// add adds the score of the targets, which have the first rows of the logits.
func (s *Scorer) add(score *Score, logits *tensor.Tensor, targets []int32) error {
	n := len(targets)
	if n == 0 {
		return nil
	}
	logits, wanted, losses, lse := memory.Rows(logits, 0, n), memory.Rows(s.targets, 0, n), memory.Rows(s.losses, 0, n), memory.Rows(s.lse, 0, n)
	if err := tensor.Fill(wanted, func(to []int32) { copy(to, targets) }); err != nil {
		return err
	}
	if err := s.fwd.Call(loss.CrossEntropyFwdArgs{Logits: logits, Targets: wanted, Losses: losses, LSE: lse, IgnoreIndex: noIgnore, Saved: s.saved}); err != nil {
		return err
	}
	all, err := tensor.Read[float32](losses)
	if err != nil {
		return err
	}
	for _, nats := range all {
		score.Nats += float64(nats)
	}
	score.Tokens += n
	return s.compare(score, logits, targets)
}

// compare finds out whether the targets are the likeliest tokens, unless an earlier one was not.
func (s *Scorer) compare(score *Score, logits *tensor.Tensor, targets []int32) error {
	if !score.Greedy {
		return nil
	}
	values, err := tensor.Read[float32](logits)
	if err != nil {
		return err
	}
	for i, target := range targets {
		score.Greedy = score.Greedy && largest(values[i*s.vocab:][:s.vocab]) == target
	}
	return nil
}

// Text scores the tokens that read returns, all but the first. Each window of the capacity of the
// scorer begins stride tokens after the one before and scores the tokens that are new in it; a
// stride of the capacity, which 0 stands for, computes every token once. read fills dst with the
// tokens from a position on; n is the number of all tokens.
func (s *Scorer) Text(ctx context.Context, n int, read func(dst []int32, from int) error, stride int) (Score, error) {
	capacity := s.Capacity()
	stride = cmp.Or(stride, capacity)
	if stride < 1 || stride > capacity {
		return Score{}, &RequestError{"stride", fmt.Sprintf("given %d, want from 1 to the %d tokens of a window", stride, capacity)}
	}
	if n < 2 {
		return Score{}, &RequestError{"text", fmt.Sprintf("given %d tokens, want at least two", n)}
	}
	score := Score{Greedy: true}
	window := make([]int32, capacity+1)
	done := 0 // tokens whose successor is scored
	for first := 0; done < n-1; first += stride {
		row := window[:min(capacity+1, n-first)]
		if err := read(row, first); err != nil {
			return Score{}, err
		}
		s.decoder.Truncate(0, 0)
		last := len(row) - 1
		if err := s.extend(ctx, &score, row[:last], done-first, row[last]); err != nil {
			return Score{}, err
		}
		done = first + last
	}
	return score, nil
}

// Choices scores several continuations of one context, whose tokens they share in the cache. A text
// that is too long loses tokens at its beginning.
func (s *Scorer) Choices(ctx context.Context, prompt []int32, choices [][]int32) ([]Score, error) {
	if len(prompt) == 0 {
		return nil, &RequestError{"query", "given no tokens, want at least one before a choice"}
	}
	longest := 0
	for i, c := range choices {
		if len(c) == 0 {
			return nil, &RequestError{"choices", fmt.Sprintf("choice %d has no tokens", i+1)}
		}
		longest = max(longest, len(c))
	}
	if longest > s.Capacity() {
		return nil, &RequestError{"choices", fmt.Sprintf("a choice of %d tokens, want at most the %d of a text", longest, s.Capacity())}
	}
	// The last token of a choice is a target only.
	prompt = prompt[max(len(prompt)+longest-1-s.Capacity(), 0):]
	shared := prompt[:len(prompt)-1]
	s.decoder.Truncate(0, 0)
	if err := s.extend(ctx, nil, shared, len(shared), -1); err != nil {
		return nil, err
	}
	scores := make([]Score, len(choices))
	for i, c := range choices {
		scores[i].Greedy = true
		s.decoder.Truncate(0, len(shared))
		row := append([]int32{prompt[len(shared)]}, c...)
		if err := s.extend(ctx, &scores[i], row[:len(c)], 0, c[len(c)-1]); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// Perplexity returns e to the mean loss.
func (s Score) Perplexity() float64 { return math.Exp(s.Loss()) }

// Loss returns the mean of −ln p over the tokens.
func (s Score) Loss() float64 { return s.Nats / float64(s.Tokens) }
