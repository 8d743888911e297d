package posttrain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
)

// Example is a text as token ids. Learn says of each whether the model is to learn to write it.
type Example struct {
	Tokens []int32
	Learn  []bool
}

// Pair is an answer that is better than another one to the same prompt.
type Pair struct{ Chosen, Rejected Example }

// Source is the examples of files.
type Source struct {
	Files       []string
	Examples    []Example
	Pairs       []Pair     // for preferences in place of Examples
	Fingerprint string     // of tokenizer, template and files
	Bad         corpus.Bad // the lines that were left out
	Template    string     // the chat template that conversations were rendered with; "" without any
}

// Reader reads examples.
type Reader struct {
	config    Tuning
	tokenizer tokenizer.Tokenizer
	template  *chat.Template
	onBad     corpus.OnBad
	source    string // of template
	talks     bool   // a conversation was read
	bos, eos  string
	pairs     bool
}

// NewReader returns a Reader of examples, or with pairs one of preferences. onBad says what becomes
// of lines without any.
func NewReader(c Tuning, t tokenizer.Tokenizer, pairs bool, onBad corpus.OnBad) (*Reader, error) {
	template, source, err := c.template(t)
	if err != nil {
		return nil, err
	}
	r := &Reader{config: c, tokenizer: t, template: template, source: source, pairs: pairs, onBad: onBad}
	if f, ok := t.(*tokenizer.File); ok {
		r.bos, r.eos = special(f, f.BOS()), special(f, f.EOS())
	}
	return r, nil
}

// special returns the text of a special token, "" if there is none.
func special(f *tokenizer.File, id int32) string {
	if id < 0 {
		return ""
	}
	text, _ := f.Token(id)
	return text
}

// Find returns the files that a path names: a file, a directory of files that end with .jsonl,
// .jsonl.gz or .jsonl.zst, or a pattern.
func Find(path string) ([]string, error) {
	if path == "" {
		return nil, errors.New("train_data_path: given null, want a file of examples in JSON lines, a directory of such files, or a pattern")
	}
	path, err := corpus.Provided(path)
	if err != nil {
		return nil, fmt.Errorf("train_data_path: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		var all []string
		for _, pattern := range []string{"*.jsonl", "*.jsonl.gz", "*.jsonl.zst"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, fmt.Errorf("train_data_path: %w", err)
			}
			all = append(all, found...)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("train_data_path: the directory %s has no files *.jsonl, *.jsonl.gz or *.jsonl.zst", path)
		}
		slices.Sort(all)
		return all, nil
	}
	all, globErr := filepath.Glob(path)
	if globErr != nil || len(all) == 0 {
		return nil, fmt.Errorf("train_data_path: %w; want a file of examples in JSON lines, a directory of such files, or a pattern", durable.Explain(err))
	}
	slices.Sort(all)
	return all, nil
}

