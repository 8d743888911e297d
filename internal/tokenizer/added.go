package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// added is a token that is found in text as it is, not by the model.
type added struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized *bool  `json:"normalized"`
	Special    bool   `json:"special"`
}

// normalized reports whether the token is looked for in normalized text. Tokens that are not
// special are, unless they say otherwise.
func (a *added) normalized() bool {
	if a.Normalized == nil {
		return !a.Special
	}
	return *a.Normalized
}

// matcher finds added tokens: at every place the longest of them.
type matcher struct {
	tokens []added
	begins [256]bool // bytes that tokens begin with
	only   int       // the only such byte, or -1
	nodes  []node
}

// node is a beginning of tokens; node 0 is the empty one.
type node struct {
	next  map[byte]int32
	token int32 // index of the token that ends here, or -1
}

// newMatcher returns the matcher for tokens that are written as the texts say, or nil for none.
func newMatcher(tokens []added, texts []string) *matcher {
	if len(tokens) == 0 {
		return nil
	}
	m := &matcher{tokens: tokens, nodes: []node{{token: -1}}, only: -1}
	count := 0
	for i, text := range texts {
		if !m.begins[text[0]] {
			m.begins[text[0]] = true
			m.only = int(text[0])
			count++
		}
		at := int32(0)
		for _, b := range []byte(text) {
			if m.nodes[at].next == nil {
				m.nodes[at].next = map[byte]int32{}
			}
			next, ok := m.nodes[at].next[b]
			if !ok {
				next = int32(len(m.nodes))
				m.nodes[at].next[b] = next
				m.nodes = append(m.nodes, node{token: -1})
			}
			at = next
		}
		m.nodes[at].token = int32(i)
	}
	if count > 1 {
		m.only = -1
	}
	return m
}

// find returns where the first token of text from a place on begins and ends, with the white space
// that belongs to it, and its id, or len(text) and -1.
func (m *matcher) find(text []byte, from int) (begin, end int, id int32) {
	if m == nil {
		return len(text), len(text), -1
	}
	for at := from; at < len(text); {
		if m.only >= 0 {
			i := bytes.IndexByte(text[at:], byte(m.only))
			if i < 0 {
				break
			}
			at += i
		} else if !m.begins[text[at]] {
			at++
			continue
		}
		token, end := m.longest(text, at)
		if token == nil {
			at++
			continue
		}
		if token.SingleWord && (endsWithWord(text[:at]) || beginsWithWord(text[end:])) {
			at = end
			continue
		}
		if token.LStrip {
			at = from + len(bytes.TrimRightFunc(text[from:at], unicode.IsSpace))
		}
		if token.RStrip {
			end = len(text) - len(bytes.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		return at, end, token.ID
	}
	return len(text), len(text), -1
}

// longest returns the longest token at a place, or nil.
func (m *matcher) longest(text []byte, begin int) (token *added, end int) {
	if m == nil {
		return nil, 0
	}
	at := int32(0)
	for i := begin; i < len(text); i++ {
		next, ok := m.nodes[at].next[text[i]]
		if !ok {
			break
		}
		at = next
		if t := m.nodes[at].token; t >= 0 {
			token, end = &m.tokens[t], i+1
		}
	}
	return token, end
}

func endsWithWord(text []byte) bool {
	r, size := utf8.DecodeLastRune(text)
	return size > 0 && isWord(r)
}

func beginsWithWord(text []byte) bool {
	r, size := utf8.DecodeRune(text)
	return size > 0 && isWord(r)
}

// isWord reports whether \w matches a character.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
