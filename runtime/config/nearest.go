package config

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/suggest"
)

// Bounds on the work spent on suggestions: names compared for one key, length of a name, and
// unknown keys looked at.
const (
	maxCandidates = 2000
	maxNameLength = 128
	maxUnknown    = 200
)

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
func hintUnknown(report *Report, base, override *document.Map, path string) {
	keys, unknown := base.Keys(), 0
	for key, value := range override.All() {
		known, ok := base.Lookup(key)
		if !ok && unknown < maxUnknown {
			unknown++
			if question := suggest.Question(key, keys); question != "" {
				report.warn(value.Origin(), document.JoinPath(path, key), "unknown key is added as it is", question)
			}
		}
		baseMap, isMap := known.Map()
		if nested, nestedMap := value.Map(); isMap && nestedMap {
			hintUnknown(report, baseMap, nested, document.JoinPath(path, key))
		}
	}
}
