package device

import (
	"fmt"
	"strings"
)

// hint returns the clause that suggests the name nearest to what was given, or
// nothing when no name is near.
func hint(given string, names []string) string {
	given = strings.ToUpper(strings.TrimSpace(given))
	limit := max(1, len(given)/3)
	best, bestDistance := "", limit+1
	for _, name := range names {
		if d := editDistance(given, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance returns the number of bytes to insert, delete, replace or swap
// with their neighbour in order to turn a into b.
func editDistance(a, b string) int {
	older, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			current[j] = min(replace, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], older[j-2]+1)
			}
		}
		older, previous, current = previous, current, older
	}
	return previous[len(b)]
}
