package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/tokenizer"
)

// separator separates two files of the stream.
const separator = "\n\n"

// Settings say which corpus to load and how.
type Settings struct {
	// Path is a file, a directory that is read recursively, or a glob; "" stands
	// for the Go standard library's sources. In a directory, hidden files and
	// directories, links and binary files are skipped.
	Path string

	// MaxBytes limits the text; 0 means no limit, but DefaultMaxBytes for the default corpus. If the
	// text is longer, files are taken in the order of a hash of their names, and the last one is cut.
	MaxBytes int64

	// CacheDir is where the token cache goes; "" for none. It is created when it does not exist.
	CacheDir string

	// Tokenizer encodes the text; nil stands for tokenizer.Byte.
	Tokenizer tokenizer.Tokenizer
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
		s.Tokenizer = tokenizer.Byte{}
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

// Load returns the tokens of the corpus, from the cache when it has them. They depend only on the
// contents and relative order of the files, the tokenizer and the limit. With a cache they are
// mapped from its file where the system can do that, so that a corpus may be larger than memory.
func (c *Corpus) Load(ctx context.Context) (*Tokens, Report, error) {
	r := c.report
	tokens, err := c.throughCache(ctx, &r)
	if tokens == nil && err == nil {
		tokens, err = c.inMemory(ctx)
	}
	if err != nil {
		return nil, r, err
	}
	r.Tokens = tokens.Len()
	return tokens, r, nil
}

// throughCache returns the tokens of the cache file. It writes the file if there is none or if it
// cannot be used. If the cache cannot be used at all, it warns and returns no tokens.
func (c *Corpus) throughCache(ctx context.Context, r *Report) (*Tokens, error) {
	if c.settings.CacheDir == "" {
		return nil, nil
	}
	cached := newCache(c.settings.CacheDir, cacheKey(c.sources, c.settings.Tokenizer.Name(), c.width), c.width)
	tokens, err := cached.open(ctx)
	if err == nil {
		r.CachePath, r.FromCache = cached.path, true
		return tokens, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		r.Warnings = append(r.Warnings, "the token cache is built again: "+err.Error())
	}
	corpusErr, cacheErr := cached.write(func(w io.Writer) error { return c.encode(ctx, w) })
	if corpusErr != nil {
		return nil, corpusErr
	}
	if cacheErr == nil {
		tokens, cacheErr = cached.open(ctx)
	}
	if ctx.Err() != nil {
		return nil, cacheErr
	}
	if cacheErr != nil {
		r.Warnings = append(r.Warnings, "the token cache was not written: "+cacheErr.Error())
		return nil, nil
	}
	r.CachePath = cached.path
	return tokens, nil
}

// inMemory encodes the corpus without a cache.
func (c *Corpus) inMemory(ctx context.Context) (*Tokens, error) {
	if err := fits(c.report.Bytes*int64(c.width), "there is no token cache to read it from"); err != nil {
		return nil, err
	}
	var stream bytes.Buffer
	stream.Grow(int(c.report.Bytes) * c.width)
	if err := c.encode(ctx, &stream); err != nil {
		return nil, err
	}
	return newTokens(stream.Bytes(), c.width), nil
}

// fits returns an error when a corpus would take more memory than this process can have.
func fits(size int64, why string) error {
	limit, err := sysmem.Read()
	if err != nil || uint64(size) <= limit.Bytes {
		return nil // the limit is unknown
	}
	return fmt.Errorf("train_data_path: the corpus takes %s of memory, because %s, and this process can have %s (%s): set train_data_max_bytes",
		sysmem.Text(float64(size)), why, sysmem.Text(float64(limit.Bytes)), limit.Source)
}
