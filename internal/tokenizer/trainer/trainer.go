package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// Config says what kind of tokenizer is trained.
type Config struct {
	// VocabSize is the number of tokens, special ones and the 256 bytes among them.
	VocabSize int

	// Pattern names the expression that cuts text into words: one of Patterns.
	Pattern string

	// SpecialTokens get the first ids, in this order.
	SpecialTokens []string

	// MinCount is how often a pair must occur to become a token.
	MinCount int

	// MaxTokenLength is the length of the longest token, in bytes.
	MaxTokenLength int

	// MaxWords is the number of different words that are counted. Beyond it the rarest are
	// forgotten.
	MaxWords int
}

// Default returns the configuration with the pattern of Llama 3 and a token that ends texts.
func Default() Config {
	return Config{VocabSize: 8192, Pattern: "llama3", SpecialTokens: []string{"<|endoftext|>"}, MinCount: 2, MaxTokenLength: 64, MaxWords: 4 << 20}
}

// Patterns returns the names of the patterns.
func Patterns() []string { return tokenizer.Names() }

// Validate returns all that is wrong with a configuration.
func (c Config) Validate() error {
	var errs []error
	if least := 256 + len(c.SpecialTokens); c.VocabSize < least || c.VocabSize > 1<<20 {
		errs = append(errs, fmt.Errorf("the vocabulary cannot have %d tokens: it takes from %d (256 bytes and %s) to %d", c.VocabSize, least, plaintext.Quantity(len(c.SpecialTokens), "special token", "special tokens"), 1<<20))
	}
	if _, ok := tokenizer.Expr(c.Pattern); !ok {
		errs = append(errs, fmt.Errorf("the pattern %q is unknown: there are %s%s", c.Pattern, strings.Join(Patterns(), ", "), suggest.Hint(c.Pattern, Patterns())))
	}
	for i, token := range c.SpecialTokens {
		if utf8.RuneCountInString(token) < 2 || !utf8.ValidString(token) || slices.Contains(c.SpecialTokens[:i], token) {
			errs = append(errs, fmt.Errorf("the special token %q is shorter than 2 characters, is no UTF-8 or is given twice", token))
		}
	}
	if c.MinCount < 1 || c.MaxTokenLength < 2 || c.MaxWords < 1000 {
		errs = append(errs, fmt.Errorf("the least count is %d, the longest token %d and the number of words %d: they are at least 1, 2 and 1000", c.MinCount, c.MaxTokenLength, c.MaxWords))
	}
	return errors.Join(errs...)
}

// Trainer counts words.
type Trainer struct {
	config    Config
	scan      tokenizer.Scanner
	index     map[string]int32
	counts    []int64
	words     []string
	bytes     int64
	forgotten int64
}

// New returns a trainer that has seen no text.
func New(c Config) (*Trainer, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	expr, _ := tokenizer.Expr(c.Pattern)
	scan, _ := tokenizer.Find(expr)
	return &Trainer{config: c, scan: scan, index: map[string]int32{}}, nil
}

// Bytes returns the size of the texts that were added, in bytes.
func (t *Trainer) Bytes() int64 { return t.bytes }

// Sizes in bytes.
const (
	partSize = 1 << 20
	maxWord  = 256 // longer words are counted in parts
)

// Add counts the words of a text, which it reads to its end. Bytes that are no UTF-8 count as
// U+FFFD.
func (t *Trainer) Add(ctx context.Context, r io.Reader) error {
	buf := make([]byte, partSize)
	kept := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf[kept:])
		t.bytes += int64(n)
		part := buf[:kept+n]
		if err != nil {
			t.count(part)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		cut := tokenizer.Cut(part)
		t.count(part[:cut])
		kept = copy(buf, part[cut:])
	}
}

// AddText counts the words of a text that is in memory.
func (t *Trainer) AddText(text []byte) {
	t.bytes += int64(len(text))
	t.count(text)
}

// count counts the words of a part of a text.
func (t *Trainer) count(text []byte) {
	text = tokenizer.Valid(text)
	for len(text) > 0 {
		n := t.scan(text)
		word := text[:n]
		text = text[n:]
		for len(word) > maxWord {
			end := maxWord
			for !utf8.RuneStart(word[end]) {
				end--
			}
			t.countWord(word[:end])
			word = word[end:]
		}
		t.countWord(word)
	}
}

func (t *Trainer) countWord(word []byte) {
	if at, ok := t.index[string(word)]; ok {
		t.counts[at]++
		return
	}
	if len(t.words) == t.config.MaxWords {
		t.forget()
	}
	w := string(word)
	t.index[w] = int32(len(t.words))
	t.words = append(t.words, w)
	t.counts = append(t.counts, 1)
}

// forget removes the rarest words until a quarter of the room is free.
func (t *Trainer) forget() {
	sorted := slices.Sorted(slices.Values(t.counts))
	limit := sorted[len(sorted)/4]
	n := 0
	for i, w := range t.words {
		if t.counts[i] <= limit {
			t.forgotten += t.counts[i]
			delete(t.index, w)
			continue
		}
		t.words[n], t.counts[n] = w, t.counts[i]
		t.index[w] = int32(n)
		n++
	}
	clear(t.words[n:])
	t.words, t.counts = t.words[:n], t.counts[:n]
}

// Result is a tokenizer and how it came about.
type Result struct {
	JSON      []byte // the tokenizer.json
	Tokens    int    // the size of the vocabulary, which is smaller than Wanted if the texts have too few pairs
	Wanted    int
	Words     int   // different words that were counted
	Forgotten int64 // occurrences of rarer words that were forgotten
}

// Train returns the tokenizer of the texts that were added. It uses the words up: a trainer trains
// once.
func (t *Trainer) Train(ctx context.Context) (*Result, error) {
	if len(t.words) == 0 {
		return nil, errors.New("trainer: there is no text to learn from")
	}
	special := len(t.config.SpecialTokens)
	s := Settings{
		Size: t.config.VocabSize - special, MinCount: int64(t.config.MinCount), MaxLength: t.config.MaxTokenLength,
	}
	for b := range 256 {
		s.Texts = append(s.Texts, []byte{byte(b)})
	}
	r := &Result{Wanted: t.config.VocabSize, Words: len(t.words), Forgotten: t.forgotten}
	words := make([]Word, len(t.words))
	for i, w := range t.words {
		symbols := make([]int32, len(w))
		for j := range len(w) {
			symbols[j] = int32(w[j])
		}
		words[i] = Word{Symbols: symbols, Count: t.counts[i]}
	}
	t.index, t.words, t.counts = map[string]int32{}, nil, nil
	learned, err := Learn(ctx, words, s)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	r.Tokens = len(learned.Texts) + special
	r.JSON, err = write(t.config, learned)
	return r, err
}
