package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// object is a JSON object whose keys have an order, as a vocabulary has.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON writes the fields in their order, with < and > as they are.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []struct {
			value any
			after byte
		}{{f.key, ':'}, {f.value, 0}} {
			data, err := marshal(part.value, "")
			if err != nil {
				return nil, err
			}
			b.Write(data)
			if part.after != 0 {
				b.WriteByte(part.after)
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without the escapes that HTML needs.
func marshal(value any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// write returns the tokenizer.json for what was learned.
func write(c Config, r *learnedMerges) ([]byte, error) {
	expr, _ := tokenizer.Expr(c.Pattern)
	special := int32(len(c.SpecialTokens))
	added := []object{}
	var vocab object
	for id, token := range c.SpecialTokens {
		added = append(added, object{
			{"id", id}, {"content", token}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", true},
		})
		vocab = append(vocab, field{token, id})
	}
	texts := make([]string, len(r.Texts))
	for i, text := range r.Texts {
		texts[i] = tokenizer.Encode(text)
		if slices.Contains(c.SpecialTokens, texts[i]) {
			return nil, fmt.Errorf("trainer: the special token %q is also one that the texts have: give it a name that does not occur in them", texts[i])
		}
		vocab = append(vocab, field{texts[i], int32(i) + special})
	}
	merges := make([][2]string, len(r.Merges))
	for i, m := range r.Merges {
		merges[i] = [2]string{texts[m.Left], texts[m.Right]}
	}
	byteLevel := func(regex bool) object {
		return object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", regex}}
	}
	preTokenizer := byteLevel(true)
	if expr != tokenizer.GPT2 {
		cut := object{{"type", "Split"}, {"pattern", object{{"Regex", expr}}}, {"behavior", "Isolated"}, {"invert", false}}
		preTokenizer = object{{"type", "Sequence"}, {"pretokenizers", []object{cut, byteLevel(false)}}}
	}
	data, err := marshal(object{
		{"version", "1.0"},
		{"truncation", nil},
		{"padding", nil},
		{"added_tokens", added},
		{"normalizer", nil},
		{"pre_tokenizer", preTokenizer},
		{"post_processor", byteLevel(true)},
		{"decoder", byteLevel(true)},
		{"model", object{
			{"type", "BPE"}, {"dropout", nil}, {"unk_token", nil}, {"continuing_subword_prefix", nil}, {"end_of_word_suffix", nil},
			{"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false}, {"vocab", vocab}, {"merges", merges},
		}},
	}, "  ")
	return append(data, '\n'), err
}
