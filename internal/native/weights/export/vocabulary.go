package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/tokenizer"
)

// The types of tokens, with llama.cpp's numbers.
const (
	tokenNormal  int32 = 1
	tokenUnknown int32 = 2
	tokenControl int32 = 3
	tokenAdded   int32 = 4
	tokenUnused  int32 = 5
	tokenByte    int32 = 6
)

// jsonTokenizer is what the vocabulary of a GGUF file needs of a tokenizer.json.
type jsonTokenizer struct {
	AddedTokens []struct {
		ID      int32  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Model        struct {
		Type         string            `json:"type"`
		Vocab        map[string]int32  `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		ByteFallback bool              `json:"byte_fallback"`
		Unknown      string            `json:"unk_token"`
	} `json:"model"`
}

// vocabulary writes the tokenizer.
func (g *ggufWriter) vocabulary() error {
	file, ok := g.m.Tokenizer.(*tokenizer.File)
	if !ok {
		g.byteLevel(byteTokens(), map[int32]int32{}, "gpt-2", nil)
		// llama.cpp ends a text at some token. No text has the byte 0.
		g.set("tokenizer.ggml.bos_token_id", uint32(0))
		g.set("tokenizer.ggml.eos_token_id", uint32(0))
		g.set("tokenizer.ggml.add_bos_token", false)
		return nil
	}
	raw := file.Raw()[0]
	if err := g.writeFile(raw, file); err != nil {
		return fmt.Errorf("%s: %w", raw.Name, err)
	}
	for key, id := range map[string]int32{"bos": file.BOS(), "eos": file.EOS(), "padding": file.PAD()} {
		if id >= 0 {
			g.set("tokenizer.ggml."+key+"_token_id", uint32(id))
		}
	}
	prompt := file.EncodePrompt(nil, nil)
	g.set("tokenizer.ggml.add_bos_token", file.BOS() >= 0 && slices.Contains(prompt, file.BOS()))
	g.set("tokenizer.ggml.add_eos_token", file.EOS() >= 0 && slices.Contains(prompt, file.EOS()))
	if template := file.ChatTemplate(); template != "" {
		g.set("tokenizer.chat_template", template)
	}
	return nil
}

// writeFile writes the tokens of a tokenizer.json, of a model of SentencePiece or of a file of
// tiktoken.
func (g *ggufWriter) writeFile(raw tokenizer.Raw, file *tokenizer.File) error {
	if file.Format() == "tiktoken" {
		return g.writeTiktoken(raw.Data, file)
	}
	if strings.HasSuffix(raw.Name, ".model") {
		return g.writePieces(raw.Data, file)
	}
	var t jsonTokenizer
	if err := json.Unmarshal(raw.Data, &t); err != nil {
		return fmt.Errorf("the vocabulary of a GGUF file is made of a tokenizer.json, a tokenizer.model or a file of tiktoken, and this is none: %w", err)
	}
	return g.writeBPE(&t)
}

// writePieces writes a model of SentencePiece, whose types of pieces are those of llama.cpp, and
// the tokens that other files add to it.
func (g *ggufWriter) writePieces(data []byte, file *tokenizer.File) error {
	s, err := tokenizer.ReadSentencePiece(data)
	switch {
	case err != nil:
		return err
	case !s.BPE:
		return errors.New("given a model of type unigram, want BPE")
	case s.Normalizes || s.RemoveExtraSpaces:
		return errors.New("the model changes characters or removes spaces before it encodes, which llama.cpp does not")
	}
	n := file.VocabSize()
	tokens, kinds, scores := make([]string, n), map[int32]int32{}, make([]float32, g.c.VocabSize)
	for id := range int32(n) {
		if int(id) < len(s.Pieces) {
			p := s.Pieces[id]
			tokens[id], kinds[id], scores[id] = p.Text, p.Type, p.Score
			if p.Type == tokenUnknown {
				g.set("tokenizer.ggml.unknown_token_id", uint32(id))
			}
			continue
		}
		token, special := file.Token(id)
		if tokens[id], kinds[id] = token, tokenAdded; special {
			kinds[id] = tokenControl
		}
	}
	g.tokens("llama", tokens, kinds)
	g.set("tokenizer.ggml.scores", scores)
	g.set("tokenizer.ggml.add_space_prefix", s.DummyPrefix)
	return nil
}

// writeTiktoken writes a file of tiktoken, with the special tokens that it lacks.
func (g *ggufWriter) writeTiktoken(data []byte, file *tokenizer.File) error {
	t, err := tokenizer.ReadTiktoken(data)
	if err != nil {
		return err
	}
	split, ok := splits[t.Pattern]
	if !ok {
		return fmt.Errorf("llama.cpp has no name for the pattern %q", t.Pattern)
	}
	tokens, kinds := make([]string, file.VocabSize()), map[int32]int32{}
	copy(tokens, t.Tokens)
	for id := range tokens {
		if token, special := file.Token(int32(id)); special {
			tokens[id], kinds[int32(id)] = token, tokenControl
		}
	}
	g.byteLevel(tokens, kinds, split, t.Merges)
	return nil
}

// byteLevel writes a tokenizer whose tokens are bytes.
func (g *ggufWriter) byteLevel(tokens []string, kinds map[int32]int32, split string, merges [][2]string) {
	g.tokens("gpt2", tokens, kinds)
	g.set("tokenizer.ggml.pre", split)
	joined := make([]string, len(merges))
	for i, m := range merges {
		joined[i] = m[0] + " " + m[1]
	}
	g.set("tokenizer.ggml.merges", joined)
}

// writeBPE writes the tokens and merges of the two kinds that llama.cpp calls gpt2, whose tokens
// are bytes, and llama, whose tokens are characters with bytes for those that are missing.
func (g *ggufWriter) writeBPE(t *jsonTokenizer) error {
	if t.Model.Type != "BPE" {
		return fmt.Errorf("given a model of type %q, want BPE", t.Model.Type)
	}
	tokens, kinds, err := t.tokens(g.c.VocabSize)
	if err != nil {
		return err
	}
	merges, err := t.merges()
	if err != nil {
		return err
	}
	if t.Model.ByteFallback {
		g.tokens("llama", tokens, kinds)
		ranks := map[string]int{}
		for i, m := range slices.Backward(merges) {
			ranks[m[0]+m[1]] = i
		}
		scores := make([]float32, g.c.VocabSize)
		for i, token := range tokens {
			scores[i] = float32(-len(merges))
			if rank, merged := ranks[token]; merged {
				scores[i] = float32(-rank)
			}
		}
		g.set("tokenizer.ggml.scores", scores)
		space, err := t.spacePrefix()
		if err != nil {
			return err
		}
		g.set("tokenizer.ggml.add_space_prefix", space)
		if id, ok := t.Model.Vocab[t.Model.Unknown]; ok {
			g.set("tokenizer.ggml.unknown_token_id", uint32(id))
		}
		return nil
	}
	split, err := t.split()
	if err != nil {
		return err
	}
	g.byteLevel(tokens, kinds, split, merges)
	return nil
}

// spacePrefix reports whether a tokenizer of characters puts a space before a text: by the
// normalizer Prepend or, in newer files, by the pre-tokenizer Metaspace.
func (t *jsonTokenizer) spacePrefix() (bool, error) {
	if strings.Contains(string(t.Normalizer), `"Prepend"`) {
		return true, nil
	}
	var pre *struct {
		Type   string `json:"type"`
		Scheme string `json:"prepend_scheme"`
		Split  bool   `json:"split"`
	}
	if err := json.Unmarshal(t.PreTokenizer, &pre); len(t.PreTokenizer) > 0 && err != nil {
		return false, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if pre == nil {
		return false, nil
	}
	if pre.Type != "Metaspace" || pre.Split {
		return false, fmt.Errorf("pre_tokenizer: llama.cpp does not split a text before it looks for characters: given %s", short(t.PreTokenizer))
	}
	return pre.Scheme != "never", nil
}

// short returns the beginning of a JSON value.
func short(raw json.RawMessage) string {
	return strings.ToValidUTF8(string(raw[:min(len(raw), 120)]), "")
}

// tokens writes the tokens with their types, which are normal ones unless kinds says otherwise, and
// names for the ids above them.
func (g *ggufWriter) tokens(kind string, tokens []string, kinds map[int32]int32) {
	types := make([]int32, g.c.VocabSize)
	for i := range types {
		switch {
		case i < len(tokens) && tokens[i] != "":
			types[i] = tokenNormal
			if k, ok := kinds[int32(i)]; ok {
				types[i] = k
			}
		default:
			types[i] = tokenUnused
		}
	}
	all := make([]string, g.c.VocabSize)
	copy(all, tokens)
	for i := range all {
		if all[i] == "" {
			all[i] = fmt.Sprintf("[PAD%d]", i)
		}
	}
	g.set("tokenizer.ggml.model", kind)
	g.set("tokenizer.ggml.tokens", all)
	g.set("tokenizer.ggml.token_type", types)
}

// tokens returns the tokens by id and the types of those that are not normal ones.
func (t *jsonTokenizer) tokens(limit int) ([]string, map[int32]int32, error) {
	tokens, kinds := make([]string, limit), map[int32]int32{}
	put := func(token string, id int32) error {
		if id < 0 || int(id) >= limit {
			return fmt.Errorf("token %q has the id %d, want one below vocab_size %d", token, id, limit)
		}
		tokens[id] = token
		return nil
	}
	for token, id := range t.Model.Vocab {
		if err := put(token, id); err != nil {
			return nil, nil, err
		}
		switch {
		case t.Model.ByteFallback && len(token) == 6 && strings.HasPrefix(token, "<0x"):
			kinds[id] = tokenByte
		case token == t.Model.Unknown:
			kinds[id] = tokenUnknown
		}
	}
	for _, a := range t.AddedTokens {
		if err := put(a.Content, a.ID); err != nil {
			return nil, nil, err
		}
		switch {
		case kinds[a.ID] == tokenUnknown:
		case a.Special:
			kinds[a.ID] = tokenControl
		default:
			kinds[a.ID] = tokenAdded
		}
	}
	return tokens, kinds, nil
}

// merges returns the merges, which are written as pairs or as texts with a space.
func (t *jsonTokenizer) merges() ([][2]string, error) {
	merges := make([][2]string, len(t.Model.Merges))
	for i, raw := range t.Model.Merges {
		if json.Unmarshal(raw, &merges[i]) == nil {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("merges[%d]: %w", i, err)
		}
		left, right, ok := strings.Cut(text, " ")
		if !ok {
			return nil, fmt.Errorf("merges[%d]: given %q, want two tokens with a space between them", i, text)
		}
		merges[i] = [2]string{left, right}
	}
	return merges, nil
}

// splits are the patterns that split a text into words, with llama.cpp's names for them.
var splits = map[string]string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "llama-bpe",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      "qwen2",
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                          "gpt-2",
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "gpt-4o",
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                "tekken",
}

// split returns llama.cpp's name for the way in which the tokenizer splits a text.
func (t *jsonTokenizer) split() (string, error) {
	type part struct {
		Type     string `json:"type"`
		UseRegex *bool  `json:"use_regex"`
		Prefix   bool   `json:"add_prefix_space"`
		Pattern  struct {
			Regex string `json:"Regex"`
		} `json:"pattern"`
	}
	var whole struct {
		part
		Parts []part `json:"pretokenizers"`
	}
	if err := json.Unmarshal(t.PreTokenizer, &whole); err != nil {
		return "", fmt.Errorf("pre_tokenizer: %w", err)
	}
	name := ""
	for _, p := range append(whole.Parts, whole.part) {
		switch p.Type {
		case "Sequence":
		case "ByteLevel":
			if p.Prefix {
				return "", errors.New("pre_tokenizer: llama.cpp adds no space before a text: given add_prefix_space true")
			}
			if name == "" && (p.UseRegex == nil || *p.UseRegex) {
				name = "gpt-2"
			}
		case "Split":
			known, ok := splits[p.Pattern.Regex]
			if !ok || name != "" {
				return "", fmt.Errorf("pre_tokenizer: llama.cpp has no name for the pattern %q", p.Pattern.Regex)
			}
			name = known
		default:
			return "", fmt.Errorf("pre_tokenizer: llama.cpp has no name for %q", p.Type)
		}
	}
	if name == "" && len(t.Model.Merges) > 0 {
		return "", errors.New("pre_tokenizer: llama.cpp splits every text into words, and this tokenizer does not")
	}
	if name == "" {
		name = "gpt-2" // without merges it does not matter
	}
	return name, nil
}
