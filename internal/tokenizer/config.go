package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// config is what this package reads of tokenizer_config.json and special_tokens_map.json.
type config struct {
	BOS          name             `json:"bos_token"`
	EOS          name             `json:"eos_token"`
	PAD          name             `json:"pad_token"`
	UNK          name             `json:"unk_token"`
	AddBOS       *bool            `json:"add_bos_token"`
	AddEOS       *bool            `json:"add_eos_token"`
	ChatTemplate json.RawMessage  `json:"chat_template"`
	AddedTokens  map[string]added `json:"added_tokens_decoder"` // by id
}

// name is a token: its text, or an object with its text as content.
type name string

// UnmarshalJSON reads both forms; null is no token.
func (n *name) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*string)(n))
	}
	var token struct {
		Content string `json:"content"`
	}
	err := json.Unmarshal(data, &token)
	*n = name(token.Content)
	return err
}

// or completes a config by another.
func (c config) or(other config) config {
	for _, n := range []struct{ to, from *name }{{&c.BOS, &other.BOS}, {&c.EOS, &other.EOS}, {&c.PAD, &other.PAD}, {&c.UNK, &other.UNK}} {
		if *n.to == "" {
			*n.to = *n.from
		}
	}
	return c
}

// template returns the chat template: a text, or the one called default of a list.
func (c config) template() (string, error) {
	if isNull(c.ChatTemplate) {
		return "", nil
	}
	var text string
	if err := json.Unmarshal(c.ChatTemplate, &text); err == nil {
		return text, nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(c.ChatTemplate, &list); err != nil {
		return "", errors.New("chat_template is neither a text nor a list of templates with names")
	}
	for _, t := range list {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// addConfigured enters the tokens that only the configuration has, as it may where the tokenizer is
// one of SentencePiece or tiktoken.
func (b *builder) addConfigured(c config) error {
	for _, number := range slices.Sorted(maps.Keys(c.AddedTokens)) {
		a := c.AddedTokens[number]
		id, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return fmt.Errorf("%s: added_tokens_decoder has the id %q, which is no number", nameConfig, number)
		}
		if _, ok := b.vocab.ids[a.Content]; ok || a.Content == "" {
			continue
		}
		if a.ID = int32(id); b.vocab.token(a.ID) != "" {
			return fmt.Errorf("%s: added_tokens_decoder has %q with the id %d, which is that of %q", nameConfig, a.Content, id, b.vocab.token(a.ID))
		}
		if err := b.vocab.add(a); err != nil {
			return fmt.Errorf("%s: %w", nameConfig, err)
		}
		b.found, b.verbatim = append(b.found, a), append(b.verbatim, a)
		b.configured = append(b.configured, number, a.Content)
	}
	return nil
}

// Names of special tokens in common use, for tokenizers whose files do not say which they are.
var (
	namesBOS = []string{"<s>", "<|begin_of_text|>", "<bos>", "<|bos|>", "<|startoftext|>"}
	namesEOS = []string{"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>", "<|eos|>"}
	namesPAD = []string{"<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>"}
)

// setSpecial finds the special ids of a file. A token that the configuration names must exist.
func (f *File) setSpecial(c config, configured bool) error {
	for _, s := range []struct {
		key    string
		name   name
		id     *int32
		common []string
	}{
		{"bos_token", c.BOS, &f.bos, namesBOS},
		{"eos_token", c.EOS, &f.eos, namesEOS},
		{"pad_token", c.PAD, &f.pad, namesPAD},
	} {
		switch {
		case s.name != "":
			if *s.id = f.vocab.lookup(string(s.name)); *s.id < 0 {
				return fmt.Errorf("%s is %q, which is no token", s.key, s.name)
			}
		case *s.id >= 0: // the file itself says it
		case !configured:
			*s.id = f.vocab.firstOf(s.common...)
		}
	}
	return nil
}

// setPrompt adds the special tokens that the configuration puts around a text, where the file of
// the tokenizer leaves that to it.
func (f *File) setPrompt(c config, template bool) {
	p := f.pipeline
	if template {
		return
	}
	if c.AddBOS != nil && !*c.AddBOS {
		p.prefix = nil
	} else if c.AddBOS != nil && f.bos >= 0 && !slices.Contains(p.prefix, f.bos) {
		p.prefix = append(p.prefix, f.bos)
	}
	if c.AddEOS != nil && *c.AddEOS && f.eos >= 0 && !slices.Contains(p.suffix, f.eos) {
		p.suffix = append(p.suffix, f.eos)
	}
}
