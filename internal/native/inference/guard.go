package inference

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
)

// guard keeps what people write from becoming special tokens, such as one that ends their message
// and begins one of the system. It puts a mark into such texts, which the template passes on and at
// which the text is then cut before it is encoded. The tokens that the template itself writes stay
// special.
type guard struct {
	names  []string  // of special tokens
	begins [256]bool // bytes that they begin with
}

func newGuard(f *tokenizer.File) guard {
	var g guard
	for id := range int32(f.VocabSize()) {
		name, special := f.Token(id)
		if name != "" && (special || id == f.BOS() || id == f.EOS()) {
			g.names, g.begins[name[0]] = append(g.names, name), true
		}
	}
	return g
}

// mark returns a character that no message has: one of those that Unicode keeps free.
func mark(messages []chat.Message) (string, error) {
	for c := rune(0xfdd0); c <= 0xfdef; c++ {
		unused := !slices.ContainsFunc(messages, func(m chat.Message) bool {
			return strings.ContainsRune(m.Role, c) || strings.ContainsRune(m.Content, c)
		})
		if unused {
			return string(c), nil
		}
	}
	return "", errors.New("the messages have all characters from U+FDD0 to U+FDEF, which stand for no text: leave one out")
}

// protect returns the text with the mark after the first character of each special token, and of
// the beginning of one at the end of the text, which what follows might complete.
func (g guard) protect(text, mark string) string {
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	begins := func(at int) bool {
		return slices.ContainsFunc(g.names, func(name string) bool {
			return strings.HasPrefix(text[at:], name) || len(text)-at < len(name) && strings.HasPrefix(name, text[at:]) ||
				at < len(trimmed) && len(trimmed)-at < len(name) && strings.HasPrefix(name, trimmed[at:])
		})
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRuneInString(text[at:])
		b.WriteString(text[at : at+size])
		if g.begins[text[at]] && begins(at) {
			b.WriteString(mark)
		}
		at += size
	}
	return b.String()
}

// encodeMarked encodes a text with marks, without them.
func encodeMarked(tok tokenizer.Tokenizer, text, mark string) []int32 {
	parts := strings.Split(text, mark)
	ids := tok.Encode(nil, []byte(parts[0]))
	for _, part := range parts[1:] {
		if f, ok := tok.(*tokenizer.File); ok {
			ids = f.EncodeRest(ids, []byte(part))
		} else {
			ids = tok.Encode(ids, []byte(part))
		}
	}
	return ids
}
