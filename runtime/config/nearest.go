package config

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Bounds on the work spent on suggestions: names compared for one key, length of a name, and unknown keys looked at.
const (
	maxCandidates = 2000
	maxNameLength = 128
	maxUnknown    = 200
)

// nearestKey returns the candidate one or two edits away from key, one for keys of up to five characters. Hyphens and
// underscores count as the same character.
func nearestKey(key string, candidates []string) (string, bool) {
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

// nearestNames returns up to three names that resemble name, best first.
func nearestNames(name string, candidates []string) []string {
	type scored struct {
		name     string
		distance int
	}
	var alike []scored
	if len(name) > maxNameLength {
		return nil
	}
	for _, candidate := range candidates[:min(len(candidates), maxCandidates)] {
		if len(candidate) > maxNameLength {
			continue
		}
		d := suggest.Distance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= max(2, len(name)/3) {
			alike = append(alike, scored{candidate, d})
		}
	}
	slices.SortStableFunc(alike, func(a, b scored) int { return a.distance - b.distance })
	var names []string
	for _, c := range alike[:min(len(alike), 3)] {
		names = append(names, c.name)
	}
	return names
}

// hintUnknown warns about keys of override that base lacks but that resemble one of its keys.
func hintUnknown(report *Report, base, override *Map, path string) {
	keys, unknown := base.Keys(), 0
	for key, value := range override.All() {
		known, ok := base.Lookup(key)
		if !ok && unknown < maxUnknown {
			unknown++
			if near, found := nearestKey(key, keys); found {
				report.warn(value.Origin(), joinPath(path, key), "unknown key is added as it is", "did you mean "+near+"?")
			}
		}
		baseMap, isMap := known.Map()
		if nested, nestedMap := value.Map(); isMap && nestedMap {
			hintUnknown(report, baseMap, nested, joinPath(path, key))
		}
	}
}
