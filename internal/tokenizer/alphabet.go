package tokenizer

// runes has the character of each byte.
var runes = func() (a [256]rune) {
	next := rune(256)
	for b := range a {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			a[b] = rune(b)
		default:
			a[b] = next
			next++
		}
	}
	return a
}()

// alphabetBytes is the inverse of runes.
var alphabetBytes = func() map[rune]byte {
	m := make(map[rune]byte, len(runes))
	for b, r := range runes {
		m[r] = byte(b)
	}
	return m
}()

// Encode returns text as it is written.
func Encode(text []byte) string {
	token := make([]rune, len(text))
	for i, b := range text {
		token[i] = runes[b]
	}
	return string(token)
}

// Decode returns the text that is written as a token, or false if it has a character that stands
// for no byte.
func Decode(token string) ([]byte, bool) {
	text := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := alphabetBytes[r]
		if !ok {
			return nil, false
		}
		text = append(text, b)
	}
	return text, true
}
