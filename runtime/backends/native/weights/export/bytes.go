package export

import (
	"encoding/json"
	"fmt"

	"github.com/primus-fl/primus/runtime/tokenizer"
)

// byteFiles returns the files of a tokenizer whose ids are the values of bytes, for programs that
// know tokens only as the characters with which GPT-2 writes bytes.
func byteFiles(positions int) ([]tokenizer.Raw, error) {
	vocab := map[string]int{}
	for id, token := range byteTokens() {
		vocab[token] = id
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	var files []tokenizer.Raw
	for _, file := range []struct {
		name    string
		content map[string]any
	}{
		{"tokenizer.json", map[string]any{
			"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{}, "normalizer": nil, "pre_tokenizer": level,
			"post_processor": nil, "decoder": level,
			"model": map[string]any{
				"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
				"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []any{},
			},
		}},
		{"tokenizer_config.json", map[string]any{
			"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false, "model_max_length": positions,
		}},
	} {
		text, err := json.MarshalIndent(file.content, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", file.name, err)
		}
		files = append(files, tokenizer.Raw{Name: file.name, Data: append(text, '\n')})
	}
	return files, nil
}

// byteTokens returns the characters with which GPT-2 writes bytes: printable ones stand for
// themselves, the others for the characters from U+0100 on.
func byteTokens() []string {
	tokens := make([]string, 256)
	next := rune(0x100)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b && b <= 'ÿ' {
			tokens[b] = string(b)
			continue
		}
		tokens[b] = string(next)
		next++
	}
	return tokens
}
