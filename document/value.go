package document

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document/internal/scalar"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds of values.
const (
	KindNull Kind = iota + 1
	KindBool
	KindInt
	KindFloat
	KindString
	KindDate
	KindTime
	KindBytes
	KindList
	KindMap
)

var kindNames = [...]string{
	KindNull: "null", KindBool: "bool", KindInt: "int", KindFloat: "float", KindString: "string", KindDate: "date",
	KindTime: "time", KindBytes: "bytes", KindList: "list", KindMap: "mapping",
}

// String returns the name used in messages.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// Value is one immutable node of a configuration: a scalar, a list or a mapping. The zero Value is
// null.
type Value struct {
	// data is nil, bool, int64, *big.Int, float64, string, scalar.Date, scalar.Time, []byte, []Value
	// or *Map.
	data any
	// text is the spelling in the source of a scalar that is not a string.
	text   string
	origin *Origin
	// key is where the key of the value is written, or nil.
	key *Origin
	// guessed marks a scalar whose type was read off untyped text: a substituted variable or a command
	// line token.
	guessed bool
	// verbatim marks a scalar whose text is at its origin unchanged, on one line.
	verbatim bool
	// over is the value that this one replaced, or nil.
	over *Value
}

// Kind returns the type of v.
func (v Value) Kind() Kind {
	switch v.data.(type) {
	case nil:
		return KindNull
	case bool:
		return KindBool
	case int64, *big.Int:
		return KindInt
	case float64:
		return KindFloat
	case string:
		return KindString
	case scalar.Date:
		return KindDate
	case scalar.Time:
		return KindTime
	case []byte:
		return KindBytes
	case []Value:
		return KindList
	case *Map:
		return KindMap
	default:
		panic(fmt.Sprintf("BUG: document: value holds %T", v.data))
	}
}

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.data == nil }

// Bool returns the value of a bool.
func (v Value) Bool() (value, ok bool) {
	value, ok = v.data.(bool)
	return value, ok
}

// Int64 returns the value of an int that fits.
func (v Value) Int64() (int64, bool) {
	n, ok := v.data.(int64)
	return n, ok
}

// Float64 returns the value of a float or of an int, rounded to the nearest float.
func (v Value) Float64() (float64, bool) {
	switch n := v.data.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case *big.Int:
		f, _ := new(big.Float).SetInt(n).Float64()
		return f, true
	default:
		return 0, false
	}
}

// Str returns the value of a string.
func (v Value) Str() (string, bool) {
	s, ok := v.data.(string)
	return s, ok
}

// List returns a copy of the elements of a list.
func (v Value) List() ([]Value, bool) {
	items, ok := v.data.([]Value)
	return slices.Clone(items), ok
}

// Map returns the mapping v holds.
func (v Value) Map() (*Map, bool) {
	m, ok := v.data.(*Map)
	return m, ok
}

// Origin returns where v was written.
func (v Value) Origin() Origin {
	if v.origin == nil {
		return Origin{}
	}
	return *v.origin
}

// Replaced returns the values that v replaced when sources were merged, the one of next lower
// precedence first.
func (v Value) Replaced() []Value {
	var replaced []Value
	for old := v.over; old != nil; old = old.over {
		replaced = append(replaced, *old)
	}
	return replaced
}

// At returns v as if it were written at o.
func (v Value) At(o Origin) Value {
	v.origin, v.verbatim = &o, false
	return v
}

// KeyOrigin returns where the key of v was written, or where v was written when that is not known.
func (v Value) KeyOrigin() Origin {
	if v.key == nil {
		return v.Origin()
	}
	return *v.key
}

// KeyAt returns v as if its key were written at o.
func (v Value) KeyAt(o Origin) Value {
	v.key = &o
	return v
}

// Verbatim returns v marked as a scalar whose text is at its origin unchanged, without quotes and
// on one line.
func (v Value) Verbatim() Value {
	v.verbatim = true
	return v
}

