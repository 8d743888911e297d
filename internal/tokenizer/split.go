package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// Scanner returns the length of the first word of a text that is not empty and valid UTF-8. It is
// above 0: scanners leave no character out.
type Scanner func(text []byte) int

// Patterns of tokenizers, as their files have them.
const (
	GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	Llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	Qwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	GPT4o = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	Tekken = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// pattern is an expression, the name that users give it, and what makes its scanner.
type pattern struct {
	name string
	expr string
	make func(*classTable) Scanner
}

var patterns = []pattern{
	{"gpt2", GPT2, gpt2},
	{"llama3", Llama3, func(t *classTable) Scanner { return lines(t, 3) }},
	{"qwen2", Qwen2, func(t *classTable) Scanner { return lines(t, 1) }},
	{"gpt4o", GPT4o, func(t *classTable) Scanner { return cased(t, 3, true) }},
	{"tekken", Tekken, func(t *classTable) Scanner { return cased(t, 1, false) }},
}

// Find returns the scanner for an expression.
func Find(expr string) (Scanner, bool) {
	i := slices.IndexFunc(patterns, func(p pattern) bool { return p.expr == expr })
	if i < 0 {
		return nil, false
	}
	return patterns[i].make(classes()), true
}

// Expr returns the expression that has a name.
func Expr(name string) (string, bool) {
	i := slices.IndexFunc(patterns, func(p pattern) bool { return p.name == name })
	if i < 0 {
		return "", false
	}
	return patterns[i].expr, true
}

// Names returns the names of the expressions.
func Names() []string {
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = p.name
	}
	return names
}

// Digits returns the scanner of the pre-tokenizer of this name: a run of digits, or one digit if
// each is a word, or everything up to the next digit.
func Digits(each bool) Scanner {
	t := classes()
	return func(text []byte) int {
		c, size := t.at(text, 0)
		switch {
		case c&digit == 0:
			return t.runWithout(text, 0, digit)
		case each:
			return size
		default:
			return t.run(text, 0, digit)
		}
	}
}

// Punctuation returns a scanner whose words are single punctuation characters and what lies between
// them.
func Punctuation() Scanner {
	t := classes()
	return func(text []byte) int {
		if c, size := t.at(text, 0); c&punct != 0 {
			return size
		}
		return t.runWithout(text, 0, punct)
	}
}

// gpt2 returns the scanner for GPT2.
func gpt2(t *classTable) Scanner {
	return func(text []byte) int {
		if text[0] == '\'' {
			if n := contraction(text, false); n > 0 {
				return n
			}
		}
		begin := 0
		if text[0] == ' ' {
			begin = 1
		}
		c, size := t.at(text, begin)
		switch {
		case size == 0 || c&space != 0:
			return t.spaces(text)
		case c&letter != 0:
			return t.run(text, begin+size, letter)
		case c&number != 0:
			return t.run(text, begin+size, number)
		default:
			return t.runWithout(text, begin+size, word)
		}
	}
}

// lines returns the scanner for Llama3 and, with one digit per word, Qwen2.
func lines(t *classTable, maxDigits int) Scanner {
	return func(text []byte) int {
		c, size := t.at(text, 0)
		if c&letter != 0 {
			return t.run(text, size, letter)
		}
		if text[0] == '\'' {
			if n := contraction(text, true); n > 0 {
				return n
			}
		}
		if c&number != 0 {
			return t.upTo(text, maxDigits, number)
		}
		next, nextSize := t.at(text, size)
		if c&newline == 0 && next&letter != 0 {
			return t.run(text, size+nextSize, letter)
		}
		if n := t.symbols(text, c, size, next, nextSize); n > 0 {
			return t.runNewlines(text, n, false)
		}
		return t.blankLines(text)
	}
}

