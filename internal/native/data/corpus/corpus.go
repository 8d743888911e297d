package corpus

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Separator separates two documents where tokens have no end of a document.
const Separator = "\n\n"

// DefaultTextKey is the key or the column that holds a document if none is given.
const DefaultTextKey = "text"

// Settings say which corpus to read and how.
type Settings struct {
	// Key is the parameter that errors are about; "" means train_data_path.
	Key string

	// Path is a file, a directory that is read recursively, or a glob; "" stands for the Go standard
	// library's sources. In a directory, hidden files and directories, links and binary files are
	// skipped.
	Path string

	// MaxBytes limits the text; 0 means no limit, but DefaultMaxBytes for the default corpus. If the
	// text is longer, files are taken in the order of a hash of their names, and the last one is cut.
	MaxBytes int64

	// Format says how files hold documents; "" means Auto.
	Format Format

	// TextKey is the key of a JSON object, or the column of Parquet, that holds the document; "" means
	// DefaultTextKey.
	TextKey string

	// OnBad says what becomes of lines without a document; "" means BadError.
	OnBad OnBad
}

// Report says what a corpus holds.
type Report struct {
	Source  string // the path, the glob, or GOROOT/src
	Default bool   // Source was chosen because no path was given
	Files   int
	Bytes   int64 // of files, and of the separators between plain ones
	Plain   bool  // all files are plain text, so that Bytes is that of the text
	Limited bool  // MaxBytes leaves text out, or may do so
	Skipped Skipped
}

// String returns the report as a part of a line for the log.
func (r Report) String() string {
	var b strings.Builder
	if r.Default {
		text := "the documentation of this program"
		if filepath.Base(r.Source) == "src" {
			text = "the Go standard library's sources"
		}
		fmt.Fprintf(&b, "no train_data_path: training on %s, ", text)
	}
	fmt.Fprintf(&b, "corpus %s: %d files, %d bytes", r.Source, r.Files, r.Bytes)
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
	return b.String()
}

// Corpus is the files that Settings name.
type Corpus struct {
	settings Settings
	sources  []source
	report   Report
	left     int64 // of text, to be counted while reading; 0 for no limit
	read     atomic.Int64
	bad      Bad
}

// Bad says what the last Read has left out.
func (c *Corpus) Bad() Bad { return c.bad }

// FileBytes returns the bytes of the files.
func (c *Corpus) FileBytes() int64 {
	n := int64(0)
	for _, s := range c.sources {
		n += s.size
	}
	return n
}

// BytesRead returns how many bytes of the files Read has read so far. It is safe for concurrent
// use.
func (c *Corpus) BytesRead() int64 { return c.read.Load() }

// Find lists the files of a corpus. A missing or unreadable path, a glob without matches and a
// corpus without files are errors.
func Find(ctx context.Context, s Settings) (*Corpus, error) {
	s.Key, s.Format, s.TextKey = cmp.Or(s.Key, "train_data_path"), cmp.Or(s.Format, Auto), cmp.Or(s.TextKey, DefaultTextKey)
	if s.MaxBytes < 0 {
		return nil, fmt.Errorf("train_data_max_bytes: given %d, want 0 (no limit) or more", s.MaxBytes)
	}
	if !slices.Contains(s.Format.Values(), string(s.Format)) {
		return nil, fmt.Errorf("train_data_format: given %q, want %s", s.Format, strings.Join(s.Format.Values(), ", "))
	}
	c := &Corpus{settings: s}
	return c, c.find(ctx)
}

// Report says what the corpus holds.
func (c *Corpus) Report() Report { return c.report }

// find fills sources and report.
func (c *Corpus) find(ctx context.Context) error {
	f, r, limit := &finder{key: c.settings.Key, format: c.settings.Format}, &c.report, c.settings.MaxBytes
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
	} else {
		var err error
		if r.Source, err = Provided(r.Source); err != nil {
			return f.errorf("%w", err)
		}
		if err := f.find(ctx, r.Source); err != nil {
			return err
		}
	}
	if err := f.dropBinary(ctx); err != nil {
		return err
	}
	all := len(f.sources)
	if f.limit(limit) {
		c.left, r.Limited = limit, true
	}
	c.sources, r.Skipped, r.Files, r.Plain = f.sources, f.skipped, len(f.sources), true
	for i, src := range f.sources {
		r.Bytes += src.size
		if r.Plain = r.Plain && src.layout.plain(); r.Plain && i > 0 {
			r.Bytes += int64(len(Separator))
		}
		r.Limited = r.Limited || src.size < src.whole
	}
	r.Limited = r.Limited || len(f.sources) < all
	if r.Files == 0 {
		return f.errorf("%s holds no text: %s; want files of text, JSON lines or Parquet, plain or compressed", r.Source, r.Skipped)
	}
	return nil
}

// Identify adds to a hash what decides the documents, as far as it is known without reading the
// files whole: paths, sizes, times, a few of their blocks and settings.
func (c *Corpus) Identify(h hash.Hash) error {
	if !c.report.Plain {
		fmt.Fprintf(h, "%q %d %q\n", c.settings.TextKey, c.left, cmp.Or(c.settings.OnBad, BadError))
	}
	files, err := Describe(c.Paths())
	if err != nil {
		return fmt.Errorf("%s: %w", c.settings.Key, err)
	}
	for i, s := range c.sources {
		path, err := filepath.Abs(s.path)
		if err != nil {
			path = s.path
		}
		fmt.Fprintf(h, "%q %d %d %d %08x\n", path, s.size, s.whole, s.mtime.UnixNano(), files[i].Blocks)
		if !s.layout.plain() {
			fmt.Fprintf(h, "%s %s\n", s.layout.format, s.layout.compression)
		}
	}
	return nil
}
