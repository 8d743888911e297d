package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// Settings say which tokens to load and how.
type Settings struct {
	// Settings name a corpus of text, or an indexed dataset by its prefix or one of its files.
	corpus.Settings

	// CacheDir is where the token cache goes; "" for none. It is created when it does not exist.
	CacheDir string

	// Tokenizer encodes the text; nil stands for tokenizer.Byte.
	Tokenizer tokenizer.Tokenizer

	// Verify reads the files though there is a cache, which is compared and written again.
	Verify bool

	// Progress, if it is not nil, is called while text is encoded, with the bytes of the files that
	// were read, and of all.
	Progress func(read, total int64)
}

// EndOfDocument returns the token that ends documents, which is the one that ends texts, or −1 if a
// tokenizer has none.
func EndOfDocument(t tokenizer.Tokenizer) int32 {
	if t, ok := t.(interface{ EOS() int32 }); ok {
		return t.EOS()
	}
	return -1
}

// Report says what a source of tokens holds and how it was loaded.
type Report struct {
	corpus.Report
	Indexed   bool // the source is an indexed dataset
	Documents int  // of an indexed dataset
	Tokens    int
	CachePath string // "" without a cache
	FromCache bool
	Bad       corpus.Bad // what was left out
	Warnings  []string
}

// String returns the report as one line for the log.
func (r Report) String() string {
	if r.Indexed {
		return fmt.Sprintf("indexed dataset %s: %d documents, %d tokens", r.Source, r.Documents, r.Tokens)
	}
	text := r.Report.String()
	if r.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens", r.Tokens)
	}
	switch {
	case r.FromCache:
		text += ", read from " + r.CachePath
	case r.CachePath != "":
		text += ", cached in " + r.CachePath
	}
	return text
}

// Source is the files that Settings name, before any of them is read.
type Source struct {
	settings Settings
	width    int            // bytes of a token id
	prefix   string         // of an indexed dataset; "" for text
	corpus   *corpus.Corpus // nil for an indexed dataset
	report   Report
}

// Find lists the files of a source. A missing or unreadable path, a glob without
// matches and a corpus without text are errors.
func Find(ctx context.Context, s Settings) (*Source, error) {
	if s.Tokenizer == nil {
		s.Tokenizer = tokenizer.Byte{}
	}
	width, err := widthOf(s.Tokenizer.VocabSize())
	if err != nil {
		return nil, err
	}
	f := &Source{settings: s, width: width}
	if prefix, found := indexed.Find(s.Path); found && s.Path != "" {
		if s.MaxBytes > 0 {
			return nil, fmt.Errorf("train_data_max_bytes: given %d, and %s is an indexed dataset: want 0, since the limit is one of text", s.MaxBytes, prefix)
		}
		f.prefix, f.report = prefix, Report{Indexed: true, Report: corpus.Report{Source: prefix}}
		return f, f.look()
	}
	if f.corpus, err = corpus.Find(ctx, s.Settings); err == nil {
		f.report.Report = f.corpus.Report()
	}
	return f, err
}

// look checks the index of an indexed dataset and counts what it has.
func (f *Source) look() error {
	d, err := f.openIndexed()
	if err != nil {
		return err
	}
	r := &f.report
	r.Files, r.Bytes, r.Documents, r.Tokens = 2, int64(len(d.Bytes())), d.Documents(), d.Tokens()
	return d.Close()
}

func (f *Source) openIndexed() (*indexed.Dataset, error) {
	d, err := indexed.Open(f.prefix)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.key(), err)
	}
	return d, nil
}

// key is the parameter that errors are about.
func (f *Source) key() string {
	if f.settings.Key == "" {
		return "train_data_path"
	}
	return f.settings.Key
}

// Report says what the source holds; the Tokens of text are 0 until it is loaded.
func (f *Source) Report() Report { return f.report }

// Paths returns the paths of the files.
func (f *Source) Paths() []string {
	if f.prefix != "" {
		bin, idx := indexed.Paths(filepath.Clean(f.prefix))
		return []string{bin, idx}
	}
	return f.corpus.Paths()
}

// MostTokens returns a number that the tokens do not exceed, as far as it is known without reading
// the files; known is false if it is not.
func (f *Source) MostTokens() (n int64, known bool) {
	switch {
	case f.prefix != "":
		return int64(f.report.Tokens), true
	case !f.report.Plain:
		return 0, false
	}
	return f.report.Bytes, f.settings.Tokenizer.Name() == tokenizer.Byte{}.Name()
}

func (f *Source) encoding() Encoding {
	eod := EndOfDocument(f.settings.Tokenizer)
	return Encoding{Tokenizer: f.settings.Tokenizer, EOD: eod, Separate: eod < 0}
}

