package corpus

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/durable"
)

// maxLine bounds the memory of a line of JSON.
const maxLine = 256 << 20

// PositionError is an error about what a file says at some place.
type PositionError struct {
	Path   string
	Line   int   // from 1
	Offset int64 // of the beginning of the line, in the text after decompression
	Err    error
}

// Error returns the place and the error.
func (e *PositionError) Error() string {
	return fmt.Sprintf("%s: line %d (byte %d): %v", e.Path, e.Line, e.Offset, e.Err)
}

// Unwrap returns the error without the place.
func (e *PositionError) Unwrap() error { return e.Err }

// Line is a line of a file.
type Line struct {
	Text   []byte // without spaces around it, nil for one that is too long; valid until the next line
	path   string
	number int   // from 1
	offset int64 // in the text after decompression
	limit  int   // 0 for a line that keeps to it
}

// At returns a fault of the line with its place.
func (l Line) At(fault error) error {
	if fault == nil {
		return nil
	}
	return &PositionError{Path: filepath.Clean(l.path), Line: l.number, Offset: l.offset, Err: fault}
}

// Check returns an error for a line that is too long to be read.
func (l Line) Check() error {
	if l.limit == 0 {
		return nil
	}
	return fmt.Errorf("the line is longer than %d bytes: the file may not be one of JSON lines", l.limit)
}

// Lines passes each line of a file, which may be compressed, to yield. It ends with the first
// error.
func Lines(ctx context.Context, path string, yield func(Line) error) error {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return durable.Explain(err)
	}
	defer f.Close()
	layout := layoutOf(path, JSONL)
	return unpacked(ctx, f, path, layout, new(atomic.Int64), func(content io.Reader) error { return lines(ctx, path, content, maxLine, yield) })
}

// lines is Lines for an open file.
func lines(ctx context.Context, path string, from io.Reader, limit int, yield func(Line) error) error {
	in := bufio.NewReaderSize(from, PieceSize)
	offset := int64(0)
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read the corpus: %w", err)
		}
		l := Line{path: path, number: number, offset: offset}
		var long [][]byte // the pieces before text
		size := 0
		text, err := in.ReadSlice('\n')
		for ; err == bufio.ErrBufferFull; text, err = in.ReadSlice('\n') {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("read the corpus: %w", err)
			}
			offset += int64(len(text))
			if size += len(text); size > limit && l.limit == 0 {
				l.limit, long = limit, nil
				if err := yield(l); err != nil { // its end may be far
					return err
				}
			}
			if l.limit == 0 {
				long = append(long, bytes.Clone(text))
			}
		}
		offset += int64(len(text))
		if err != nil && err != io.EOF {
			return &sourceError{err}
		}
		if len(long) > 0 {
			whole := make([]byte, 0, size+len(text))
			for _, piece := range append(long, text) {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("read the corpus: %w", err)
				}
				whole = append(whole, piece...)
			}
			text = whole
		}
		l.Text = bytes.TrimSpace(text)
		if len(text) > 0 && l.limit == 0 {
			if err := yield(l); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// lines passes on the document of each line of JSON. Blank lines are left out.
func (r *reader) lines(path string, from io.Reader) error {
	return lines(r.ctx, path, from, maxLine, func(l Line) error {
		if len(l.Text) == 0 && l.limit == 0 {
			return nil
		}
		text, fault := []byte(nil), l.Check()
		if fault == nil {
			text, fault = textOf(l.Text, r.key)
		}
		if fault != nil {
			return r.onBad.Skip(r.ctx, r.bad, l.At(fault))
		}
		return r.document(text)
	})
}

// textOf returns the text that a key of a JSON object holds.
func textOf(line []byte, key string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		if syntax, ok := err.(*json.SyntaxError); ok {
			return nil, fmt.Errorf("want a JSON object: %w, at byte %d of the line", err, syntax.Offset)
		}
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if at := badUTF8(line); at >= 0 {
		return nil, fmt.Errorf("byte %d of the line: given the byte 0x%02x, want UTF-8", at+1, line[at])
	}
	raw, ok := object[key]
	if !ok {
		return nil, fmt.Errorf("the object has no key %q, it has %.1000s: name the key of the text with text_key", key, strings.Join(slices.Sorted(maps.Keys(object)), ", "))
	}
	if bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("key %q: given %.40s, want a string", key, raw)
	}
	if at := halfPair(raw); at >= 0 {
		at += bytes.Index(line, raw)
		return nil, fmt.Errorf("byte %d of the line: given %s, which is half of a surrogate pair, want a pair or another character", at+1, line[at:at+6])
	}
	return []byte(text), nil
}

// badUTF8 returns the place of the first byte that is not UTF-8, -1 if there is none.
func badUTF8(line []byte) int {
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRune(line[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// halfPair returns the place of the first escape of a surrogate that has no partner, -1 if there is
// none. encoding/json takes such a one for U+FFFD. raw is a valid string of JSON.
func halfPair(raw []byte) int {
	escaped := func(at int) rune { // the code unit of an escape \uXXXX at this place, -1 for none
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return -1
		}
		v, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(v)
	}
	for at := 0; at < len(raw); at++ {
		if raw[at] != '\\' {
			continue
		}
		first := escaped(at)
		switch {
		case first < 0:
			at++ // the escape of one character
		case !utf16.IsSurrogate(first):
			at += 5
		case utf16.DecodeRune(first, escaped(at+6)) == utf8.RuneError:
			return at
		default:
			at += 11
		}
	}
	return -1
}