// cased returns the scanner for GPT4o and, with one digit per word and without contractions, for
// Tekken.
func cased(t *classTable, maxDigits int, contractions bool) Scanner {
	return func(text []byte) int {
		c, size := t.at(text, 0)
		before := 0 // the length of a character that may stand before a word
		if c&(newline|letter|number) == 0 {
			before = size
		}
		n := t.lowerWord(text, before)
		if n == 0 && before > 0 {
			n = t.lowerWord(text, 0)
		}
		if n == 0 {
			n = t.upperWord(text, before)
		}
		if n == 0 && before > 0 {
			n = t.upperWord(text, 0)
		}
		if n > 0 {
			if contractions && n < len(text) && text[n] == '\'' {
				n += contraction(text[n:], true)
			}
			return n
		}
		if c&number != 0 {
			return t.upTo(text, maxDigits, number)
		}
		next, nextSize := t.at(text, size)
		if n := t.symbols(text, c, size, next, nextSize); n > 0 {
			return t.runNewlines(text, n, true)
		}
		return t.blankLines(text)
	}
}

// lowerWord returns the end of upper* lower+ from begin on, or 0. Characters without case are in
// both classes, so the end is that of the last one in lower.
func (t *classTable) lowerWord(text []byte, begin int) int {
	end := t.run(text, begin, upper)
	if n := t.run(text, end, lower); n > end {
		return n
	}
	for end > begin {
		_, size := utf8.DecodeLastRune(text[begin:end])
		if c, _ := t.at(text, end-size); c&lower != 0 {
			return end
		}
		end -= size
	}
	return 0
}

// upperWord returns the end of upper+ lower* from begin on, or 0.
func (t *classTable) upperWord(text []byte, begin int) int {
	end := t.run(text, begin, upper)
	if end == begin {
		return 0
	}
	return t.run(text, end, lower)
}

// symbols returns the end of " ?[^\s\p{L}\p{N}]+", or 0. Its arguments describe the first two
// characters.
func (t *classTable) symbols(text []byte, c uint8, size int, next uint8, nextSize int) int {
	switch {
	case c&word == 0:
		return t.runWithout(text, size, word)
	case text[0] == ' ' && nextSize > 0 && next&word == 0:
		return t.runWithout(text, size+nextSize, word)
	}
	return 0
}

// runNewlines returns the end of newlines, and of slashes if they count as such, from i on.
func (t *classTable) runNewlines(text []byte, i int, slash bool) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || slash && text[i] == '/') {
		i++
	}
	return i
}

// upTo returns the end of the first characters of a class, at most limit of them.
func (t *classTable) upTo(text []byte, limit int, class uint8) int {
	end := 0
	for range limit {
		c, size := t.at(text, end)
		if c&class == 0 {
			break
		}
		end += size
	}
	return end
}

// blankLines returns the length of "\s*[\r\n]+|\s+(?!\S)|\s+": a run of white space up to its last
// newline if it has one.
func (t *classTable) blankLines(text []byte) int {
	end := t.run(text, 0, space)
	for i := end - 1; i >= 0; i-- {
		if text[i] == '\n' || text[i] == '\r' {
			return i + 1
		}
	}
	return t.spacesTo(text, end)
}

// spaces returns the length of "\s+(?!\S)|\s+".
func (t *classTable) spaces(text []byte) int { return t.spacesTo(text, t.run(text, 0, space)) }

// spacesTo is spaces with the end of the run: its last character is left to the word that follows,
// unless it is the only one.
func (t *classTable) spacesTo(text []byte, end int) int {
	if end == len(text) {
		return end
	}
	_, size := utf8.DecodeLastRune(text[:end])
	if size == end {
		return end
	}
	return end - size
}

// contraction returns the length of one of 's 't 're 've 'm 'll 'd at the beginning of text, or 0.
// Letters fold within ASCII only.
func contraction(text []byte, fold bool) int {
	var c [2]byte
	for i := range min(2, len(text)-1) {
		c[i] = text[1+i]
		if fold && 'A' <= c[i] && c[i] <= 'Z' {
			c[i] += 'a' - 'A'
		}
	}
	switch c[0] {
	case 's', 't', 'm', 'd':
		return 2
	}
	switch c {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}
