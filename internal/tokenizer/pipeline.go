package tokenizer

import (
	"bytes"
	"sync"
)

// pipeline encodes text in four steps: added tokens are found, what lies between them is
// normalized, cut into words, and each word encoded by the model.
type pipeline struct {
	raw        *matcher // added tokens that are found in the text itself
	normal     *matcher // added tokens that are found in the normalized text
	normalizer Normalizer
	steps      []step
	model      wordModel
	prepended  []byte  // what the normalizer puts before every text
	prefix     []int32 // ids before a prompt
	suffix     []int32 // ids after a prompt
	encoders   sync.Pool
}

// step cuts text into words, each of which the next step cuts further.
type step struct {
	rewrite func(dst, text []byte, at place) []byte // nil leaves the text as it is
	scan    Scanner                                 // nil leaves it whole
}

// place says where a text stands, which decides whether something is put before it.
type place int

const (
	begins    place = iota // at the beginning of the whole text
	follows                // after an added token, or another word
	continues              // after text that was encoded before
)

// within returns the place of a part of a text at an offset.
func (at place) within(offset int) place {
	if offset > 0 {
		return follows
	}
	return at
}

// encoder is the memory of one call.
type encoder struct {
	*pipeline
	cache    *Cache
	text     []byte   // normalized
	rewrites [][]byte // of each step
}

// init completes a pipeline whose fields are set.
func (p *pipeline) init() {
	p.encoders.New = func() any {
		return &encoder{pipeline: p, cache: NewCache(), rewrites: make([][]byte, len(p.steps))}
	}
}

// encode appends the ids of text to dst.
func (p *pipeline) encode(dst []int32, text []byte, where place) []int32 {
	e := p.encoders.Get().(*encoder)
	defer p.encoders.Put(e)
	text = Valid(text)
	for at := 0; at < len(text); {
		begin, end, id := p.raw.find(text, at)
		if begin > at {
			dst = e.section(dst, text[at:begin], where.within(at))
		}
		if id >= 0 {
			dst = append(dst, id)
		}
		at = end
	}
	return dst
}

// section encodes text between added tokens.
func (e *encoder) section(dst []int32, text []byte, where place) []int32 {
	if e.normalizer != nil {
		e.text = e.normalizer(e.text[:0], text)
		text = e.text
		if where == continues {
			text = bytes.TrimPrefix(text, e.prepended)
		}
	}
	for at := 0; at < len(text); {
		begin, end, id := e.normal.find(text, at)
		if begin > at {
			dst = e.words(dst, text[at:begin], 0, where.within(at))
		}
		if id >= 0 {
			dst = append(dst, id)
		}
		at = end
	}
	return dst
}

// words encodes text from the step at a level on.
func (e *encoder) words(dst []int32, text []byte, level int, where place) []int32 {
	if level == len(e.steps) {
		return e.cache.Encode(e.model, dst, text)
	}
	s := &e.steps[level]
	if s.rewrite != nil {
		e.rewrites[level] = s.rewrite(e.rewrites[level][:0], text, where)
		text = e.rewrites[level]
	}
	switch {
	case s.scan == nil:
		return e.words(dst, text, level+1, where)
	case level+1 == len(e.steps):
		for len(text) > 0 {
			n := s.scan(text)
			dst = e.cache.Encode(e.model, dst, text[:n])
			text = text[n:]
		}
	default:
		for at := 0; at < len(text); {
			n := s.scan(text[at:])
			dst = e.words(dst, text[at:at+n], level+1, where.within(at))
			at += n
		}
	}
	return dst
}

// spaceFirst is the rewrite of ByteLevel with add_prefix_space.
func spaceFirst(dst, text []byte, at place) []byte {
	if at != continues && (len(text) == 0 || text[0] != ' ') {
		dst = append(dst, ' ')
	}
	return append(dst, text...)
}

// metaspace returns the rewrite of the pre-tokenizer of this name. Scheme says when text gets the
// replacement before it: always, never, or first, which is at the beginning of the whole text.
func metaspace(replacement, scheme string) func(dst, text []byte, at place) []byte {
	spaces := Replace(" ", replacement)
	return func(dst, text []byte, at place) []byte {
		there := bytes.HasPrefix(text, []byte(replacement)) || len(text) > 0 && text[0] == ' '
		if !there && (scheme == "always" && at != continues || scheme == "first" && at == begins) {
			dst = append(dst, replacement...)
		}
		return spaces(dst, text)
	}
}

// behavior says what a split does with the text that matches.
type behavior string

// literal returns the scanner of a split at a text.
func literal(what string, b behavior) (Scanner, bool) {
	find := []byte(what)
	index := func(text []byte, from int) int {
		if i := bytes.Index(text[from:], find); i >= 0 {
			return from + i
		}
		return len(text)
	}
	switch b {
	case "Isolated":
		return func(text []byte) int {
			if bytes.HasPrefix(text, find) {
				return len(find)
			}
			return index(text, 0)
		}, true
	case "MergedWithPrevious":
		return func(text []byte) int { return min(len(text), index(text, 0)+len(find)) }, true
	case "MergedWithNext":
		return func(text []byte) int {
			if bytes.HasPrefix(text, find) {
				return index(text, len(find))
			}
			return index(text, 0)
		}, true
	}
	return nil, false
}
