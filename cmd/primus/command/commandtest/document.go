package commandtest

import "strings"

// Block is a fenced block of a document.
type Block struct {
	Language string
	Lines    []string
}

// Blocks returns the code blocks of a Markdown text.
func Blocks(text string) []Block {
	var found []Block
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			inside = true
			found = append(found, Block{Language: language})
		case fence:
			inside = false
		case inside:
			last := &found[len(found)-1]
			last.Lines = append(last.Lines, line)
		}
	}
	return found
}
