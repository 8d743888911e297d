package document

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/suggest"
)

// UnknownKey is a key that no field of the target takes.
type UnknownKey struct {
	// Path is the dotted key path.
	Path string
	// Origin is where the value was written.
	Origin Origin
	// Nearest is a known key one or two edits away, or empty.
	Nearest string
}

// Decode fills the struct that into points to from params and returns the keys no field takes.
//
// Fields are matched by the tag `param:"num_layers"`, without tag they are skipped; the option
// `param:"lr,required"` makes a missing or null key an error, and embedded structs are filled from
// the same mapping. An absent key leaves the field as it is, so defaults go into the struct before;
// null does the same, but sets pointers, maps, slices and interfaces to nil. Targets are bools,
// numbers, strings, time.Duration, encoding.TextUnmarshaler, structs, slices, maps with string
// keys, pointers to these, any, [Value] and *[Map].
//
// Types are strict: an int is accepted as a float, and a float without fraction as an int, when the
// target can hold it; other conversions are errors. Only a scalar whose type was guessed from
// untyped text, that is from a substituted variable or a command line token, is also accepted as
// the string it was written as.
//
// The error joins one [*Error] for each problem. A target that is no pointer to a struct is an
// error of the program and is reported the same way. The struct may be partly filled when an error
// is returned.
func Decode(params *Map, into any) ([]UnknownKey, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("document: decode into %T, want a pointer to a struct", into)
	}
	d := &decoder{}
	d.structure(params, target.Elem(), "", Origin{})
	return d.unknown, errors.Join(d.errs...)
}

type decoder struct {
	unknown []UnknownKey
	errs    []error
}

var (
	valueType    = reflect.TypeFor[Value]()
	mapType      = reflect.TypeFor[*Map]()
	durationType = reflect.TypeFor[time.Duration]()
)

// structure fills a struct and records the keys nobody took.
func (d *decoder) structure(m *Map, target reflect.Value, path string, origin Origin) {
	var known []string
	d.fields(m, target, path, origin, &known)
	taken := make(map[string]bool, len(known))
	for _, key := range known {
		taken[key] = true
	}
	for key, value := range m.All() {
		if taken[key] {
			continue
		}
		nearest, _ := suggest.Nearest(key, known)
		d.unknown = append(d.unknown, UnknownKey{Path: JoinPath(path, key), Origin: value.Origin(), Nearest: nearest})
	}
}

func (d *decoder) fields(m *Map, target reflect.Value, path string, origin Origin, known *[]string) {
	for i := range target.NumField() {
		field := target.Type().Field(i)
		tag, tagged := field.Tag.Lookup("param")
		if field.Anonymous && !tagged && field.Type.Kind() == reflect.Struct {
			d.fields(m, target.Field(i), path, origin, known)
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		if key == "" || key == "-" || !field.IsExported() {
			continue
		}
		*known = append(*known, key)
		value, ok := m.Lookup(key)
		switch {
		case ok && value.IsNull() && option != "required":
			clearNilable(target.Field(i))
		case ok && !value.IsNull():
			d.value(value, target.Field(i), JoinPath(path, key))
		case option == "required":
			problem := "required key is missing"
			if ok {
				problem, origin = "required key is null", value.Origin()
			}
			d.errs = append(d.errs, &Error{Origin: origin, Path: JoinPath(path, key), Problem: problem})
		}
	}
}

func (d *decoder) wrong(v Value, path string, target reflect.Value, hint string) {
	d.errs = append(d.errs, WrongType(v, path, expectation(target.Type()), hint))
}

// expectation names a target type for messages.
func expectation(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration string such as 10s"
	case t.Kind() == reflect.Pointer:
		return expectation(t.Elem())
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return "a mapping"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "a list"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return t.Kind().String()
	}
}

// clearNilable sets what can be nil to nil and reports whether it could.
func clearNilable(target reflect.Value) bool {
	switch target.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		target.SetZero()
		return true
	default:
		return false
	}
}

// value stores v in target.
func (d *decoder) value(v Value, target reflect.Value, path string) {
	if target.Type() == valueType {
		target.Set(reflect.ValueOf(v))
		return
	}
	if v.IsNull() {
		if !clearNilable(target) {
			d.wrong(v, path, target, "")
		}
		return
	}
	switch target.Type() {
	case mapType:
		m, ok := v.Map()
		if !ok {
			d.errs = append(d.errs, WrongType(v, path, "a mapping", ""))
			return
		}
		target.Set(reflect.ValueOf(m))
		return
	case durationType:
		d.duration(v, target, path)
		return
	}
	if target.Kind() == reflect.Pointer {
		if target.IsNil() {
			target.Set(reflect.New(target.Type().Elem()))
		}
		d.value(v, target.Elem(), path)
		return
	}
	if unmarshaler, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(v, unmarshaler, path)
		return
	}
	switch target.Kind() {
	case reflect.Struct, reflect.Map:
		d.mapping(v, target, path)
	case reflect.Slice, reflect.Array:
		d.list(v, target, path)
	case reflect.Interface:
		if target.NumMethod() > 0 {
			d.wrong(v, path, target, "")
			return
		}
		target.Set(reflect.ValueOf(v.Any()))
	default:
		d.scalar(v, target, path)
	}
}

