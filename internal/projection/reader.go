package projection

import (
	"errors"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/document"
)

// maxSize bounds every size that an experiment gives.
const maxSize = 1 << 40

// reader reads parameters and gathers the errors. A parameter that is null counts as absent.
type reader struct {
	params *document.Map
	over   *document.Map // goes over params
	errs   []error
}

func (r *reader) lookup(key string) (document.Value, bool) {
	v, ok := r.over.Lookup(key)
	if !ok {
		v, ok = r.params.Lookup(key)
	}
	return v, ok && !v.IsNull()
}

func (r *reader) fail(err error) { r.errs = append(r.errs, err) }

// parameterError is about the value of a parameter.
type parameterError struct {
	key  string // "devices" for their number
	text string
}

func (e *parameterError) Error() string { return "projection: " + e.text }

func (r *reader) failOf(key, format string, args ...any) {
	r.fail(&parameterError{key, fmt.Sprintf(format, args...)})
}

// failAt reports a value that cannot be used, with the place where it was written.
func (r *reader) failAt(key, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if v, ok := r.lookup(key); ok {
		if at := v.Origin().String(); at != "" {
			text += " (" + at + ")"
		}
		r.failOf(key, "%s: given %s, %s", key, v.Describe(), text)
		return
	}
	r.failOf(key, "%s: %s", key, text)
}

// size returns a whole number that is at least 1, or the fallback for an absent one.
func (r *reader) size(key string, fallback int) int {
	v, ok := r.lookup(key)
	if !ok {
		return fallback
	}
	n, ok := v.Int64()
	if f, isFloat := v.Float64(); !ok && isFloat && f == float64(int64(f)) {
		n, ok = int64(f), true
	}
	if !ok || n < 1 || n > maxSize {
		r.failAt(key, "want a whole number from 1 to %d", int64(maxSize))
		return max(fallback, 1)
	}
	return int(n)
}

// count is size for parameters where 0 means none.
func (r *reader) count(key string) int {
	if v, ok := r.lookup(key); ok {
		if n, ok := v.Int64(); ok && n == 0 {
			return 0
		}
		return r.size(key, 0)
	}
	return 0
}

// required is size for parameters without a fallback.
func (r *reader) required(key string) int {
	if _, ok := r.lookup(key); !ok {
		r.fail(fmt.Errorf("projection: %s is missing: want a number; give %s=VALUE, or the presets of the experiment with --configs-dir", key, key))
		return 1
	}
	return r.size(key, 1)
}

// flag returns a switch. Experiments write 1 for true.
func (r *reader) flag(key string) bool { return r.flagOr(key, false) }

func (r *reader) flagOr(key string, fallback bool) bool {
	v, ok := r.lookup(key)
	if !ok {
		return fallback
	}
	if b, ok := v.Bool(); ok {
		return b
	}
	if n, ok := v.Int64(); ok && (n == 0 || n == 1) {
		return n == 1
	}
	r.failAt(key, "want true or false")
	return fallback
}

func (r *reader) float(key string, fallback float64) float64 {
	v, ok := r.lookup(key)
	if !ok {
		return fallback
	}
	f, ok := v.Float64()
	if !ok {
		r.failAt(key, "want a number")
		return fallback
	}
	return f
}

func (r *reader) text(key, fallback string) string {
	v, ok := r.lookup(key)
	if !ok {
		return fallback
	}
	s, ok := v.Identifier()
	if !ok {
		r.failAt(key, "want a string")
		return fallback
	}
	return s
}

// choice is text for parameters with few values; "" is accepted for an absent one.
func (r *reader) choice(key, fallback string, values ...string) string {
	got := r.text(key, fallback)
	if got != fallback && !slices.Contains(values, got) {
		r.failAt(key, "want one of %v", values)
		return fallback
	}
	return got
}

func (r *reader) list(key string) []document.Value {
	v, ok := r.lookup(key)
	if !ok {
		return nil
	}
	items, ok := v.List()
	if !ok {
		r.failAt(key, "want a list")
	}
	return items
}

func (r *reader) err() error { return errors.Join(r.errs...) }
