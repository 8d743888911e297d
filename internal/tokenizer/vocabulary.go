package tokenizer

import (
	"fmt"
	"slices"
)

// maxVocab limits ids, so that a wrong file cannot ask for all memory.
const maxVocab = 1 << 22

// vocabulary is the tokens of a tokenizer as its file has them.
type vocabulary struct {
	texts   []string // by id; "" for an id that is none
	ids     map[string]int32
	special map[int32]bool
}

// newVocabulary returns the vocabulary of a model.
func newVocabulary(ids map[string]int32) (*vocabulary, error) {
	v := &vocabulary{ids: ids, special: map[int32]bool{}}
	size := int32(0)
	for text, id := range ids {
		if id < 0 || id >= maxVocab {
			return nil, fmt.Errorf("token %q has id %d: ids are from 0 to %d", text, id, maxVocab-1)
		}
		size = max(size, id+1)
	}
	v.texts = make([]string, size)
	// In order, so that of two tokens with one id the same one is named each time.
	for text, id := range ids {
		if other := v.texts[id]; other != "" && other != text {
			return nil, fmt.Errorf("id %d is that of %q and of %q: give each token an id of its own", id, min(text, other), max(text, other))
		}
		v.texts[id] = text
	}
	return v, nil
}

// add enters a token that is not the model's.
func (v *vocabulary) add(a added) error {
	if a.ID < 0 || a.ID >= maxVocab {
		return fmt.Errorf("added token %q has id %d: ids are from 0 to %d", a.Content, a.ID, maxVocab-1)
	}
	if grow := int(a.ID) + 1 - len(v.texts); grow > 0 {
		v.texts = append(v.texts, make([]string, grow)...)
	}
	v.texts[a.ID] = a.Content
	v.ids[a.Content] = a.ID
	if a.Special {
		v.special[a.ID] = true
	}
	return nil
}

// lookup returns the id of a token, or -1.
func (v *vocabulary) lookup(token string) int32 {
	if id, ok := v.ids[token]; ok {
		return id
	}
	return -1
}

// token returns the text of an id, or "".
func (v *vocabulary) token(id int32) string {
	if id < 0 || int(id) >= len(v.texts) {
		return ""
	}
	return v.texts[id]
}

// firstOf returns the id of the first of some tokens that is a special one, or -1.
func (v *vocabulary) firstOf(tokens ...string) int32 {
	i := slices.IndexFunc(tokens, func(t string) bool { return v.special[v.lookup(t)] })
	if i < 0 {
		return -1
	}
	return v.lookup(tokens[i])
}
