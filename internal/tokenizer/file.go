package tokenizer

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/primus-fl/primus/internal/durable"
)

// File is a tokenizer that was read from files. It is safe for concurrent use.
type File struct {
	pipeline     *pipeline
	decoder      *decoder
	vocab        *vocabulary
	name         string
	format       string
	raw          []Raw
	chatTemplate string
	bos          int32
	eos          int32
	pad          int32
}

var _ Tokenizer = (*File)(nil)

// Raw is a file of a tokenizer as it was read.
type Raw struct {
	Name string // under which a folder has it, as in tokenizer.json
	Data []byte // not to be changed
}

// Name returns "file:" and the checksum of what decides how text is encoded.
func (f *File) Name() string { return f.name }

// Format returns what kind of file the tokenizer was read from: tokenizer.json, SentencePiece or
// tiktoken.
func (f *File) Format() string { return f.format }

// VocabSize returns one more than the highest id.
func (f *File) VocabSize() int { return len(f.vocab.texts) }

// Encode appends the ids of text to dst. Added tokens, such as <|endoftext|>, are found in the
// text; nothing is put before or after it. Bytes that are no UTF-8 count as U+FFFD, once for each
// longest incomplete character, as in browsers.
func (f *File) Encode(dst []int32, text []byte) []int32 { return f.pipeline.encode(dst, text, begins) }

// EncodeRest is Encode for text that continues what was encoded before: what the tokenizer puts
// before a text, such as the ▁ of SentencePiece, is left out. The ids are those of the whole text
// if it was cut where no token crosses, as after a line.
func (f *File) EncodeRest(dst []int32, text []byte) []int32 {
	return f.pipeline.encode(dst, text, continues)
}

// EncodePrompt is Encode with the ids that the tokenizer puts before and after a text, which
// usually is BOS before it.
func (f *File) EncodePrompt(dst []int32, text []byte) []int32 {
	dst = append(dst, f.pipeline.prefix...)
	dst = f.pipeline.encode(dst, text, begins)
	return append(dst, f.pipeline.suffix...)
}

// Decode appends the text of ids to dst, with the names of special tokens. The text of an id may
// end within a character; an id that is no token becomes U+FFFD.
func (f *File) Decode(dst []byte, ids []int32) []byte { return f.decoder.decode(dst, ids, true) }

// DecodeText is Decode without special tokens.
func (f *File) DecodeText(dst []byte, ids []int32) []byte { return f.decoder.decode(dst, ids, false) }

// ID returns the id of a token, written as in the tokenizer's file.
func (f *File) ID(token string) (id int32, ok bool) { id, ok = f.vocab.ids[token]; return id, ok }

// Token returns a token as it is written in the tokenizer's file and whether it is a special one,
// or "" for an id that is none.
func (f *File) Token(id int32) (token string, special bool) {
	return f.vocab.token(id), f.vocab.special[id]
}

// Piece returns the text of an id, not to be changed. It may end within a character, and what a
// tokenizer removes from the beginning of a text is still in it.
func (f *File) Piece(id int32) []byte { return f.decoder.piece(id) }

// BOS returns the id that begins a text, or -1 if the tokenizer has none.
func (f *File) BOS() int32 { return f.bos }

// EOS returns the id that ends a text, or -1 if the tokenizer has none.
func (f *File) EOS() int32 { return f.eos }

// PAD returns the id that fills a batch, or -1 if the tokenizer has none.
func (f *File) PAD() int32 { return f.pad }

// ChatTemplate returns the Jinja template that turns a conversation into text, or "" if the
// tokenizer has none.
func (f *File) ChatTemplate() string { return f.chatTemplate }

// Raw returns the files that the tokenizer was read from. A folder with copies of them, which Save
// makes, is one that Load reads.
func (f *File) Raw() []Raw { return append([]Raw(nil), f.raw...) }

// Save writes the tokenizer's files into a folder that exists, each of them whole or not at all.
func (f *File) Save(dir string) error {
	for _, raw := range f.raw {
		err := durable.WriteFile(filepath.Join(dir, raw.Name), func(w io.Writer) error {
			_, err := w.Write(raw.Data)
			return err
		})
		if err != nil {
			return fmt.Errorf("tokenizer: save %s: %w", raw.Name, err)
		}
	}
	return nil
}
