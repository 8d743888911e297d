package policyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// reader fills a layer from a document and collects the faults.
type reader struct {
	// once says that a second value for a key is a fault.
	once    bool
	policy  oppolicy.Policy
	plugins Plugins
	faults  []error
}

// keyReader reads the value of a key and reports whether it could. It adds a value that it rejects
// to the faults.
type keyReader struct {
	key  string
	read func(key string, v document.Value) bool
}

// keyReaders lists the keys of a document in the order of the documentation.
func (r *reader) keyReaders() []keyReader {
	return []keyReader{
		{string(oppolicy.FieldPrefer), r.prefer},
		{string(oppolicy.FieldStrict), r.strict},
		{string(oppolicy.FieldAllow), r.allow},
		{string(oppolicy.FieldDeny), r.deny},
		{string(oppolicy.FieldDeterministic), r.deterministic},
		{string(oppolicy.FieldPerOp), r.perOp},
		{string(oppolicy.FieldProtect), r.protect},
		{string(oppolicy.FieldCrossDevice), r.crossDevice},
		{string(oppolicy.FieldRules), r.rules},
		{string(oppolicy.FieldQuarantine), r.quarantine},
		{string(oppolicy.FieldVerify), r.verify},
		{string(oppolicy.FieldCanary), r.canary},
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

// wantDocument describes a policy document.
func wantDocument() string { return "a mapping with the keys " + strings.Join(Keys(), ", ") }

// mapping reads a mapping, each key by its reader, and returns the entries that could be read.
func (r *reader) mapping(v document.Value, name string, readers []keyReader) []Entry {
	return r.read(r.entries(v, name), name, readers)
}

// entries returns the entries of a mapping, named after their parent, and reports those that are
// given twice.
func (r *reader) entries(v document.Value, parent string) []Entry {
	m, _ := v.Map()
	entries := make([]Entry, 0, m.Len())
	for key, value := range m.All() {
		e := Entry{Key: key, Name: document.JoinPath(parent, key), Value: value}
		if older := value.Replaced(); r.once && len(older) > 0 {
			r.twice(e, Entry{Name: e.Name, Value: older[len(older)-1]})
		}
		entries = append(entries, e)
	}
	return entries
}

// read reads entries, each by the reader of its key, and returns those that could be read.
func (r *reader) read(entries []Entry, name string, readers []keyReader) []Entry {
	var read []Entry
	first, keys := map[string]Entry{}, keysOf(readers)
	for _, e := range entries {
		if earlier, again := first[e.Key]; again {
			r.twice(e, earlier)
			continue
		}
		first[e.Key] = e
		switch i := slices.Index(keys, e.Key); {
		case i < 0:
			r.fail(e.Value.KeyOrigin(), name, "unknown key %q, want one of %s%s", document.Shorten(e.Key), strings.Join(keys, ", "), suggest.Hint(e.Key, keys))
		case readers[i].read(e.Name, e.Value):
			read = append(read, e)
		}
	}
	return read
}

func (r *reader) twice(e, earlier Entry) {
	r.fail(e.Value.KeyOrigin(), "", "%s is given twice, first as %s at %s; keep one", document.Shorten(e.Name), document.Shorten(earlier.Name), earlier.Value.KeyOrigin())
}

func (r *reader) fail(at document.Origin, key, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("policy: %w", &document.Error{Origin: at, Path: document.Shorten(key), Problem: fmt.Sprintf(format, args...)}))
}

// accept reports whether set accepted the text of a value. It adds an error of set, with the place,
// to the faults.
func (r *reader) accept(key string, v document.Value, set func(value, source string) error) bool {
	err := set(v.Text(), v.Origin().Source())
	if err == nil {
		return true
	}
	var fault *oppolicy.Error
	if errors.As(err, &fault) {
		r.fail(v.Within(fault.Offset), key, "given %s: %s", v.Describe(), fault.Problem)
	} else {
		r.fail(v.Origin(), key, "given %s: %v", v.Describe(), err)
	}
	return false
}

func (r *reader) prefer(key string, v document.Value) bool {
	if v.Kind() != document.KindString {
		r.fail(v.Origin(), key, "given %s, want flagos, vendor, reference or tuned", v.Describe())
		return false
	}
	return r.accept(key, v, r.policy.SetPrefer)
}

func (r *reader) strict(key string, v document.Value) bool {
	_, ok := r.toggle(key, v)
	if ok {
		ok = r.accept(key, v, r.policy.SetStrict)
	}
	return ok
}

func (r *reader) deterministic(key string, v document.Value) (ok bool) {
	r.policy.Deterministic, ok = r.toggle(key, v)
	return ok
}

func (r *reader) protect(key string, v document.Value) bool {
	on, ok := r.toggle(key, v)
	r.policy.ProtectInPlace = on
	return ok
}

func (r *reader) crossDevice(key string, v document.Value) bool {
	if v.Kind() != document.KindString {
		r.fail(v.Origin(), key, "given %s, want copy or error", v.Describe())
		return false
	}
	return r.accept(key, v, r.policy.SetCrossDevice)
}

// toggle reads a switch: a bool, 1, 0 or one of the words that variables take.
func (r *reader) toggle(key string, v document.Value) (on, ok bool) {
	switch v.Kind() {
	case document.KindBool, document.KindInt, document.KindString:
		var p oppolicy.Policy
		ok = r.accept(key, v, p.SetStrict)
		return p.Strict, ok
	}
	r.fail(v.Origin(), key, "given %s, want true or false", v.Describe())
	return false, false
}

func (r *reader) allow(key string, v document.Value) (ok bool) {
	r.policy.Allow, ok = r.vendors(key, v)
	return ok
}

func (r *reader) deny(key string, v document.Value) (ok bool) {
	r.policy.Deny, ok = r.vendors(key, v)
	return ok
}

// vendors reads a list of names, or one text with commas. The result of an empty
// list is empty, not nil.
func (r *reader) vendors(key string, v document.Value) ([]string, bool) {
	var p oppolicy.Policy
	switch {
	case v.Kind() == document.KindString && strings.TrimSpace(v.Text()) == "":
		r.fail(v.Origin(), key, "given an empty text, want names of vendors; write [] for none")
		return nil, false
	case v.Kind() == document.KindString:
		ok := r.accept(key, v, p.SetAllow)
		return p.Allow, ok
	case v.Kind() != document.KindList:
		hint := ""
		if v.Kind() == document.KindNull {
			hint = "; write [] for none"
		}
		r.fail(v.Origin(), key, "given %s, want a list of vendors or a text such as acme,nvidia%s", v.Describe(), hint)
		return nil, false
	}
	items, _ := v.List()
	names, before := make([]string, 0, len(items)), len(r.faults)
	for i, item := range items {
		name := fmt.Sprintf("%s[%d]", key, i)
		switch {
		case item.Kind() != document.KindString || strings.TrimSpace(item.Text()) == "" || strings.Contains(item.Text(), ","):
			r.fail(item.Origin(), name, "given %s, want the name of one vendor", item.Describe())
		case r.accept(name, item, p.SetAllow):
			names = append(names, p.Allow...)
		}
	}
	return names, len(r.faults) == before
}
