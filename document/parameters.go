package document

import (
	"reflect"
	"slices"
	"strings"
)

// Parameter is a key that [Decode] knows.
type Parameter struct {
	// Name is the dotted key path.
	Name string
	// Values are the texts that it may have, nil where it may have any.
	Values []string
}

// Enumeration is a type of which only some texts are values.
type Enumeration interface{ Values() []string }

// Parameters returns the keys that [Decode] would read into a struct, sorted by name. Those of
// lists and of maps have no names.
func Parameters(into any) []Parameter {
	var all []Parameter
	collect(reflect.TypeOf(into).Elem(), "", func(p Parameter) { all = append(all, p) })
	slices.SortFunc(all, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func collect(structure reflect.Type, path string, add func(Parameter)) {
	for i := range structure.NumField() {
		field := structure.Field(i)
		tag, tagged := field.Tag.Lookup("param")
		if field.Anonymous && !tagged && field.Type.Kind() == reflect.Struct {
			collect(field.Type, path, add)
			continue
		}
		key, _, _ := strings.Cut(tag, ",")
		if key == "" || key == "-" || !field.IsExported() {
			continue
		}
		p, kind := Parameter{Name: JoinPath(path, key)}, field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		enumeration, ok := reflect.Zero(kind).Interface().(Enumeration)
		switch {
		case ok:
			p.Values = enumeration.Values()
		case kind.Kind() == reflect.Bool:
			p.Values = []string{"true", "false"}
		case kind.Kind() == reflect.Struct:
			collect(kind, p.Name, add)
			continue
		}
		add(p)
	}
}
