package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// decoder turns ids into text. What a tokenizer does to single tokens is done once, when it is
// read; what it does to the whole text is done at each call.
type decoder struct {
	text    []byte
	ends    []uint32 // where the text of an id ends in text; it begins where that of the one before ends
	special map[int32]bool
	between string // put between tokens
	finish  []func(text []byte) []byte
}

// chain is the steps of a decoder as they are read: those for single tokens, and those for the
// whole text.
type chain struct {
	tokens  []func(token string) string
	finish  []func(text []byte) []byte
	fused   bool
	between string
}

// newDecoder applies a chain to the tokens of a vocabulary. Names of tokens in verbatim are not
// changed by it.
func newDecoder(v *vocabulary, c *chain, verbatim map[int32]bool) *decoder {
	d := &decoder{special: v.special, finish: c.finish, between: c.between, ends: make([]uint32, len(v.texts))}
	for id, token := range v.texts {
		if !verbatim[int32(id)] {
			for _, change := range c.tokens {
				token = change(token)
			}
		}
		d.text = append(d.text, token...)
		d.ends[id] = uint32(len(d.text))
	}
	return d
}

// piece returns the text of an id.
func (d *decoder) piece(id int32) []byte {
	if id < 0 || int(id) >= len(d.ends) {
		return []byte("\uFFFD")
	}
	begin := uint32(0)
	if id > 0 {
		begin = d.ends[id-1]
	}
	return d.text[begin:d.ends[id]]
}

// decode appends the text of ids to dst.
func (d *decoder) decode(dst []byte, ids []int32, special bool) []byte {
	begin := len(dst)
	for i, id := range ids {
		if !special && d.special[id] {
			continue
		}
		if i > 0 {
			dst = append(dst, d.between...)
		}
		dst = append(dst, d.piece(id)...)
	}
	if len(d.finish) == 0 {
		return dst
	}
	text := dst[begin:]
	for _, change := range d.finish {
		text = change(text)
	}
	return append(dst[:begin], text...)
}

// byteLevelText is what a token of a byte-level model stands for.
func byteLevelText(token string) string {
	if text, ok := Decode(token); ok {
		return string(text)
	}
	return token
}

// byteFallbackText turns a token such as <0x0A> into its byte.
func byteFallbackText(token string) string {
	if b, ok := fallbackByte(token); ok {
		return string([]byte{b})
	}
	return token
}

// fallbackByte returns the byte that a token such as <0x0A> stands for.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// stripText removes a text up to so many times from the beginning and the end of another.
func stripText(text, what []byte, start, stop int) []byte {
	for range start {
		text = bytes.TrimPrefix(text, what)
	}
	for range stop {
		text = bytes.TrimSuffix(text, what)
	}
	return text
}

// readDecoder adds what an object describes to the chain.
func (b *builder) readDecoder(raw json.RawMessage) error {
	b.chain.between = ""
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	c := &b.chain
	switch kind {
	case "Sequence":
		var s struct {
			Type     string            `json:"type"`
			Decoders []json.RawMessage `json:"decoders"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		for i, raw := range s.Decoders {
			if err := b.readDecoder(raw); err != nil {
				return fmt.Errorf("decoders[%d]: %w", i, err)
			}
		}
	case "Fuse":
		c.fused = true
	case "ByteLevel":
		return c.each(byteLevelText)
	case "ByteFallback":
		return c.each(byteFallbackText)
	case "Replace":
		what, with, err := readReplace(raw)
		if err != nil {
			return err
		}
		if c.fused {
			c.finish = append(c.finish, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(what), []byte(with)) })
			return nil
		}
		return c.each(func(token string) string { return strings.ReplaceAll(token, what, with) })
	case "Strip":
		var s struct {
			Type    string `json:"type"`
			Content string `json:"content"`
			Start   int    `json:"start"`
			Stop    int    `json:"stop"`
		}
		if err := strict(raw, &s); err != nil {
			return err
		}
		what := []byte(s.Content)
		start, stop := min(s.Start, maxVocab), min(s.Stop, maxVocab)
		if c.fused {
			c.finish = append(c.finish, func(text []byte) []byte { return stripText(text, what, start, stop) })
			return nil
		}
		return c.each(func(token string) string { return string(stripText([]byte(token), what, start, stop)) })
	case "Metaspace":
		m, err := parseMetaspace(raw)
		if err != nil {
			return err
		}
		if m.Scheme != "never" {
			c.finish = append(c.finish, func(text []byte) []byte { return bytes.TrimPrefix(text, []byte(" ")) })
		}
		return c.each(func(token string) string { return strings.ReplaceAll(token, m.Replacement, " ") })
	default:
		return &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{"ByteLevel", "ByteFallback", "Replace", "Strip", "Fuse", "Metaspace", "Sequence"}}
	}
	return nil
}

// each adds a step for single tokens.
func (c *chain) each(change func(token string) string) error {
	if c.fused {
		return errors.New("a decoder of tokens after Fuse, which leaves none, is not supported")
	}
	c.tokens = append(c.tokens, change)
	return nil
}
