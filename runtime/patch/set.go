package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// DuplicateError reports two patches with the same id.
type DuplicateError struct {
	ID            string
	First, Second string // where their handlers are written
}

// Error names the id and both places.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two patches with id %q: in %s and in %s; rename one", e.ID, e.First, e.Second)
}

// Set is an immutable collection of patches with different ids.
type Set struct {
	patches []*Patch
	byID    map[string]*Patch
	buckets map[bucket][]*Patch
}

// bucket is the backend and phase of patches, empty for any.
type bucket struct {
	backend string
	phase   Phase
}

// NewSet returns a set of patches. Their order decides between patches with one priority. The error
// joins all faults.
func NewSet(patches ...Patch) (*Set, error) {
	s := &Set{byID: map[string]*Patch{}, buckets: map[bucket][]*Patch{}}
	var faults []error
	for _, given := range patches {
		p := &given
		if err := p.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		if first, taken := s.byID[p.ID]; taken {
			faults = append(faults, &DuplicateError{ID: p.ID, First: first.Location(), Second: p.Location()})
			continue
		}
		s.byID[p.ID] = p
		s.patches = append(s.patches, p)
		b := bucket{p.Backend, p.Phase}
		s.buckets[b] = append(s.buckets[b], p)
	}
	return s, errors.Join(faults...)
}

// Sorted returns a set with the patches sorted by backend and id, for patches that come in no
// particular order.
func Sorted(patches []Patch) (*Set, error) {
	patches = slices.Clone(patches)
	slices.SortStableFunc(patches, func(a, b Patch) int {
		return cmp.Or(strings.Compare(a.Backend, b.Backend), strings.Compare(a.ID, b.ID))
	})
	return NewSet(patches...)
}

// Check returns the faults of patches that could never run with these backends or could not be
// understood: an unknown backend or phase, no description, no style.
func (s *Set) Check(backends []string) error {
	var faults []error
	for _, p := range s.patches {
		if p.Backend != "" && !slices.Contains(backends, p.Backend) {
			hint := suggest.Hint(p.Backend, backends)
			faults = append(faults, fmt.Errorf("patch %q: unknown backend %q, want one of %s%s", p.ID, p.Backend, strings.Join(backends, ", "), hint))
		}
		if p.Phase != "" && !slices.Contains(Phases(), p.Phase) {
			faults = append(faults, fmt.Errorf("patch %q: %w", p.ID, unknownPhase(p.Phase)))
		}
		if p.Description == "" {
			faults = append(faults, fmt.Errorf("patch %q: it has no description", p.ID))
		}
		if !slices.Contains(styles, p.Style) {
			faults = append(faults, fmt.Errorf("patch %q: given style %q, want one of %v", p.ID, p.Style, styles))
		}
	}
	return errors.Join(faults...)
}

// All returns the patches in order.
func (s *Set) All() []*Patch { return slices.Clone(s.patches) }

// IDs returns the ids in order.
func (s *Set) IDs() []string {
	ids := make([]string, len(s.patches))
	for i, p := range s.patches {
		ids[i] = p.ID
	}
	return ids
}

// HasKey reports whether a parameter of a backend switches or tunes a patch.
func (s *Set) HasKey(backend, key string) bool {
	return slices.ContainsFunc(s.patches, func(p *Patch) bool {
		return (p.Backend == "" || p.Backend == backend) && slices.Contains(p.Keys, key)
	})
}

// candidates returns the patches for a backend and phase: those for exactly these, then for any
// backend, for any phase, and for both.
func (s *Set) candidates(backend string, phase Phase) []*Patch {
	var found []*Patch
	seen := map[bucket]bool{}
	for _, b := range []bucket{{backend, phase}, {"", phase}, {backend, ""}, {"", ""}} {
		if !seen[b] {
			seen[b] = true
			found = append(found, s.buckets[b]...)
		}
	}
	return found
}
