package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/runtime/tokenizer"
)

// partSize is how much text is encoded at once.
const partSize = 256 << 10

// encode writes the tokens of the files, one after the other.
func (c *Corpus) encode(ctx context.Context, w io.Writer) error {
	e := encoder{
		w: w, tok: c.settings.Tokenizer, width: c.width,
		text: make([]byte, partSize), ids: make([]int32, 0, partSize), out: make([]byte, 0, partSize*c.width),
	}
	for i, s := range c.sources {
		if i > 0 {
			if err := e.part([]byte(separator)); err != nil {
				return err
			}
		}
		if err := e.file(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// encoder writes tokens.
type encoder struct {
	w     io.Writer
	tok   tokenizer.Tokenizer
	width int
	text  []byte
	ids   []int32
	out   []byte
}

// file writes the tokens of the used part of a file.
func (e *encoder) file(ctx context.Context, s source) error {
	f, err := durable.OpenRegular(s.path)
	if err != nil {
		return fmt.Errorf("train_data_path: %w", durable.Explain(err))
	}
	defer f.Close()
	for left := s.size; left > 0; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("data: encode the corpus: %w", err)
		}
		part := e.text[:min(left, partSize)]
		_, err := io.ReadFull(f, part)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("train_data_path: %s became shorter than the %d bytes it had when the corpus was listed: start again when nobody writes it", filepath.Clean(s.path), s.size)
		case err != nil:
			return fmt.Errorf("train_data_path: %w", durable.Explain(err))
		}
		if err := e.part(part); err != nil {
			return fmt.Errorf("encode %s: %w", s.path, err)
		}
		left -= int64(len(part))
	}
	return nil
}

// part writes the tokens of a piece of text.
func (e *encoder) part(text []byte) (err error) {
	e.ids = e.tok.Encode(e.ids[:0], text)
	if e.out, err = appendIDs(e.out[:0], e.ids, e.width, e.tok.VocabSize()); err != nil {
		return err
	}
	_, err = e.w.Write(e.out)
	return err
}
