package policyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
)

// reader fills an overlay from a document and collects the faults.
type reader struct {
	policy  opmanager.Policy
	plugins Plugins
	faults  []error
}

// keyReader reads the value of a key and reports whether it could; what it rejects
// it adds to the faults.
type keyReader struct {
	key  string
	read func(key string, v Value) bool
}

// keyReaders lists the keys of a document in the order of the documentation.
func (r *reader) keyReaders() []keyReader {
	return []keyReader{
		{string(opmanager.FieldPrefer), r.prefer},
		{string(opmanager.FieldStrict), r.strict},
		{string(opmanager.FieldAllow), r.allow},
		{string(opmanager.FieldDeny), r.deny},
		{string(opmanager.FieldDeterministic), r.deterministic},
		{string(opmanager.FieldPerOp), r.perOp},
		{string(opmanager.FieldProtect), r.protect},
		{string(opmanager.FieldRules), r.rules},
		{string(opmanager.FieldQuarantine), r.quarantine},
		{string(opmanager.FieldVerify), r.verify},
		{string(FieldPluginModules), r.pluginModules},
		{string(FieldPluginSHA256), r.pluginSHA256},
		{string(FieldIsolatePlugins), r.isolatePlugins},
	}
}

// Keys returns the keys of a policy document.
func Keys() []string { return keysOf((&reader{}).keyReaders()) }

func keysOf(readers []keyReader) []string {
	keys := make([]string, len(readers))
	for i, k := range readers {
		keys[i] = k.key
	}
	return keys
}

// FromValue reads a document that was parsed elsewhere: a mapping with the keys
// of a policy file. The error joins one *Error for each fault; with an error there
// is no overlay.
func FromValue(root Value) (*Overlay, error) {
	r := &reader{}
	if root.Type != TypeMapping {
		r.fail(root.Place, "", "given %s, expected a mapping with the keys %s", root.given(), strings.Join(Keys(), ", "))
		return nil, errors.Join(r.faults...)
	}
	r.policy.Sources = map[opmanager.Field]string{}
	for _, e := range r.mapping(root, "", r.keyReaders()) {
		r.policy.Sources[opmanager.Field(e.Key)] = e.Place.Source()
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return &Overlay{values: r.policy, plugins: r.plugins}, nil
}

// mapping reads the entries of a mapping, each by the reader of its key, and
// returns those that could be read.
func (r *reader) mapping(m Value, name string, readers []keyReader) []Entry {
	var read []Entry
	keys := keysOf(readers)
	for e := range r.entries(m, name) {
		switch i := slices.Index(keys, e.Key); {
		case i < 0:
			r.fail(e.Place, name, "unknown key %q, expected one of %s%s", shorten(e.Key), strings.Join(keys, ", "), nearest(e.Key, keys))
		case readers[i].read(e.Name, e.Value):
			read = append(read, e)
		}
	}
	return read
}

// entries yields the entries of a mapping with their names and reports those that
// are given twice.
func (r *reader) entries(m Value, parent string) func(func(Entry) bool) {
	return func(yield func(Entry) bool) {
		first := map[string]Entry{}
		for _, e := range m.Entries {
			if e.Name == "" {
				e.Name = strings.TrimPrefix(parent+"."+e.Key, ".")
			}
			if earlier, twice := first[e.Key]; twice {
				r.fail(e.Place, "", "%s is given twice, first as %s at %s; keep one", shorten(e.Name), shorten(earlier.Name), earlier.Place)
				continue
			}
			first[e.Key] = e
			if !yield(e) {
				return
			}
		}
	}
}

func (r *reader) fail(at Place, key, format string, args ...any) {
	r.faults = append(r.faults, &Error{Place: at, Key: shorten(key), Problem: fmt.Sprintf(format, args...)})
}

// accept reports whether set took the text of a value, and adds its error with
// the place.
func (r *reader) accept(key string, v Value, set func(value, source string) error) bool {
	err := set(v.Text, v.Place.Source())
	if err == nil {
		return true
	}
	var fault *opmanager.PolicyError
	if errors.As(err, &fault) {
		r.fail(v.at(fault.Offset), key, "given %s: %s", v.given(), fault.Problem)
	} else {
		r.fail(v.Place, key, "given %s: %v", v.given(), err)
	}
	return false
}

func (r *reader) prefer(key string, v Value) bool {
	if v.Type != TypeString {
		r.fail(v.Place, key, "given %s, expected flagos, vendor or reference", v.given())
		return false
	}
	return r.accept(key, v, r.policy.SetPrefer)
}

func (r *reader) strict(key string, v Value) bool {
	_, ok := r.toggle(key, v)
	if ok {
		ok = r.accept(key, v, r.policy.SetStrict)
	}
	return ok
}

func (r *reader) deterministic(key string, v Value) (ok bool) {
	r.policy.Deterministic, ok = r.toggle(key, v)
	return ok
}

func (r *reader) protect(key string, v Value) bool {
	on, ok := r.toggle(key, v)
	r.policy.ProtectInPlace = on
	return ok
}

// toggle reads a switch: a bool, 1, 0 or one of the words that variables take.
func (r *reader) toggle(key string, v Value) (on, ok bool) {
	switch v.Type {
	case TypeBool, TypeInt, TypeString:
		var p opmanager.Policy
		ok = r.accept(key, v, p.SetStrict)
		return p.Strict, ok
	}
	r.fail(v.Place, key, "given %s, expected true or false", v.given())
	return false, false
}

func (r *reader) allow(key string, v Value) (ok bool) {
	r.policy.Allow, ok = r.vendors(key, v)
	return ok
}

func (r *reader) deny(key string, v Value) (ok bool) {
	r.policy.Deny, ok = r.vendors(key, v)
	return ok
}

// vendors reads a list of names, or one text with commas. The result of an empty
// list is empty, not nil.
func (r *reader) vendors(key string, v Value) ([]string, bool) {
	var p opmanager.Policy
	switch {
	case v.Type == TypeString && strings.TrimSpace(v.Text) == "":
		r.fail(v.Place, key, "given a blank text, expected names of vendors; write [] for none")
		return nil, false
	case v.Type == TypeString:
		ok := r.accept(key, v, p.SetAllow)
		return p.Allow, ok
	case v.Type != TypeList:
		hint := ""
		if v.Type == TypeNull {
			hint = "; write [] for none"
		}
		r.fail(v.Place, key, "given %s, expected a list of vendors or a text such as acme,nvidia%s", v.given(), hint)
		return nil, false
	}
	names, before := make([]string, 0, len(v.Items)), len(r.faults)
	for i, item := range v.Items {
		name := fmt.Sprintf("%s[%d]", key, i)
		switch {
		case item.Type != TypeString || strings.TrimSpace(item.Text) == "" || strings.Contains(item.Text, ","):
			r.fail(item.Place, name, "given %s, expected the name of one vendor", item.given())
		case r.accept(name, item, p.SetAllow):
			names = append(names, p.Allow...)
		}
	}
	return names, len(r.faults) == before
}

func nearest(given string, names []string) string {
	if name, ok := suggest.Nearest(strings.ReplaceAll(given, "-", "_"), names); ok {
		return fmt.Sprintf("; did you mean %q?", name)
	}
	return ""
}
