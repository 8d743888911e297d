package export

// byteTokenizer returns the tokenizer.json of a tokenizer whose ids are the values of bytes, for
// programs that know tokens only as the characters with which GPT-2 writes bytes.
func byteTokenizer() ([]byte, error) {
	vocab := map[string]int{}
	for id, token := range byteTokens() {
		vocab[token] = id
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	return marshal(tokenizerName, map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{}, "normalizer": nil, "pre_tokenizer": level,
		"post_processor": nil, "decoder": level,
		"model": map[string]any{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": []any{},
		},
	})
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