// Load returns the tokens of the source. Those of text come from the cache when it has them. They
// depend only on the contents and relative order of the files, the tokenizer and the limit. With a
// cache they are mapped from its file where the system can do that, so that a corpus may be larger
// than memory; so are those of an indexed dataset.
func (f *Source) Load(ctx context.Context) (*Tokens, Report, error) {
	r := f.report
	tokens, err := f.load(ctx, &r)
	if err != nil {
		return nil, r, err
	}
	r.Tokens = tokens.Len()
	return tokens, r, nil
}

func (f *Source) load(ctx context.Context, r *Report) (*Tokens, error) {
	if f.prefix != "" {
		return f.open(ctx)
	}
	tokens, err := f.throughCache(ctx, r)
	if tokens == nil && err == nil {
		tokens, err = f.inMemory(ctx)
		r.Bad = f.corpus.Bad()
	}
	return tokens, err
}

// throughCache returns the tokens of the cache file. It writes the file if there is none or if it
// cannot be used. If the cache cannot be used at all, it warns and returns no tokens.
func (f *Source) throughCache(ctx context.Context, r *Report) (*Tokens, error) {
	if f.settings.CacheDir == "" {
		return nil, nil
	}
	key, err := cacheKey(f.corpus, f.encoding(), f.width)
	if err != nil {
		return nil, err
	}
	cached := newCache(f.settings.CacheDir, key, f.width)
	tokens, err := cached.open(ctx)
	switch {
	case err == nil && f.settings.Verify:
		return f.verify(ctx, cached, tokens, r)
	case err == nil:
		r.CachePath, r.FromCache, r.Bad = cached.path, true, tokens.bad
		return tokens, nil
	case ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, os.ErrNotExist):
		r.Warnings = append(r.Warnings, "the token cache is built again: "+err.Error())
	}
	return f.fill(ctx, cached, r)
}

// verify fills a cache again and warns if it held other tokens than the files have.
func (f *Source) verify(ctx context.Context, cached cache, had *Tokens, r *Report) (*Tokens, error) {
	before := had.identity()
	if err := had.Close(); err != nil {
		return nil, err
	}
	tokens, err := f.fill(ctx, cached, r)
	if tokens == nil || err != nil {
		return nil, err
	}
	if now := tokens.identity(); now != before {
		r.Warnings = append(r.Warnings, fmt.Sprintf("verify_data: the token cache %s held %s, and the files have %s: a file was changed without a change of its size and time, or the cache was; it is written again", cached.path, before, now))
	}
	return tokens, nil
}

// fill writes a cache and returns its tokens, and none if it cannot be written.
func (f *Source) fill(ctx context.Context, cached cache, r *Report) (*Tokens, error) {
	corpusErr, cacheErr := cached.write(func(w io.Writer) (corpus.Bad, error) {
		err := f.encoding().writeTokens(ctx, f.corpus, w, f.width, f.settings.Progress)
		r.Bad = f.corpus.Bad()
		return r.Bad, err
	})
	if corpusErr != nil {
		return nil, corpusErr
	}
	var tokens *Tokens
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
func (f *Source) inMemory(ctx context.Context) (*Tokens, error) {
	stream := &limitedBuffer{key: f.key()}
	if f.report.Plain && f.width == 1 {
		if err := stream.fits(f.report.Bytes); err != nil {
			return nil, err
		}
		stream.Grow(int(f.report.Bytes))
	}
	if err := f.encoding().writeTokens(ctx, f.corpus, stream, f.width, f.settings.Progress); err != nil {
		return nil, err
	}
	return newTokens(stream.Bytes(), f.width), nil
}

// limitedBuffer is a buffer that does not grow beyond the memory of this process.
type limitedBuffer struct {
	bytes.Buffer
	key string
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Available() < len(p) {
		if err := b.fits(2 * int64(b.Len()+len(p))); err != nil {
			return 0, err
		}
	}
	return b.Buffer.Write(p)
}

// fits returns an error when a corpus would take more memory than this process can have.
func (b *limitedBuffer) fits(size int64) error {
	limit, err := sysmem.Read()
	if err != nil || uint64(size) <= limit.Bytes {
		return nil // the limit is unknown
	}
	return fmt.Errorf("%s: the corpus takes %s of memory, because there is no token cache to read it from, and this process can have %s (%s): set train_data_max_bytes",
		b.key, sysmem.Text(float64(size)), sysmem.Text(float64(limit.Bytes)), limit.Source)
}

// open maps the tokens of an indexed dataset and reads them once, to find ids that the vocabulary
// does not have.
func (f *Source) open(ctx context.Context) (*Tokens, error) {
	d, err := f.openIndexed()
	if err != nil {
		return nil, err
	}
	bin, _ := indexed.Paths(filepath.Clean(f.prefix))
	t := &Tokens{bytes: d.Bytes(), width: d.DType().Width(), what: bin, release: d.Close}
	if err := t.scan(ctx, f.settings.Tokenizer.VocabSize()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.key(), err), d.Close())
	}
	return t, nil
}
