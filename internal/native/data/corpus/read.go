package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/meter"
)

// PieceSize is how much of a long document is passed on at once, at most.
const PieceSize = 128 << 10

// Piece is a part of a document.
type Piece struct {
	Text   []byte // valid until the function that gets it returns
	Begins bool   // it is the first of its document
	Ends   bool   // it is the last of its document
}

// Read passes the documents of all files to yield, in order. Documents without text are left out.
// It ends with the first error, which is that of yield or one about a file.
func (c *Corpus) Read(ctx context.Context, yield func(Piece) error) error {
	c.read.Store(0)
	c.bad = Bad{}
	r := &reader{ctx: ctx, key: c.settings.TextKey, onBad: c.settings.OnBad, bad: &c.bad, yield: yield, left: c.left, limited: c.left > 0, read: &c.read}
	for _, s := range c.sources {
		err := r.file(s)
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.settings.Key, err)
		}
	}
	return nil
}

// errEnough ends a Read whose limit is reached.
var errEnough = errors.New("the limit of the text is reached")

// reader passes on documents.
type reader struct {
	ctx     context.Context
	key     string
	onBad   OnBad
	bad     *Bad
	yield   func(Piece) error
	buf     []byte
	left    int64 // of text
	limited bool
	read    *atomic.Int64
}

func (r *reader) file(s source) error {
	if s.layout.format == Parquet {
		return r.parquet(s)
	}
	f, err := durable.OpenRegular(s.path)
	if err != nil {
		return durable.Explain(err)
	}
	defer f.Close()
	if s.layout.plain() {
		return r.plain(f, s)
	}
	read := r.text
	if s.layout.format == JSONL {
		read = func(content io.Reader) error { return r.lines(s.path, content) }
	}
	return unpacked(r.ctx, f, s.path, s.layout, r.read, read)
}

// unpacked reads the content of a file. It counts the bytes of the file that are read, and adds the
// path to errors about them. The end of ctx ends the unpacking.
func unpacked(ctx context.Context, f *os.File, path string, l layout, total *atomic.Int64, read func(io.Reader) error) error {
	packed := &counted{Reader: f, total: total}
	content, err := l.decompress(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Clean(path), unpackError(l.compression, packed.n, err))
	}
	defer content.Close()
	m := meter.New(ctx, "unpacking", "", meter.Budget{}) // a text may be of any length
	err = read(m.Reader(content))
	if m.Err() != nil {
		return fmt.Errorf("%s: %w", filepath.Clean(path), m.Err())
	}
	if failed, ok := errors.AsType[*sourceError](err); ok {
		err = failed.error
		if l.compression != "" {
			err = unpackError(l.compression, packed.n, err)
		}
		return fmt.Errorf("%s: %w", filepath.Clean(path), durable.Explain(err))
	}
	return err
}

// sourceError is an error of reading a file, in contrast to one of what it says.
type sourceError struct{ error }

// Unwrap returns the error.
func (e *sourceError) Unwrap() error { return e.error }

// plain passes on the used part of a plain file.
func (r *reader) plain(f *os.File, s source) error {
	got := &counted{Reader: io.LimitReader(f, s.size), total: r.read}
	err := r.text(got)
	if failed, ok := errors.AsType[*sourceError](err); ok {
		return durable.Explain(failed.error)
	}
	if err == nil && got.n < s.size {
		return fmt.Errorf("%s became shorter than the %d bytes it had when the corpus was listed: start again when nobody writes it", filepath.Clean(s.path), s.size)
	}
	return err
}

// text passes on a document in pieces.
func (r *reader) text(from io.Reader) error {
	if r.buf == nil {
		r.buf = make([]byte, PieceSize)
	}
	held, begins := 0, true
	for {
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("read the corpus: %w", err)
		}
		n, ends, err := fill(from, r.buf[held:])
		if err != nil {
			return &sourceError{err}
		}
		held += n
		used := held
		if !ends {
			used = cut(r.buf)
		}
		if used > 0 || !begins {
			if err := r.pass(Piece{Text: r.buf[:used], Begins: begins, Ends: ends}); err != nil {
				return err
			}
			begins = false
		}
		if ends {
			return nil
		}
		held = copy(r.buf, r.buf[used:held])
	}
}

// pass passes on a piece, or the beginning of it that keeps to the limit.
func (r *reader) pass(p Piece) error {
	if !r.limited {
		return r.yield(p)
	}
	if int64(len(p.Text)) < r.left {
		r.left -= int64(len(p.Text))
		return r.yield(p)
	}
	p.Text, p.Ends = p.Text[:r.left], true
	if err := r.yield(p); err != nil {
		return err
	}
	return errEnough
}

// document passes on a whole document.
func (r *reader) document(text []byte) error {
	if len(text) == 0 {
		r.bad.Empty++
	}
	for begins := true; len(text) > 0; begins = false {
		used := len(text)
		if used > PieceSize {
			used = cut(text[:PieceSize])
		}
		if err := r.pass(Piece{Text: text[:used], Begins: begins, Ends: used == len(text)}); err != nil {
			return err
		}
		text = text[used:]
	}
	return nil
}

// fill reads until buf is full. It reports whether there is nothing more to read.
func fill(from io.Reader, buf []byte) (n int, ends bool, err error) {
	for n < len(buf) {
		m, err := from.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// cut returns where a long text is best cut in two: after the last line that another one follows
// without a blank line between them, so that tokenizers, which take words and lines apart, encode
// both parts as they would the whole; else between two characters.
func cut(text []byte) int {
	isSpace := func(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
	for i := len(text) - 1; i > len(text)/2; i-- {
		if text[i-1] == '\n' && !isSpace(text[i]) && !isSpace(text[i-2]) {
			return i
		}
	}
	for i := len(text) - 1; i > len(text)-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return len(text)
}
