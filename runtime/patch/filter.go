package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// EnvFilter is the variable that holds a Filter.
const EnvFilter = "PRIMUS_PATCHES"

// Filter lists the patches that may run if their own conditions hold. The zero Filter allows all.
type Filter struct {
	given bool
	ids   []string
}

// Only returns the filter that allows these patches only.
func Only(ids ...string) Filter { return Filter{given: true, ids: slices.Clone(ids)} }

// ParseFilter reads the text of PRIMUS_PATCHES. An empty text or all, in any case, allows all
// patches, none allows no patch, and anything else is a list of ids separated by commas. Ids are
// exact. Spaces around them and empty items are ignored, so a text of commas only is an empty list,
// which allows no patch.
func ParseFilter(text string) Filter {
	text = strings.TrimSpace(text)
	switch strings.ToLower(text) {
	case "", "all":
		return Filter{}
	case "none":
		return Only()
	}
	f := Only()
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			f.ids = append(f.ids, item)
		}
	}
	return f
}

// IDs returns a copy of the list, and whether there is one.
func (f Filter) IDs() ([]string, bool) { return slices.Clone(f.ids), f.given }

// allows reports whether a patch may run.
func (f Filter) allows(id string) bool { return !f.given || slices.Contains(f.ids, id) }

// Unknown returns a warning for each id of the filter that no patch of the set has.
func (f Filter) Unknown(s *Set) []string {
	var warnings []string
	for _, id := range f.ids {
		if _, known := s.byID[id]; known {
			continue
		}
		w := fmt.Sprintf("%s: no patch %q", EnvFilter, id)
		if hint := suggest.Hint(id, s.IDs()); hint != "" {
			w += hint
		} else {
			w += "; primus patches list shows the ids"
		}
		warnings = append(warnings, w)
	}
	return warnings
}
