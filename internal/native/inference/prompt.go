package inference

import (
	"strings"
	"unicode/utf8"
)

// Limits of a prompt taken from text: the shortest line that is used, and the longest prompt.
const (
	minLine   = 8
	maxPrompt = 24
)

// FirstWords returns a prompt for a text to generate: the beginning of the first whole line of text
// that is long enough. Without such a line it returns the beginning of the text from its second
// word on, since the first word may be incomplete.
func FirstWords(text string) string {
	chosen := strings.TrimSpace(text)
	if _, rest, found := strings.Cut(text, " "); found {
		chosen = strings.TrimSpace(rest)
	}
	_, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			chosen = line
			break
		}
	}
	if len(chosen) > maxPrompt {
		cut := strings.LastIndexByte(chosen[:maxPrompt+1], ' ')
		if cut < minLine {
			cut = maxPrompt
		}
		chosen = chosen[:cut]
	}
	for chosen != "" {
		if r, size := utf8.DecodeLastRuneInString(chosen); r != utf8.RuneError || size != 1 {
			return chosen // no character is split
		}
		chosen = chosen[:len(chosen)-1]
	}
	return "\n"
}