func (d *decoder) text(v Value, target encoding.TextUnmarshaler, path string) {
	text, ok := v.Identifier()
	if kind := v.Kind(); kind == KindDate || kind == KindTime {
		text, ok = v.Text(), true
	}
	if !ok {
		d.errs = append(d.errs, WrongType(v, path, "a string", "quote it"))
		return
	}
	if err := target.UnmarshalText([]byte(text)); err != nil {
		d.errs = append(d.errs, &Error{Origin: v.Origin(), Path: path, Problem: "given " + v.Describe(), Err: err})
	}
}

func (d *decoder) duration(v Value, target reflect.Value, path string) {
	text, ok := v.Str()
	if !ok {
		d.wrong(v, path, target, "")
		return
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		d.wrong(v, path, target, "")
		return
	}
	target.SetInt(int64(duration))
}

func (d *decoder) mapping(v Value, target reflect.Value, path string) {
	m, ok := v.Map()
	if !ok {
		d.wrong(v, path, target, "")
		return
	}
	if target.Kind() == reflect.Struct {
		d.structure(m, target, path, v.Origin())
		return
	}
	if target.Type().Key().Kind() != reflect.String {
		d.wrong(v, path, target, "keys of a mapping are strings")
		return
	}
	filled := reflect.MakeMapWithSize(target.Type(), m.Len())
	for key, element := range m.All() {
		item := reflect.New(target.Type().Elem()).Elem()
		d.value(element, item, JoinPath(path, key))
		filled.SetMapIndex(reflect.ValueOf(key).Convert(target.Type().Key()), item)
	}
	target.Set(filled)
}

func (d *decoder) list(v Value, target reflect.Value, path string) {
	if raw, ok := v.data.([]byte); ok && target.Type() == reflect.TypeFor[[]byte]() {
		target.SetBytes(append([]byte{}, raw...))
		return
	}
	items, ok := v.List()
	if !ok {
		d.wrong(v, path, target, "")
		return
	}
	filled := target
	if target.Kind() == reflect.Slice {
		filled = reflect.MakeSlice(target.Type(), len(items), len(items))
	} else if target.Len() != len(items) {
		d.errs = append(d.errs, WrongType(v, path, fmt.Sprintf("a list of %d", target.Len()), ""))
		return
	}
	for i, item := range items {
		d.value(item, filled.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	target.Set(filled)
}

// scalar stores bools, numbers and strings; it is exact or an error.
func (d *decoder) scalar(v Value, target reflect.Value, path string) {
	switch target.Kind() {
	case reflect.Bool:
		if b, ok := v.Bool(); ok {
			target.SetBool(b)
			return
		}
	case reflect.String:
		if text, ok := v.Identifier(); ok {
			target.SetString(text)
			return
		}
		d.wrong(v, path, target, "quote it if it is text")
		return
	case reflect.Float32, reflect.Float64:
		if f, ok := v.Float64(); ok && (math.IsInf(f, 0) || !target.OverflowFloat(f)) {
			target.SetFloat(f)
			return
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, whole := v.integral()
		if whole && n.IsInt64() && !target.OverflowInt(n.Int64()) {
			target.SetInt(n.Int64())
			return
		}
		if whole {
			most := int64(1)<<(target.Type().Bits()-1) - 1
			d.errs = append(d.errs, WrongType(v, path, fmt.Sprintf("%d to %d", -most-1, most), ""))
			return
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, whole := v.integral()
		if whole && n.IsUint64() && !target.OverflowUint(n.Uint64()) {
			target.SetUint(n.Uint64())
			return
		}
		if whole {
			d.errs = append(d.errs, WrongType(v, path, fmt.Sprintf("0 to %d", ^uint64(0)>>(64-target.Type().Bits())), ""))
			return
		}
	}
	d.wrong(v, path, target, numberHint(v))
}

// integral returns an int, or a float without fraction as an int.
func (v Value) integral() (*big.Int, bool) {
	switch n := v.data.(type) {
	case int64:
		return big.NewInt(n), true
	case *big.Int:
		return n, true
	case float64:
		if n == math.Trunc(n) && !math.IsInf(n, 0) {
			whole, _ := big.NewFloat(n).Int(nil)
			return whole, true
		}
	}
	return nil, false
}

// numberHint explains the classic trap of YAML 1.1, where 1e-5 is text.
func numberHint(v Value) string {
	text, ok := v.Str()
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	if !ok || !scientific || mantissa == "" || strings.Trim(mantissa, "+-.0123456789") != "" || strings.Trim(exponent, "+-0123456789") != "" {
		return ""
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if !strings.ContainsAny(exponent, "+-") {
		exponent = "+" + exponent
	}
	return fmt.Sprintf("YAML 1.1 reads %s as text, write %se%s", text, mantissa, exponent)
}
