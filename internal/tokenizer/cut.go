package tokenizer

// Cut returns the last place in text at which every pattern ends a word, whatever follows: before a
// space after something that is no white space, or before a newline after a letter of ASCII. If
// there is none, it returns the beginning of the last character, or len(text) if that is all.
func Cut(text []byte) int {
	for i := len(text) - 1; i > 0; i-- {
		c := text[i-1]
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if text[i] == ' ' && c > ' ' && c < 0x7f || text[i] == '\n' && isLetter {
			return i
		}
	}
	for i := len(text) - 1; i > 0 && i > len(text)-4; i-- {
		if text[i] < 0x80 || text[i] >= 0xc0 {
			return i
		}
	}
	return len(text)
}