// Within returns where the text of v after its first n bytes was written, or where v was written
// when that is not known.
func (v Value) Within(n int) Origin {
	o, text := v.Origin(), v.Text()
	if v.verbatim && o.Column > 0 {
		o.Column += utf8.RuneCountInString(text[:min(n, len(text))])
	}
	return o
}

// Spelled returns a scalar with its text in the source; see [Value.Text].
func (v Value) Spelled(text string) Value {
	v.text = text
	return v
}

// WithString returns the string text with the origin of v and what v replaced.
func (v Value) WithString(text string) Value {
	return Value{data: text, origin: v.origin, key: v.key, over: v.over}
}

// Replacing returns v with old below everything it has replaced so far.
func (v Value) Replacing(old Value) Value {
	if v.over != nil {
		old = v.over.Replacing(old)
	}
	v.over = &old
	return v
}

// Text returns a scalar as its source spells it after substitution, so that a user name 007 stays
// "007" although it was typed as the int 7. Lists and mappings have no text.
func (v Value) Text() string {
	if v.text != "" {
		return v.text
	}
	return v.canonical()
}

// Identifier returns the text of a value that names something: a string, or a scalar that was typed
// from untyped text, such as a substituted variable.
func (v Value) Identifier() (string, bool) {
	if s, ok := v.Str(); ok {
		return s, true
	}
	if v.guessed && !v.IsNull() {
		return v.Text(), v.Kind() != KindList && v.Kind() != KindMap
	}
	return "", false
}

// Any returns v as plain Go data: nil, bool, int64, *big.Int for larger ints, float64, string (also
// for dates and times), []byte, []any or map[string]any. The result is a copy.
func (v Value) Any() any {
	switch d := v.data.(type) {
	case *big.Int:
		return new(big.Int).Set(d)
	case scalar.Date:
		return string(d)
	case scalar.Time:
		return string(d)
	case []byte:
		return slices.Clone(d)
	case []Value:
		items := make([]any, len(d))
		for i, item := range d {
			items[i] = item.Any()
		}
		return items
	case *Map:
		return d.Any()
	default:
		return d
	}
}

// Equal reports whether v and other hold the same data. Origins and the order of keys do not
// matter, the difference between 1 and 1.0 does, and NaN equals NaN.
func (v Value) Equal(other Value) bool {
	switch a := v.data.(type) {
	case float64:
		b, ok := other.data.(float64)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b))
	case *big.Int:
		b, ok := other.data.(*big.Int)
		return ok && a.Cmp(b) == 0
	case []byte:
		b, ok := other.data.([]byte)
		return ok && bytes.Equal(a, b)
	case []Value:
		b, ok := other.data.([]Value)
		return ok && slices.EqualFunc(a, b, Value.Equal)
	case *Map:
		b, ok := other.data.(*Map)
		return ok && a.Equal(b)
	}
	return v.data == other.data
}

// Describe names kind and value for messages: scalars as they are written, long text shortened.
func (v Value) Describe() string {
	switch d := v.data.(type) {
	case nil:
		return "null"
	case string:
		return "string " + strconv.Quote(Shorten(d))
	case []Value:
		return "a list of " + strconv.Itoa(len(d))
	case *Map:
		return "a mapping of " + strconv.Itoa(d.Len())
	default:
		return v.Kind().String() + " " + Shorten(v.Text())
	}
}

// canonical spells a scalar the way the renderers do.
func (v Value) canonical() string {
	switch d := v.data.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(d)
	case int64:
		return strconv.FormatInt(d, 10)
	case *big.Int:
		return d.String()
	case float64:
		return formatFloat(d)
	case string:
		return d
	case scalar.Date:
		return string(d)
	case scalar.Time:
		return string(d)
	case []byte:
		return base64.StdEncoding.EncodeToString(d)
	default:
		return ""
	}
}

// maxShown is how much of a value a message quotes.
const maxShown = 80

// Shorten returns as much of a text as a message quotes.
func Shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}

// formatFloat writes f so that YAML 1.1, Python and Go read the same float again: always with a
// point, and with a sign in the exponent.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	return mantissa
}
