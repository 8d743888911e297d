package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// encoding is a tokenizer that is published as a file of tiktoken. The file has its tokens; the
// rest is in programs, from where it is taken here. Its number of tokens tells which it is.
type encoding struct {
	name    string
	tokens  int // one more than the highest rank
	pattern string
	special map[string]int32
	prefix  string // begins a prompt
	eos     string
}

// encodings returns the encodings that are known.
func encodings() []encoding {
	gpt2 := map[string]int32{"<|endoftext|>": 50256}
	qwen := map[string]int32{"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
	for i := range int32(205) {
		qwen[fmt.Sprintf("<|extra_%d|>", i)] = 151646 + i
	}
	llama := map[string]int32{
		"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|start_header_id|>": 128006, "<|end_header_id|>": 128007, "<|eot_id|>": 128009,
	}
	free := int32(0)
	for id := int32(128002); id < 128256; id++ {
		if id != 128006 && id != 128007 && id != 128009 {
			llama[fmt.Sprintf("<|reserved_special_token_%d|>", free)] = id
			free++
		}
	}
	return []encoding{
		{name: "gpt2, r50k_base", tokens: 50256, pattern: GPT2, special: gpt2, eos: "<|endoftext|>"},
		{name: "p50k_base", tokens: 50281, pattern: GPT2, special: gpt2, eos: "<|endoftext|>"},
		{name: "cl100k_base", tokens: 100256, pattern: Llama3, eos: "<|endoftext|>", special: map[string]int32{
			"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
		}},
		{name: "Llama 3", tokens: 128000, pattern: Llama3, special: llama, prefix: "<|begin_of_text|>", eos: "<|end_of_text|>"},
		{name: "Qwen", tokens: 151643, pattern: Qwen2, special: qwen, eos: "<|endoftext|>"},
		{name: "o200k_base", tokens: 199998, pattern: GPT4o, eos: "<|endoftext|>", special: map[string]int32{
			"<|endoftext|>": 199999, "<|endofprompt|>": 200018,
		}},
	}
}

// isTiktoken reports whether a text begins with a line of a file of tiktoken.
func isTiktoken(begin string) bool {
	line, _, whole := strings.Cut(begin, "\n")
	_, rank, err := parseTiktokenLine([]byte(line))
	return whole && err == nil && rank >= 0
}

// parseTiktokenLine reads a token in base64 and its rank.
func parseTiktokenLine(line []byte) (token []byte, rank int, err error) {
	text, number, ok := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	if !ok {
		return nil, 0, fmt.Errorf("%q is not a token in base64, a space and a rank", line)
	}
	token, err = base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || len(token) == 0 {
		return nil, 0, fmt.Errorf("%q is not a token in base64", text)
	}
	rank, err = strconv.Atoi(string(number))
	if err != nil || rank < 0 || rank >= maxVocab {
		return nil, 0, fmt.Errorf("%q is not a rank from 0 to %d", number, maxVocab-1)
	}
	return token, rank, nil
}

// readTiktoken returns the tokens of a file by their ranks.
func readTiktoken(data []byte) ([][]byte, error) {
	var tokens [][]byte
	count, limit := 0, 2*bytes.Count(data, []byte("\n"))+2
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		token, rank, err := parseTiktokenLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if rank >= limit {
			return nil, fmt.Errorf("line %d: the rank %d is far above the number of tokens", n, rank)
		}
		if grow := rank + 1 - len(tokens); grow > 0 {
			tokens = append(tokens, make([][]byte, grow)...)
		}
		if tokens[rank] != nil {
			return nil, fmt.Errorf("line %d: the rank %d is there before", n, rank)
		}
		tokens[rank] = token
		count++
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, errors.New("it has no tokens")
	}
	return tokens, nil
}

// parseTiktoken reads a file of tiktoken.
func parseTiktoken(data []byte) (*builder, error) {
	tokens, e, err := readEncoding(data)
	if err != nil {
		return nil, err
	}
	return buildTiktoken(tokens, e)
}

// readEncoding returns the tokens of a file by their ranks, and which encoding it is.
func readEncoding(data []byte) (tokens [][]byte, e encoding, err error) {
	tokens, err = readTiktoken(data)
	if err != nil {
		return nil, e, err
	}
	var known []string
	for _, e := range encodings() {
		if e.tokens == len(tokens) {
			return tokens, e, nil
		}
		known = append(known, fmt.Sprintf("%s (%d)", e.name, e.tokens))
	}
	return nil, e, &UnsupportedError{What: fmt.Sprintf("a file of tiktoken with %d tokens, whose pattern and special tokens are not in it,", len(tokens)), Supported: known}
}

// buildTiktoken returns the builder for the tokens of an encoding.
func buildTiktoken(tokens [][]byte, e encoding) (*builder, error) {
	b := &builder{byteLevel: true, bos: -1, eos: -1, pad: -1}
	settings := Settings{ByteLevel: true, Tokens: tokens, Unknown: None, WholeWords: true}
	for i := range settings.ByteIDs {
		settings.ByteIDs[i] = None
	}
	ids := make(map[string]int32, len(tokens))
	ranks := make([]int32, len(tokens))
	for rank, token := range tokens {
		if token == nil {
			continue
		}
		if _, ok := ids[string(token)]; ok {
			return nil, fmt.Errorf("the token %q has two ranks", token)
		}
		ids[string(token)], ranks[rank] = int32(rank), int32(rank)
		if len(token) == 1 {
			settings.ByteIDs[token[0]] = int32(rank)
		}
	}
	settings.Merges = mergesOf(tokens, ranks)
	var err error
	if b.vocab, err = newVocabulary(ids); err != nil {
		return nil, err
	}
	b.tokens, b.model = tokens, New(settings)
	scan, ok := Find(e.pattern)
	if !ok {
		return nil, fmt.Errorf("BUG: no scanner for %q", e.pattern)
	}
	b.steps = []step{{scan: scan}}
	var special []added
	for token, id := range e.special {
		special = append(special, added{ID: id, Content: token, Special: true})
	}
	if err := b.addTokens(special); err != nil {
		return nil, err
	}
	if b.eos = b.vocab.lookup(e.eos); e.prefix != "" {
		b.bos = b.vocab.lookup(e.prefix)
		b.prefix = []int32{b.bos}
	}
	return b, nil
}
