package document

import (
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Bounds on the work spent on one suggestion: names compared, and length of a name.
const (
	maxCandidates = 2000
	maxNameLength = 128
)

// Nearest returns the candidate one or two edits away from key, one for keys of up to five characters. Hyphens and
// underscores count as the same character.
func Nearest(key string, candidates []string) (string, bool) {
	limit := 2
	if len(key) <= 5 {
		limit = 1
	}
	if len(key) > maxNameLength {
		return "", false
	}
	fold := strings.NewReplacer("-", "_")
	best, bestDistance := "", limit+1
	for _, candidate := range candidates[:min(len(candidates), maxCandidates)] {
		if difference := len(candidate) - len(key); difference > limit || -difference > limit || len(candidate) < 2 {
			continue
		}
		if d := suggest.Distance(fold.Replace(key), fold.Replace(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best, best != ""
}
