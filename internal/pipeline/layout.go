package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// maxLetters bounds what a layout may be written out to.
const maxLetters = 1 << 16

// Layout reads which parts of a model the stages have, in Megatron's notation, such as
// Et*3|(tt|)*29,m|L: E is the embedding, t a layer, m one of multi-token prediction, L the loss,
// and | ends a chunk. It returns the letters of each chunk, in the order of the model. What they
// mean is left to the caller.
func Layout(text string) ([]string, error) {
	expanded, rest, err := expandLayout(strings.NewReplacer(" ", "", ",", "", "\n", "").Replace(text), 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("unexpected %q", rest)
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(expanded, "|"), nil
}

// expandLayout writes out the repetitions of a layout, up to a closing parenthesis.
func expandLayout(text string, depth int) (expanded, rest string, err error) {
	var b strings.Builder
	for text != "" && text[0] != ')' {
		part := text[:1]
		text = text[1:]
		if part == "(" {
			if depth > 100 {
				return "", "", fmt.Errorf("more than 100 parentheses")
			}
			if part, text, err = expandLayout(text, depth+1); err != nil {
				return "", "", err
			}
			if text == "" {
				return "", "", fmt.Errorf("a parenthesis is not closed")
			}
			text = text[1:]
		}
		if after, ok := strings.CutPrefix(text, "*"); ok {
			end := 0
			for end < len(after) && after[end] >= '0' && after[end] <= '9' {
				end++
			}
			n, err := strconv.Atoi(after[:end])
			if err != nil || n > maxLetters || n*len(part) > maxLetters {
				return "", "", fmt.Errorf("want a number up to %d after *", maxLetters)
			}
			part, text = strings.Repeat(part, n), after[end:]
		}
		if b.WriteString(part); b.Len() > maxLetters {
			return "", "", fmt.Errorf("more than %d letters", maxLetters)
		}
	}
	return b.String(), text, nil
}
