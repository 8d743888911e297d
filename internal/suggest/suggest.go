// Package suggest finds the name that a user probably meant.
//
// It depends on the standard library only, so that every package may use it.
package suggest

import (
	"strconv"
	"strings"
)

// maxNames and maxLength bound the work for one name.
const (
	maxNames  = 2000
	maxLength = 128
)

// Nearest returns the name with the smallest edit distance to given, and whether it is close enough
// to be worth showing: at most two edits, and fewer than half of the letters. Case is ignored, and
// hyphens and underscores between words are, too. Of equally close names the first one is returned.
// If none is close, the first name that begins with the words given is.
func Nearest(given string, names []string) (string, bool) {
	best, bestDistance := "", 3
	if len(given) > maxLength {
		return "", false
	}
	given = fold(given)
	for _, name := range names[:min(len(names), maxNames)] {
		if difference := len(given) - len(name); max(difference, -difference) >= bestDistance {
			continue
		}
		if d := Distance(given, fold(name)); d < bestDistance && 2*d < max(len(given), len(name)) {
			best, bestDistance = name, d
		}
	}
	if best == "" && len(given) >= minPrefix {
		for _, name := range names[:min(len(names), maxNames)] {
			if strings.HasPrefix(fold(name), given+"_") {
				return name, true
			}
		}
	}
	return best, best != ""
}

// minPrefix is the length from which the beginning of a name is taken for the name.
const minPrefix = 4

// Question returns the question whether the nearest name was meant, such as
//
//	did you mean "rmsnorm_fwd"?
//
// or "" when no name is close enough.
func Question(given string, names []string) string {
	name, ok := Nearest(given, names)
	if !ok {
		return ""
	}
	return "did you mean " + strconv.Quote(name) + "?"
}

// Hint returns Question as the end of an error, after a semicolon.
func Hint(given string, names []string) string {
	if question := Question(given, names); question != "" {
		return "; " + question
	}
	return ""
}

func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// Distance returns the number of edits that turn a into b, where an edit inserts, deletes or
// replaces a byte or exchanges two neighbours (optimal string alignment).
func Distance(a, b string) int {
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
