package device

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/primus-fl/primus/internal/suggest"
)

// namePattern is matched before the name is put in upper case, because some letters outside ASCII
// have an upper case that is ASCII.
var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// Registry holds backends by name. It is safe for concurrent use.
type Registry struct {
	mu       sync.RWMutex
	backends map[string]Backend
}

// NewRegistry returns a registry without backends.
func NewRegistry() *Registry {
	return &Registry{backends: make(map[string]Backend)}
}

// Register adds b under name, which is trimmed and put in upper case. The name
// is a letter followed by letters, digits and underscores.
//
// It returns an error that matches ErrInvalidName for any other name and ErrDuplicate for a name
// that is taken; a nil backend is an error too. After an error the registry is as before.
func (r *Registry) Register(name string, b Backend) error {
	normalised, ok := normaliseName(name)
	if !ok {
		return fmt.Errorf("%w %q: want a letter followed by letters, digits or underscores", ErrInvalidName, name)
	}
	if isNil(b) {
		return fmt.Errorf("device: register %s: the backend is nil; pass one made by its package's constructor", normalised)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if existing, taken := r.backends[normalised]; taken {
		return fmt.Errorf("%w: %s is a %T and cannot become a %T; choose another name", ErrDuplicate, normalised, existing, b)
	}
	r.backends[normalised] = b
	return nil
}

// Get returns the backend registered under name in any letter case. For an unknown name the error
// matches ErrNotFound, lists what is registered and suggests a similar name.
func (r *Registry) Get(name string) (Backend, error) {
	if normalised, ok := normaliseName(name); ok {
		r.mu.RLock()
		b, found := r.backends[normalised]
		r.mu.RUnlock()
		if found {
			return b, nil
		}
	}
	names := r.Names()
	return nil, fmt.Errorf("%w: %q; registered: %s%s", ErrNotFound, name, listOrNone(names), suggest.Hint(strings.TrimSpace(name), names))
}

// Names returns the registered names in ascending order.
func (r *Registry) Names() []string {
	entries := r.entries()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

// Backends returns the registered backends in ascending order of their names.
// The slice belongs to the caller.
func (r *Registry) Backends() []Backend {
	entries := r.entries()
	backends := make([]Backend, len(entries))
	for i, e := range entries {
		backends[i] = e.backend
	}
	return backends
}

// OfType returns the backend of devices of a type. The error says why none can be used: it matches
// ErrNotFound when no registered backend has such devices.
func (r *Registry) OfType(t Type) (Backend, error) {
	var names []string
	for _, e := range r.entries() {
		d, err := e.backend.Device()
		if err == nil && d.Type == t {
			if err := e.backend.Usable(); err != nil {
				return nil, err
			}
			return e.backend, nil
		}
		names = append(names, e.name)
	}
	return nil, fmt.Errorf("%w: none has devices of the type %v; registered: %s", ErrNotFound, t, listOrNone(names))
}

type entry struct {
	name    string
	backend Backend
}

// entries returns the backends that are registered now, ordered by name.
func (r *Registry) entries() []entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	entries := make([]entry, 0, len(r.backends))
	for _, name := range slices.Sorted(maps.Keys(r.backends)) {
		entries = append(entries, entry{name, r.backends[name]})
	}
	return entries
}

func normaliseName(name string) (string, bool) {
	name = strings.TrimSpace(name)
	return strings.ToUpper(name), namePattern.MatchString(name)
}

// isNil also recognises a nil pointer in a non-nil interface, which would otherwise crash at the
// first use.
func isNil(b Backend) bool {
	if b == nil {
		return true
	}
	v := reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func listOrNone(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ", ")
}
