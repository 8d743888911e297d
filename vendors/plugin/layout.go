package plugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// Field is an argument of an op as plugins see it.
type Field struct {
	Name string // in lower_snake
	Sort uint32 // of package abi; what may be left out may come as ArgAbsent, too
	at   []int  // index in the struct and those in it
}

var (
	tensorType  = reflect.TypeFor[*tensor.Tensor]()
	tensorsType = reflect.TypeFor[[]*tensor.Tensor]()
	listsType   = reflect.TypeFor[[][]*tensor.Tensor]()
	intsType    = reflect.TypeFor[[]int]()
	savedType   = reflect.TypeFor[*opregistry.Saved]()
	optionType  = reflect.TypeFor[opregistry.OptionalFloat]()
	switchType  = reflect.TypeFor[opregistry.OptionalBool]()
	windowType  = reflect.TypeFor[attention.WindowSize]()
)

// Layout returns the arguments of an op in the order of its argument struct. A struct
// in it stands for its fields, with its name in front unless it is embedded. The
// record of a family's saved state is the host's business and left out. An op with
// an argument that has no form in C is an error.
func Layout(op opregistry.Handle) ([]Field, error) {
	fields, err := layout(op.Args(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("plugin: op %q: %w", op.Name(), err)
	}
	return fields, nil
}

func layout(t reflect.Type, prefix string, above []int) ([]Field, error) {
	var fields []Field
	for i := range t.NumField() {
		f, at := t.Field(i), append(slices.Clone(above), i)
		name := prefix + snake(f.Name)
		if f.Type == savedType {
			continue
		}
		sort, ok := sortOf(f.Type)
		switch {
		case !f.IsExported() || !ok && f.Type.Kind() != reflect.Struct:
			return nil, fmt.Errorf("argument %s of type %v has no form in C", f.Name, f.Type)
		case ok:
			fields = append(fields, Field{Name: name, Sort: sort, at: at})
			continue
		case f.Anonymous:
			name = prefix
		default:
			name += "_"
		}
		below, err := layout(f.Type, name, at)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", f.Name, err)
		}
		fields = append(fields, below...)
	}
	return fields, nil
}

func sortOf(t reflect.Type) (uint32, bool) {
	switch t {
	case tensorType:
		return abi.ArgTensor, true
	case tensorsType:
		return abi.ArgTensors, true
	case listsType:
		return abi.ArgLists, true
	case intsType, windowType:
		return abi.ArgInts, true
	case optionType:
		return abi.ArgFloat, true
	case switchType:
		return abi.ArgInt, true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return abi.ArgInt, true
	case reflect.Float32, reflect.Float64:
		return abi.ArgFloat, true
	}
	return 0, false
}

// snake spells the name of a field in C: QKVFormat is qkv_format, RSigma is rsigma.
func snake(name string) string {
	runes := []rune(name)
	var words []string
	start := 0
	for i := 1; i < len(runes); i++ {
		begins := unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			words = append(words, string(runes[start:i]))
			start = i
		}
	}
	words = append(words, string(runes[start:]))
	if len(words) > 1 && len(words[0]) == 1 {
		words = append([]string{words[0] + words[1]}, words[2:]...)
	}
	return strings.ToLower(strings.Join(words, "_"))
}
