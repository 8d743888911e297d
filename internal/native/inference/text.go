package inference

import (
	"bytes"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// textStream turns tokens into text as they come. It holds back bytes that may be the beginning of
// a character or of a stop string.
type textStream struct {
	tok   tokenizer.Tokenizer
	stops [][]byte
	ids   []int32 // the prompt and what follows
	base  int     // the first token that is decoded again, for what it does to the following ones
	done  int     // tokens whose text has been taken
	held  []byte  // text that is not returned yet
	ended bool    // a stop string has occurred
}

// textContext is how many tokens before a new one are decoded with it.
const textContext = 8

func newTextStream(tok tokenizer.Tokenizer, prompt []int32, stops []string) *textStream {
	s := &textStream{tok: tok, ids: append([]int32(nil), prompt...), done: len(prompt)}
	for _, stop := range stops {
		s.stops = append(s.stops, []byte(stop))
	}
	return s
}

// add takes a token and returns the text that is certain by now.
func (s *textStream) add(id int32) []byte {
	s.ids = append(s.ids, id)
	s.base = max(s.done-textContext, 0)
	before := s.tok.Decode(nil, s.ids[s.base:s.done])
	all := s.tok.Decode(nil, s.ids[s.base:])
	if len(all) < len(before) || !bytes.HasPrefix(all, trimPartial(before)) {
		return nil // the next token decides what these are
	}
	s.held = append(s.held, all[len(before):]...)
	s.done = len(s.ids)
	first := len(s.held)
	for _, stop := range s.stops {
		if at := bytes.Index(s.held, stop); at >= 0 {
			s.ended, first = true, min(first, at)
		}
	}
	if s.ended {
		s.held = s.held[:first]
		return s.take(first)
	}
	return s.take(len(s.held) - s.undecided())
}

// undecided returns how many bytes at the end of the held text may continue as a character or as a
// stop string.
func (s *textStream) undecided() int {
	keep := len(s.held) - len(trimPartial(s.held))
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if bytes.HasSuffix(s.held, stop[:n]) {
				keep = n
				break
			}
		}
	}
	return keep
}

// take returns the first held bytes; those that are no UTF-8 are replaced with U+FFFD.
func (s *textStream) take(n int) []byte {
	text := bytes.ToValidUTF8(bytes.Clone(s.held[:n]), []byte("\uFFFD"))
	s.held = s.held[n:]
	return text
}

// rest returns the text that is left at the end.
func (s *textStream) rest() []byte { return s.take(len(s.held)) }

// trimPartial removes the beginning of a character from the end of text.
func trimPartial(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-n:]) {
				return text[:len(text)-n]
			}
			return text
		}
	}
	return text
}
