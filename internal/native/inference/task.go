package inference

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// Question is one document of a multiple-choice task.
type Question struct {
	Query   string   `json:"query"`
	Choices []string `json:"choices"`
	Gold    int      `json:"gold"` // the index of the right choice
}

// maxQuestion is the largest length of a line of a task.
const maxQuestion = 16 << 20

// ReadTask reads a task of JSON lines, each a Question. Keys other than its fields are ignored.
func ReadTask(name string, in io.Reader) ([]Question, error) {
	var all []Question
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxQuestion)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		q := Question{Gold: -1}
		err := json.Unmarshal(lines.Bytes(), &q)
		switch {
		case err != nil:
		case len(q.Choices) < 2:
			err = fmt.Errorf("choices: given %d, want two or more strings", len(q.Choices))
		case q.Gold < 0 || q.Gold >= len(q.Choices):
			err = fmt.Errorf("gold: want the index of the right choice, from 0 to %d", len(q.Choices)-1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, number, err)
		}
		all = append(all, q)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line of more than %d bytes", name, maxQuestion)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if all == nil {
		return nil, fmt.Errorf("%s: no questions, want one JSON object per line", name)
	}
	return all, nil
}

// TaskSettings say how questions become tokens.
type TaskSettings struct {
	Delimiter string // between query and choice
	BOS       bool   // begin with what the tokenizer puts before a text
}

// TaskResult is the outcome of a task. Errors are standard errors of the means.
type TaskResult struct {
	Questions    int     `json:"questions"`
	Acc          float64 `json:"acc"` // share of questions whose right choice is the likeliest
	AccStderr    float64 `json:"acc_stderr"`
	AccNorm      float64 `json:"acc_norm"` // the same by log probability per character of a choice
	AccNormError float64 `json:"acc_norm_stderr"`
}

// Task scores each choice of each question. The first of equally likely choices counts.
func (s *Scorer) Task(ctx context.Context, tok tokenizer.Tokenizer, questions []Question, set TaskSettings) (TaskResult, error) {
	right, rightNorm := 0, 0
	for i, q := range questions {
		scores, err := s.question(ctx, tok, q, set)
		if err != nil {
			return TaskResult{}, fmt.Errorf("question %d: %w", i+1, err)
		}
		best, bestNorm := 0, 0
		perCharacter := func(i int) float64 {
			return scores[i].Nats / float64(max(utf8.RuneCountInString(q.Choices[i]), 1))
		}
		for k := range scores {
			if scores[k].Nats < scores[best].Nats {
				best = k
			}
			if perCharacter(k) < perCharacter(bestNorm) {
				bestNorm = k
			}
		}
		if best == q.Gold {
			right++
		}
		if bestNorm == q.Gold {
			rightNorm++
		}
	}
	r := TaskResult{Questions: len(questions)}
	r.Acc, r.AccStderr = share(right, len(questions))
	r.AccNorm, r.AccNormError = share(rightNorm, len(questions))
	return r, nil
}

// share returns the mean of n values that are 1 or 0, and its standard error.
func share(ones, n int) (mean, stderr float64) {
	mean = float64(ones) / float64(n)
	return mean, math.Sqrt(mean * (1 - mean) / float64(max(n-1, 1)))
}

// question scores the choices of a question. Spaces at the end of the query belong to the choices,
// as tokenizers of words have it. Without a query the choices follow the token that begins a text.
func (s *Scorer) question(ctx context.Context, tok tokenizer.Tokenizer, q Question, set TaskSettings) ([]Score, error) {
	query := strings.TrimRightFunc(q.Query, unicode.IsSpace)
	encode := func(text string) []int32 {
		if set.BOS {
			return Prompt(tok, text)
		}
		return tok.Encode(nil, []byte(text))
	}
	prompt := encode(query)
	known := len(prompt)
	if f, ok := tok.(*tokenizer.File); ok && known == 0 {
		for _, id := range []int32{f.EOS(), f.BOS()} {
			if id >= 0 {
				prompt = []int32{id}
			}
		}
	}
	choices := make([][]int32, len(q.Choices))
	for i, c := range q.Choices {
		whole := encode(q.Query + set.Delimiter + c)
		if known > len(whole) {
			return nil, &RequestError{"choices", fmt.Sprintf("choice %d makes the tokens of the query fewer", i+1)}
		}
		choices[i] = whole[known:]
	}
	return s.Choices(ctx, prompt, choices)
}
