package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// separator stands between two files of the stream.
const separator = "\n\n"

// Settings say which corpus to load and how.
type Settings struct {
	// Path is a file, a directory that is read recursively, or a glob; "" stands
	// for the Go standard library's sources. In a directory, hidden files and
	// directories, links and binary files are skipped.
	Path string

	// MaxBytes limits the text; 0 means no limit, but DefaultMaxBytes for the
	// default corpus. When the limit bites, the files are taken in the order of a
	// hash of their names and the last one is cut.
	MaxBytes int64

	// CacheDir is where the token cache goes; "" for none. It is created when it
	// does not exist.
	CacheDir string

	// Tokenizer encodes the text; nil stands for ByteTokenizer.
	Tokenizer Tokenizer
}

// Report says what a corpus holds and how it was loaded.
type Report struct {
	Source    string // the path, the glob, or GOROOT/src
	Default   bool   // Source was chosen because no path was given
	Files     int
	Bytes     int64 // of text, separators included
	Tokens    int
	Limited   bool // MaxBytes left text out
	Skipped   Skipped
	CachePath string // "" without a cache
	FromCache bool
	Warnings  []string
}

// String returns the report as one line for the log.
func (r Report) String() string {
	var b strings.Builder
	if r.Default {
		b.WriteString("no train_data_path: training on the Go standard library's sources, ")
	}
	fmt.Fprintf(&b, "corpus %s: %d files, %d bytes", r.Source, r.Files, r.Bytes)
	if r.Tokens > 0 {
		fmt.Fprintf(&b, ", %d tokens", r.Tokens)
	}
	if r.Limited {
		b.WriteString(" (limited, files chosen by a hash of their names)")
	}
	for _, s := range []struct {
		n    int
		what string
	}{
		{r.Skipped.Hidden, "hidden"},
		{r.Skipped.Binary, "binary"},
		{r.Skipped.Special, "special"},
		{r.Skipped.Empty, "empty"},
	} {
		if s.n > 0 {
			fmt.Fprintf(&b, ", skipped %d %s", s.n, s.what)
		}
	}
	switch {
	case r.FromCache:
		b.WriteString(", read from " + r.CachePath)
	case r.CachePath != "":
		b.WriteString(", cached in " + r.CachePath)
	}
	return b.String()
}

// Corpus is the text files that Settings name, before any of them is encoded.
type Corpus struct {
	settings Settings
	width    int // bytes of a token id
	sources  []source
	report   Report
}

// Find lists the files of a corpus. A missing or unreadable path, a glob without
// matches and a corpus without text are errors.
func Find(ctx context.Context, s Settings) (*Corpus, error) {
	if s.Tokenizer == nil {
		s.Tokenizer = ByteTokenizer{}
	}
	if s.MaxBytes < 0 {
		return nil, fmt.Errorf("train_data_max_bytes: got %d, want 0 (no limit) or more", s.MaxBytes)
	}
	width, err := widthOf(s.Tokenizer.VocabSize())
	if err != nil {
		return nil, err
	}
	c := &Corpus{settings: s, width: width}
	return c, c.find(ctx)
}

// Report says what the corpus holds; Tokens is 0 until it is loaded.
func (c *Corpus) Report() Report { return c.report }

// find fills sources and the report's part about them.
func (c *Corpus) find(ctx context.Context) error {
	f, r, limit := &finder{}, &c.report, c.settings.MaxBytes
	r.Source = c.settings.Path
	if r.Source == "" {
		root, err := f.findGoSource(ctx)
		if err != nil {
			return err
		}
		r.Source, r.Default = root, true
		if limit == 0 {
			limit = DefaultMaxBytes
		}
	} else if err := f.find(ctx, r.Source); err != nil {
		return err
	}
	if err := f.dropBinary(ctx); err != nil {
		return err
	}
	all := len(f.sources)
	f.limit(limit)
	c.sources, r.Skipped, r.Files = f.sources, f.skipped, len(f.sources)
	for i, src := range f.sources {
		r.Bytes += src.size
		if i > 0 {
			r.Bytes += int64(len(separator))
		}
		r.Limited = r.Limited || src.size < src.whole
	}
	r.Limited = r.Limited || len(f.sources) < all
	if r.Files == 0 {
		return fmt.Errorf("train_data_path: %s holds no text: skipped %d hidden, %d binary, %d special and %d empty entries", r.Source, r.Skipped.Hidden, r.Skipped.Binary, r.Skipped.Special, r.Skipped.Empty)
	}
	return nil
}

// Load returns the tokens of the corpus, from the cache when it has them. They
// depend only on the contents and relative order of the files, the tokenizer and
// the limit.
func (c *Corpus) Load(ctx context.Context) (*Tokens, Report, error) {
	r := c.report
	if c.settings.CacheDir == "" {
		tokens, err := encode(ctx, c.sources, c.settings.Tokenizer, c.width)
		return report(tokens, r, err)
	}
	cached := newCache(c.settings.CacheDir, cacheKey(c.sources, c.settings.Tokenizer.Name(), c.width), c.width)
	r.CachePath = cached.path
	tokens, err := cached.read()
	if err == nil {
		r.FromCache = true
		return report(tokens, r, nil)
	}
	if !errors.Is(err, os.ErrNotExist) {
		r.Warnings = append(r.Warnings, "the token cache is built anew: "+err.Error())
	}
	tokens, err = encode(ctx, c.sources, c.settings.Tokenizer, c.width)
	if err != nil {
		return nil, r, err
	}
	if err := cached.write(tokens); err != nil {
		r.CachePath = ""
		r.Warnings = append(r.Warnings, "the token cache was not written: "+err.Error())
	}
	return report(tokens, r, nil)
}

func report(t *Tokens, r Report, err error) (*Tokens, Report, error) {
	if err != nil {
		return nil, r, err
	}
	r.Tokens = t.Len()
	return t, r, nil
}

// encode reads and tokenizes the files one after the other.
func encode(ctx context.Context, sources []source, tok Tokenizer, width int) (*Tokens, error) {
	total := int64(0)
	for _, s := range sources {
		total += s.size + int64(len(separator))
	}
	// One token a byte at most is what tokenizers of text produce; the slice
	// grows for one that does not.
	stream := make([]byte, 0, total*int64(width))
	gap := tok.Encode(nil, []byte(separator))
	var ids []int32
	var text []byte
	for i, s := range sources {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("data: encode the corpus: %w", err)
		}
		var err error
		if text, err = readText(text, s); err != nil {
			return nil, err
		}
		ids = ids[:0]
		if i > 0 {
			ids = append(ids, gap...)
		}
		ids = tok.Encode(ids, text)
		if stream, err = appendIDs(stream, ids, width, tok.VocabSize()); err != nil {
			return nil, fmt.Errorf("encode %s: %w", s.path, err)
		}
	}
	return newTokens(stream, width), nil
}

// readText reads the used part of a file into buf, which it grows as needed.
func readText(buf []byte, s source) ([]byte, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return buf, fmt.Errorf("train_data_path: %w", durable.Explain(err))
	}
	defer f.Close()
	if int64(cap(buf)) < s.size {
		buf = make([]byte, s.size)
	}
	buf = buf[:s.size]
	if _, err := io.ReadFull(f, buf); err != nil {
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			return buf, fmt.Errorf("train_data_path: %s became shorter than the %d bytes it had when the corpus was listed: start again when nobody writes it", filepath.Clean(s.path), s.size)
		}
		return buf, fmt.Errorf("train_data_path: %w", durable.Explain(err))
	}
	return buf, nil
}