// Read reads all examples of files.
func (r *Reader) Read(ctx context.Context, files []string) (*Source, error) {
	s := &Source{Files: files}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%+v\n", r.tokenizer.Name(), r.config)
	for _, file := range files {
		if err := r.readFile(ctx, file, s, sum); err != nil {
			return nil, err
		}
	}
	if len(s.Examples)+len(s.Pairs) == 0 {
		return nil, fmt.Errorf("train_data_path: %s: given no examples, want a JSON object per line%s", strings.Join(files, ", "), also(s.Bad.String()))
	}
	if r.talks {
		s.Template = r.source
	}
	s.Fingerprint = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// also returns a text as the second part of a sentence, "" for none.
func also(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

func (r *Reader) readFile(ctx context.Context, file string, s *Source, sum hash.Hash) error {
	err := corpus.Lines(ctx, file, func(line corpus.Line) error {
		fmt.Fprintf(sum, "%s\n", line.Text)
		fault := line.Check()
		if fault == nil && len(line.Text) > 0 {
			fault = r.readLine(ctx, line.Text, s)
		}
		return r.onBad.Skip(ctx, &s.Bad, line.At(fault))
	})
	if err != nil {
		return fmt.Errorf("train_data_path: %w", err)
	}
	return nil
}

// readLine adds the examples of a line.
func (r *Reader) readLine(ctx context.Context, line []byte, s *Source) error {
	v, err := chat.ParseJSON(line)
	if err != nil {
		return err
	}
	m, ok := v.(*chat.Map)
	if !ok {
		return errors.New("want a JSON object")
	}
	if r.pairs {
		p, err := r.pair(ctx, m)
		if err != nil {
			return err
		}
		s.Pairs = append(s.Pairs, p)
		return nil
	}
	examples, err := r.examples(ctx, m)
	s.Examples = append(s.Examples, examples...)
	return err
}

// answerKeys are the keys of responses, unless response_key says another.
var answerKeys = []string{"response", "completion", "answer"}

// examples returns the examples of an object.
func (r *Reader) examples(ctx context.Context, m *chat.Map) ([]Example, error) {
	messages, talk := m.Get("messages")
	if talk && r.config.PromptKey == "" {
		return r.conversation(ctx, m, messages)
	}
	prompt, answer, err := r.texts(m)
	if err != nil {
		return nil, err
	}
	if r.config.ChatTemplate != "" {
		return r.conversation(ctx, m, chat.Messages(chat.Message{Role: "user", Content: prompt}, chat.Message{Role: "assistant", Content: answer}))
	}
	return []Example{r.plain(prompt, answer)}, nil
}

// texts returns prompt and response.
func (r *Reader) texts(m *chat.Map) (prompt, answer string, err error) {
	promptKey, keys := "prompt", answerKeys
	if r.config.PromptKey != "" {
		promptKey, keys = r.config.PromptKey, []string{r.config.ResponseKey}
	}
	if prompt, err = text(m, promptKey); err != nil {
		return "", "", err
	}
	for _, key := range keys {
		if _, ok := m.Get(key); ok {
			answer, err = text(m, key)
			return prompt, answer, err
		}
	}
	return "", "", fmt.Errorf("want messages, or %s and %s", promptKey, strings.Join(keys, " or "))
}

func text(m *chat.Map, key string) (string, error) {
	v, ok := m.Get(key)
	if !ok {
		return "", fmt.Errorf("want messages, or %s and a response", key)
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s: want a string", key)
	}
	return s, nil
}

// plain returns a prompt followed by its answer, which the end token or, without one, a newline
// ends.
func (r *Reader) plain(prompt, answer string) Example {
	end := r.eos
	if end == "" {
		end = "\n"
	}
	return r.encode(chat.Sample{Text: r.bos + prompt + answer + end, Answers: []chat.Span{{Begin: len(r.bos) + len(prompt), End: len(r.bos) + len(prompt) + len(answer) + len(end)}}})
}

// conversation returns what messages teach.
func (r *Reader) conversation(ctx context.Context, m *chat.Map, messages any) ([]Example, error) {
	r.talks = true
	tools, _ := m.Get("tools")
	samples, err := r.template.Samples(ctx, chat.Conversation{Messages: messages, Tools: tools, BOS: r.bos, EOS: r.eos, Now: time.Unix(0, 0).UTC()})
	if err != nil {
		return nil, err
	}
	all := make([]Example, len(samples))
	for i, s := range samples {
		all[i] = r.encode(s)
	}
	return all, nil
}

// encode encodes the parts of a sample one by one, as a model sees them: the text before an answer,
// the answer, and so on.
func (r *Reader) encode(s chat.Sample) Example {
	var e Example
	add := func(part string, learn bool) {
		e.Tokens = r.tokenizer.Encode(e.Tokens, []byte(part))
		for len(e.Learn) < len(e.Tokens) {
			e.Learn = append(e.Learn, learn)
		}
	}
	at := 0
	for _, a := range s.Answers {
		add(s.Text[at:a.Begin], false)
		add(s.Text[a.Begin:a.End], true)
		at = a.End
	}
	add(s.Text[at:], false)
	return e
}

// pair returns a preference: chosen and rejected are answers to prompt, or lists of messages of
// which the last one is the answer.
func (r *Reader) pair(ctx context.Context, m *chat.Map) (Pair, error) {
	var p Pair
	for _, side := range []struct {
		key  string
		into *Example
	}{{"chosen", &p.Chosen}, {"rejected", &p.Rejected}} {
		v, ok := m.Get(side.key)
		if !ok {
			return Pair{}, fmt.Errorf("given no %s, want chosen and rejected", side.key)
		}
		e, err := r.side(ctx, m, v)
		if err != nil {
			return Pair{}, fmt.Errorf("%s: %w", side.key, err)
		}
		*side.into = e
	}
	return p, nil
}

func (r *Reader) side(ctx context.Context, m *chat.Map, v any) (Example, error) {
	if answer, ok := v.(string); ok {
		prompt, err := text(m, "prompt")
		if err != nil {
			return Example{}, err
		}
		if r.config.ChatTemplate == "" {
			return r.plain(prompt, answer), nil
		}
		v = chat.Messages(chat.Message{Role: "user", Content: prompt}, chat.Message{Role: "assistant", Content: answer})
	}
	all, err := r.conversation(ctx, m, v)
	if err != nil {
		return Example{}, err
	}
	last := all[len(all)-1] // only the last answer of a conversation is compared
	inLast := true
	for i := len(last.Learn) - 1; i >= 0; i-- {
		if inLast && last.Learn[i] && i > 0 && !last.Learn[i-1] {
			inLast = false
			continue
		}
		last.Learn[i] = last.Learn[i] && inLast
	}
	return last, nil
}
